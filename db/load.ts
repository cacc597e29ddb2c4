/** Owns: rebuilding a conversation's value from its rows, exactly as it was committed (rule 10). */
import type { Conversation, QueuedMessage, State, Usage } from "../machine/conversation.ts";
import type { Profile } from "../machine/profile.ts";
import type { Database } from "./connect.ts";
import { cleanText } from "./json.ts";
import { readQueue } from "./rows.ts";
