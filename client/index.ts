/** Owns: what the typed client offers: the page, the command line and the bridge for editors are built on it. */
export { createCalls, mayRepeat, Refused, Unreachable } from "./calls.ts";
export type { Calls, Problem, Routes, Server } from "./calls.ts";
export { createClient } from "./client.ts";
export { newId } from "./ids.ts";
export { makeConversation } from "./make-conversation.ts";
export type { Client, ClientOptions, View } from "./client.ts";
export type { ConversationInput, ConversationModel, LoadedConversation } from "./conversation-model.ts";
export type { Conversation, ConversationEvent, ListEvent, Message, State } from "./events.ts";
export type { ListedConversation, ListModel } from "./list-model.ts";
export type { LiveAnswer, LiveBlock, LiveOutput } from "../protocol/live-text.ts";
export { Models } from "./models.ts";
export { phaseOf } from "./phase.ts";
export type { Phase } from "./phase.ts";
export type { Change } from "./models.ts";
export type { Link } from "./stream.ts";
export { PART_NAMES, readTrace } from "./trace.ts";
export type { Trace, TraceSpan } from "./trace.ts";
export { stoppingFetch } from "./stopping-fetch.ts";
