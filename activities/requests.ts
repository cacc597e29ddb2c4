/**
 * Owns: the activities that ask the model. Each reads the history from Postgres, makes one request, publishes its
 * deltas, and returns the outcome as the event that the machine waits for. Asks once (architecture, rule 5), and only if
 * no limit on spending is reached: there is no other way to the model.
 */
import type { Database } from "../db/connect.ts";
import { isUnavailable } from "../db/errors.ts";
import { publishLive } from "../db/live.ts";
import type { Delta } from "../llm/accumulate.ts";
import { ask, type Asking, type LlmOutcome } from "../llm/ask.ts";
import type { ProviderClient } from "../llm/client.ts";
import { buildContinuationRequest } from "../llm/continuation.ts";
import { buildRequest, exceedsBody } from "../llm/request.ts";
import type { Failure } from "../llm/errors.ts";
import type { Model } from "../llm/models.ts";
import { costOf } from "../llm/price.ts";
import { systemPrompt } from "../llm/system-prompt.ts";
import type { Charge, Message } from "../machine/message.ts";
import type { OpenSpan } from "../observability/spans.ts";
import type { Telemetry } from "../observability/telemetry.ts";
import {
  dayOf,
  limitsSet,
  NANODOLLARS,
  refusalOf,
  refusalOfModel,
  type SpendingLimits,
} from "../protocol/spending.ts";
import { isExpired } from "../sandbox/lease.ts";
import type { ToolsFor } from "../tools/registry.ts";
import type {
  ConversationActivities,
  Performed,
  RequestEvent,
  RequestInput,
} from "../protocol/activities.ts";
import { commitThen, type EffectOf } from "./effect.ts";
import { HistoryTooLarge, readForSummary, toolCallIds, type MessageCache } from "./message-cache.ts";
import type { ActivityLease } from "./lease.ts";
import type { LiveTextOptions } from "./live-text.ts";
import type { LiveTexts } from "./live-texts.ts";
import type { ModelRegistry } from "./model-registry.ts";
import type { RequestImages } from "./request-images.ts";

export type RequestDependencies = {
  readonly db: Database;
  readonly telemetry: Telemetry;
  readonly history: MessageCache;
  readonly client: ProviderClient;
  readonly models: ModelRegistry;
  readonly requestImages: RequestImages;
  readonly liveTexts: LiveTexts;
  readonly toolsFor: ToolsFor;
  readonly spendingLimits: SpendingLimits;
  /** Milliseconds without a stream event after which a request has stalled. */
  readonly stallMs: number;
};

export function requestActivities(
  deps: RequestDependencies,
): Pick<ConversationActivities, "requestLlm" | "requestContinuation"> {
  const { db, history, models, requestImages, toolsFor } = deps;
  return {
    requestLlm: (input) => {
      const { conversationId, config } = input;
      const known = history.getCached(conversationId);
      return request(deps, input, known.messages.at(-1) ?? null, async (news) => {
        const { messages: stored, characters } = await history.read(conversationId, known, news);
        const model = models.current.of(config.model);
        const { messages, images } = await requestImages.choose(conversationId, stored, model.maxImages);
        const isSubAgent = !config.userInitiated;
        const built = buildRequest({
          ...{ messages, images, model },
          tools: toolsFor({ isSubAgent }),
          system: systemPrompt({ cwd: config.cwd, isSubAgent, initialMode: config.initialMode }),
        });
        if (characters > SURELY_FITS && exceedsBody(built)) throw new HistoryTooLarge();
        return { request: built, usedIds: () => toolCallIds(stored), model };
      });
    },
    requestContinuation: (input) =>
      request(deps, input, null, async () => {
        const model = models.current.of(input.config.model);
        const messages = await readForSummary(db, input.conversationId, model);
        const built = buildContinuationRequest({ messages, model, rejectedTools: input.rejectedTools });
        return { request: built, usedIds: () => new Set(), model };
      }),
  };
}

/** A history of so many characters stays below the limit of a body, at three bytes each, with all images. */
const SURELY_FITS = 3_000_000;

type Built = {
  readonly request: Asking["request"];
  /** The ids of all earlier calls of the conversation. */
  readonly usedIds: () => ReadonlySet<string>;
  readonly model: Model;
};

/** @param lastRead the commit returns the messages after it, for `build`. */
function request(
  deps: RequestDependencies,
  input: RequestInput,
  lastRead: Message | null,
  build: (newMessages: readonly Message[] | null) => Promise<Built>,
): Promise<Performed<RequestEvent>> {
  const { requestId } = input;
  const { spendingLimits: limits, models } = deps;
  const wanted = limitsSet(limits);
  const perform = async (
    lease: ActivityLease,
    { newMessages, sums }: Parameters<EffectOf<RequestEvent>["perform"]>[1],
    span: OpenSpan,
  ): Promise<RequestEvent> => {
    try {
      const refusal =
        refusalOfModel(limits, models.current.of(input.config.model)) ??
        (sums === null ? null : refusalOf(limits, sums));
      if (refusal !== null) return { kind: "llm_failed", requestId, ...refused(refusal.reason) };
      const built = await build(newMessages);
      // Building may have taken long, or the worker was frozen meanwhile: then a successor makes the request.
      if (isExpired(lease)) return { kind: "llm_lost", requestId };
      return await askModel(deps, input, built, { lease, span });
    } catch (error) {
      if (error instanceof HistoryTooLarge) return { kind: "llm_failed", requestId, ...TOO_LARGE };
      if (!isUnavailable(error)) throw error;
      return { kind: "llm_failed", requestId, ...UNREADABLE };
    }
  };
  return commitThen(deps, input, {
    kind: "request",
    operationId: requestId,
    lastRead,
    sums:
      wanted.conversation || wanted.day
        ? { conversation: wanted.conversation, day: wanted.day ? dayOf(new Date()) : null }
        : null,
    perform: async (lease, read, span) => {
      const event = await perform(lease, read, span);
      return { event, outcome: outcomeOf(event) };
    },
  });
}

function outcomeOf(event: RequestEvent): string {
  switch (event.kind) {
    case "llm_response":
      return "response";
    case "llm_failed":
      return `failed: ${event.errorKind}`;
    case "llm_lost":
      return "lost";
  }
}

const UNREADABLE: Failure = {
  errorKind: "network",
  message: "The database could not be read.",
  retryable: true,
  retryAfterMs: null,
};

/**
 * This is known without sending the request. A provider that closes the connection on it would look like a broken
 * network.
 */
const TOO_LARGE: Failure = {
  errorKind: "context_exhausted",
  message: "The conversation is larger than a request may be. Continue in a new conversation.",
  retryable: false,
  retryAfterMs: null,
};

/** Nothing was sent: a limit on spending is reached. */
const refused = (message: string): Failure => ({
  errorKind: "spending_limit",
  message,
  retryable: false,
  retryAfterMs: null,
});

async function askModel(
  { db, client, stallMs, liveTexts, models, telemetry: { metrics } }: RequestDependencies,
  { requestId, conversationId, config }: RequestInput,
  built: Built,
  { lease, span }: { readonly lease: ActivityLease; readonly span: OpenSpan },
): Promise<RequestEvent> {
  const shown: LiveTextOptions<Pick<Delta, "kind" | "index">> = {
    keyOf: ({ index }) => String(index),
    // After the lease a successor may have begun the request anew: nothing more is published.
    publish: async ({ source: { kind, index }, offset, text }, after, again) => {
      if (isExpired(lease)) return;
      const event = { name: `${kind}.delta`, data: { requestId, index, offset, text } } as const;
      await publishLive(db, conversationId, { event, after, again });
    },
  };
  // Any id may be given as a model's: only those that are known become labels.
  const model = models.current.list.some(({ id }) => id === config.model) ? config.model : "other";
  span.set({ "gen_ai.request.model": config.model });
  span.mark("sent");
  const sent = performance.now();
  const seconds = (): number => (performance.now() - sent) / 1_000;
  const outcome = await liveTexts.during(conversationId, shown, (live) =>
    ask({
      client,
      request: built.request,
      signal: lease.signal,
      stallMs,
      onDelta: (delta) => live.push(delta, delta.text),
      onFirstToken: () => {
        span.mark("first_token");
        metrics.countFirstToken(model, seconds());
      },
    }),
  );
  const ended = outcome.kind === "failed" ? outcome.errorKind : outcome.kind;
  metrics.countRequest(model, ended, seconds());
  if (outcome.kind === "response") {
    const { usage } = outcome;
    metrics.countTokens(model, usage);
    span.set({
      "gen_ai.usage.input_tokens": usage.inputTokens,
      "gen_ai.usage.output_tokens": usage.outputTokens,
    });
  }
  const charge = chargeOf(outcome, built.model);
  if (charge !== null && charge.nanodollars !== null)
    metrics.countCost(model, charge.nanodollars / NANODOLLARS);
  return toEvent(requestId, outcome, built, charge);
}

/** What the provider bills, as far as it has reported it; null: nothing. */
function chargeOf({ usage }: LlmOutcome, { price }: Model): Charge | null {
  if (usage === null) return null;
  return { ...usage, nanodollars: price === null ? null : costOf(price, usage) };
}

function toEvent(requestId: string, outcome: LlmOutcome, built: Built, charge: Charge | null): RequestEvent {
  const { contextWindow } = built.model;
  const charged = charge === null ? {} : { charge };
  switch (outcome.kind) {
    case "aborted":
      return { kind: "llm_lost", requestId, ...charged };
    case "failed": {
      const { usage: _usage, ...failure } = outcome;
      return { ...failure, kind: "llm_failed", requestId, ...charged };
    }
    case "response": {
      const used = built.usedIds();
      const ids = outcome.content.flatMap((block) => (typeof block["id"] === "string" ? [block["id"]] : []));
      return {
        ...outcome,
        ...charged,
        kind: "llm_response",
        requestId,
        contextWindow,
        usedToolCallIds: ids.filter((id) => used.has(id)),
      };
    }
  }
}
