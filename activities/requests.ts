/**
 * Owns: the activities that ask the model: history from Postgres, one request, deltas to whoever listens, and the
 * outcome as the event that the machine waits for. Asks once (architecture, rule 5).
 */
import type { Database } from "../db/connect.ts";
import { isUnavailable } from "../db/errors.ts";
import { getImage } from "../db/images.ts";
import { publishLive } from "../db/notifications.ts";
import { ask, type Asking, type LlmOutcome } from "../llm/ask.ts";
import type { ProviderClient } from "../llm/client.ts";
import { buildContinuationRequest } from "../llm/continuation.ts";
import { createDeltaBatcher } from "../llm/deltas.ts";
import { buildRequest } from "../llm/request.ts";
import { systemPrompt } from "../llm/system-prompt.ts";
import { imageHashes, type Images } from "../llm/turns.ts";
import type { Message } from "../machine/message.ts";
import { toolsFor } from "../tools/registry.ts";
import type { ConversationActivities, Performed, RequestEvent, RequestInput } from "./contract.ts";
import { commitThen } from "./effect.ts";
import { toolCallIds, type History } from "./history.ts";

export type RequestDependencies = {
  readonly db: Database;
  readonly history: History;
  readonly client: ProviderClient;
  /** Milliseconds without a stream event after which a request has stalled. */
  readonly stallMs: number;
};

export function requestActivities(
  deps: RequestDependencies,
): Pick<ConversationActivities, "requestLlm" | "requestContinuation"> {
  return {
    requestLlm: (input) =>
      request(deps, input, async (messages) => {
        const { cwd, userInitiated } = input.profile;
        const isSubAgent = !userInitiated;
        return buildRequest({
          messages,
          model: input.profile.model,
          tools: toolsFor({ isSubAgent }),
          system: systemPrompt({ cwd, isSubAgent }),
          images: await loadImages(deps.db, input.conversationId, messages),
        });
      }),
    requestContinuation: (input) =>
      request(deps, input, (messages) =>
        Promise.resolve(
          buildContinuationRequest({
            messages,
            model: input.profile.model,
            rejectedTools: input.rejectedTools,
          }),
        ),
      ),
  };
}

type Build = (messages: readonly Message[]) => Promise<Asking["request"]>;

function request(
  deps: RequestDependencies,
  input: RequestInput,
  build: Build,
): Promise<Performed<RequestEvent>> {
  const { requestId, conversationId } = input;
  const known = deps.history.recall(conversationId);
  return commitThen(deps.db, input, {
    operationId: requestId,
    since: known.at(-1) ?? null,
    perform: async (signal, news) => {
      try {
        const messages = await deps.history.read(conversationId, known, news);
        return await askModel(deps, input, { request: await build(messages), messages, signal });
      } catch (error) {
        if (!isUnavailable(error)) throw error;
        const message = "The database could not be read.";
        return {
          kind: "llm_failed",
          requestId,
          errorKind: "network",
          message,
          retryable: true,
          retryAfterMs: null,
        };
      }
    },
  });
}

async function askModel(
  { db, client, stallMs }: RequestDependencies,
  { requestId, conversationId }: RequestInput,
  { messages, ...asked }: Pick<Asking, "request" | "signal"> & { readonly messages: readonly Message[] },
): Promise<RequestEvent> {
  const deltas = createDeltaBatcher({
    publish: ({ kind, index, text }) =>
      publishLive(db, conversationId, { name: `${kind}.delta`, data: { requestId, index, text } }),
  });
  const outcome = await ask({ ...asked, client, stallMs, onDelta: (delta) => deltas.push(delta) });
  // Live text that is still on its way must not hold up what is durable.
  void deltas.close();
  return toEvent(requestId, outcome, messages);
}

function toEvent(requestId: string, outcome: LlmOutcome, messages: readonly Message[]): RequestEvent {
  switch (outcome.kind) {
    case "aborted":
      return { kind: "llm_lost", requestId };
    case "failed":
      return { ...outcome, kind: "llm_failed", requestId };
    case "response": {
      const used = toolCallIds(messages);
      const ids = outcome.content.flatMap((block) => (typeof block["id"] === "string" ? [block["id"]] : []));
      return {
        ...outcome,
        kind: "llm_response",
        requestId,
        usedToolCallIds: ids.filter((id) => used.has(id)),
      };
    }
  }
}

async function loadImages(
  db: Database,
  conversationId: string,
  messages: readonly Message[],
): Promise<Images> {
  const images = new Map<string, { mediaType: string; data: string }>();
  for (const hash of imageHashes(messages)) {
    const image = await getImage(db, conversationId, hash);
    if (image === null) continue;
    images.set(hash, { mediaType: image.mediaType, data: Buffer.from(image.bytes).toString("base64") });
  }
  return images;
}
