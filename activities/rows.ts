/** Owns: the activities that read and write a conversation's rows and have no other effect; all may be repeated. */
import { takeBackOrder } from "../db/claims.ts";
import type { Database } from "../db/connect.ts";
import { deleteConversation } from "../db/conversations.ts";
import { loadConversation } from "../db/load.ts";
import { isTaken } from "../db/messages.ts";
import type { Context, Limits } from "../machine/context.ts";
import { outcomeOf } from "../machine/outcome.ts";
import type { Telemetry } from "../observability/telemetry.ts";
import type { ConversationConfig } from "../protocol/conversation.ts";
import { isExpired } from "../sandbox/lease.ts";
import type { ToolsFor } from "../tools/registry.ts";
import type { ConversationActivities, ConversationMetadata } from "../protocol/activities.ts";
import type { MessageCache } from "./message-cache.ts";
import { withLease } from "./lease.ts";
import { cycleAfter, cycleEndedBy, recordedCommit } from "./recorded-commit.ts";
import type { ModelRegistry } from "./model-registry.ts";

type RowActivities = Pick<
  ConversationActivities,
  "load" | "commit" | "takeBack" | "messageExists" | "remove"
>;

export type RowDependencies = {
  readonly db: Database;
  readonly telemetry: Telemetry;
  readonly history: MessageCache;
  readonly models: ModelRegistry;
  readonly toolsFor: ToolsFor;
  readonly limits: Limits;
  /** Workflows shall not show titles in Temporal's lists. */
  readonly hidesTitles: boolean;
};

export function rowActivities(deps: RowDependencies): RowActivities {
  const { db, history } = deps;
  const contextsOf = (config: ConversationConfig): ConversationMetadata => ({
    config,
    context: contextOf(deps, config),
    subAgentContext: contextOf(deps, { ...config, userInitiated: false }),
    ...(deps.hidesTitles ? { hidesTitle: true } : {}),
  });

  return {
    load: ({ conversationId, createInput, askedMessageIds }) =>
      withLease(async () => {
        const row = await loadConversation(db, conversationId, askedMessageIds);
        if (row === null) {
          if (createInput === null) return null;
          return { ...contextsOf(createInput.config), stored: null };
        }
        const { config, ...stored } = row;
        return { ...contextsOf(config), stored };
      }),
    commit: ({ conversationId, createInput, ...packed }) =>
      withLease(async () => {
        const parts = { createInput, claim: null, lastRead: null };
        const ended = cycleEndedBy(packed);
        const cycleId = ended ?? cycleAfter(packed);
        const span = deps.telemetry.spans.open("commit", { conversationId, cycleId, operationId: null });
        if (ended !== null) span.set({ "bedrock.ends_turn": true });
        const committing = recordedCommit(deps, conversationId, packed, parts);
        const { committed } = await committing.finally(() => span.end("ended"));
        const { value } = packed;
        if (value !== null && outcomeOf(value.conversation.state) !== null) history.forget(conversationId);
        return committed;
      }),
    takeBack: ({ conversationId, claim }) => withLease(() => takeBackOrder(db, conversationId, claim)),
    messageExists: ({ conversationId, messageId }) => withLease(() => isTaken(db, conversationId, messageId)),
    remove: ({ conversationId, createdAt }) =>
      withLease(async (lease) => {
        // Another attempt has done it, or will.
        if (isExpired(lease)) throw new Error("The removal came too late.");
        await deleteConversation(db, conversationId, createdAt);
        history.forget(conversationId);
      }),
  };
}

/** The machine's context, from the registries of this worker's version and its settings. */
function contextOf({ models, toolsFor, limits }: RowDependencies, config: ConversationConfig): Context {
  const isSubAgent = !config.userInitiated;
  return {
    isSubAgent,
    contextWindow: models.current.of(config.model).contextWindow,
    tools: toolsFor({ isSubAgent }).map((tool) => tool.name),
    limits,
  };
}
