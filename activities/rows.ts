/** Owns: the activities that read and write a conversation's rows and have no other effect; all may be repeated. */
import { commitAndRead } from "../db/commit.ts";
import type { Database } from "../db/connect.ts";
import { deleteConversation } from "../db/conversations.ts";
import { loadConversation } from "../db/load.ts";
import { isTaken } from "../db/messages.ts";
import { DEFAULT_LIMITS, type Context } from "../machine/context.ts";
import { outcomeOf } from "../machine/outcome.ts";
import type { Profile } from "../machine/profile.ts";
import { isOver } from "../sandbox/lease.ts";
import { toolsFor } from "../tools/registry.ts";
import type { ConversationActivities, Fixed } from "./contract.ts";
import type { History } from "./history.ts";
import { withLease } from "./lease.ts";
import type { KnownModels } from "./models.ts";

type RowActivities = Pick<ConversationActivities, "load" | "commit" | "messageExists" | "remove">;

export function rowActivities(db: Database, history: History, models: KnownModels): RowActivities {
  const contextsOf = (profile: Profile): Fixed => ({
    profile,
    context: contextOf(profile, models),
    subAgentContext: contextOf({ ...profile, userInitiated: false }, models),
  });

  return {
    load: ({ conversationId, opening, askedMessageIds }) =>
      withLease(async () => {
        const row = await loadConversation(db, conversationId, askedMessageIds);
        if (row === null) {
          if (opening === null) return null;
          return { ...contextsOf(opening.profile), stored: null };
        }
        const { profile, ...stored } = row;
        return { ...contextsOf(profile), stored };
      }),
    commit: ({ conversationId, opening, ...packed }) =>
      withLease(async () => {
        const parts = { opening, claim: null, since: null };
        const { committed } = await commitAndRead(db, conversationId, packed, parts);
        const { value } = packed;
        if (value !== null && outcomeOf(value.conversation.state) !== null) history.forget(conversationId);
        return committed;
      }),
    messageExists: ({ conversationId, messageId }) => withLease(() => isTaken(db, conversationId, messageId)),
    remove: ({ conversationId, createdAt }) =>
      withLease(async (lease) => {
        // Another has done it, or will.
        if (isOver(lease)) throw new Error("The removal came too late.");
        await deleteConversation(db, conversationId, createdAt);
        history.forget(conversationId);
      }),
  };
}

/** What the machine may look at, from the registries of this worker's version. */
function contextOf(profile: Profile, models: KnownModels): Context {
  const isSubAgent = !profile.userInitiated;
  return {
    isSubAgent,
    contextWindow: models.current.of(profile.model).contextWindow,
    sandboxAvailable: profile.sandbox.available,
    tools: toolsFor({ isSubAgent }).map((tool) => tool.name),
    limits: DEFAULT_LIMITS,
  };
}
