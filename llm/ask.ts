/**
 * Owns: one request to the provider, from sending it to its outcome. The request is sent once.
 * Not here: retries, which the machine decides by the outcome's `retryable` (machine/failure.ts).
 */
import type {
  MessageCreateParamsStreaming,
  RawMessageStreamEvent,
} from "@anthropic-ai/sdk/resources/messages";
import type { TokenUsage } from "../machine/message.ts";
import { Accumulator, type Accumulated, type Delta } from "./accumulate.ts";
import type { ProviderClient } from "./client.ts";
import { classify, type Failure } from "./errors.ts";

export type LlmOutcome =
  | ({ readonly kind: "response"; readonly durationMs: number } & Accumulated)
  | ({ readonly kind: "failed" } & Failure & Reported)
  | ({ readonly kind: "aborted" } & Reported);

/** What the provider bills for a request that has no response. */
type Reported = {
  /** What it had reported until then; null: nothing. */
  readonly usage: TokenUsage | null;
};

export type Asking = {
  readonly client: ProviderClient;
  readonly request: MessageCreateParamsStreaming;
  /** Ends the request at once; the outcome is then `aborted` and nothing of the answer is kept (REQ-BED-005). */
  readonly signal: AbortSignal;
  readonly onDelta?: (delta: Delta) => void;
  /** Called once, when the model begins to answer, also if it is with a call. */
  readonly onFirstToken?: () => void;
  /** Milliseconds without a stream event after which the request fails. Connecting and the first event count, too. */
  readonly stallMs?: number;
};

const STALL_MS = 120_000;
/** Time for the connection to end by itself after `message_stop`, so that it can be used again. */
const DRAIN_MS = 1_000;

/** Asks the model. Never rejects. */
export async function ask(asking: Asking): Promise<LlmOutcome> {
  const { client, request, signal, onDelta, onFirstToken, stallMs = STALL_MS } = asking;
  const isAborted = (): boolean => signal.aborted;
  if (isAborted()) return { kind: "aborted", usage: null };
  const started = performance.now();
  const upstream = new AbortController();
  const close = (): void => upstream.abort();
  signal.addEventListener("abort", close, { once: true });
  const watchdog = startWatchdog(stallMs, close);
  const response = new Accumulator();
  try {
    const stream = await client.messages.create(request, { signal: upstream.signal });
    const events = stream[Symbol.asyncIterator]();
    let isAnswering = false;
    for (;;) {
      // Pings do not get here: the SDK drops them. A provider that only pings has stalled.
      const next = await events.next();
      if (isAborted()) return { kind: "aborted", usage: response.usage };
      if (next.done === true) break;
      watchdog.reset();
      if (!isAnswering && next.value.type === "content_block_start") {
        isAnswering = true;
        onFirstToken?.();
      }
      const delta = response.push(next.value);
      if (delta !== null) onDelta?.(delta);
      if (!response.complete) continue;
      drain(events, close);
      const durationMs = Math.round(performance.now() - started);
      return { kind: "response", ...response.finish(), durationMs };
    }
    return { kind: "failed", usage: response.usage, ...(watchdog.stalled ? stalled(stallMs) : CUT_SHORT) };
  } catch (error) {
    upstream.abort();
    const { usage } = response;
    if (isAborted()) return { kind: "aborted", usage };
    return { kind: "failed", usage, ...(watchdog.stalled ? stalled(stallMs) : classify(error)) };
  } finally {
    watchdog.stop();
    signal.removeEventListener("abort", close);
  }
}

const CUT_SHORT: Failure = {
  errorKind: "network",
  message: "The connection to the model's provider ended in the middle of the answer.",
  retryable: true,
  retryAfterMs: null,
};

const stalled = (stallMs: number): Failure => ({
  errorKind: "network",
  message: `The model's provider sent nothing for ${Math.round(stallMs / 1000)} seconds.`,
  retryable: true,
  retryAfterMs: null,
});

function startWatchdog(stallMs: number, onStall: () => void) {
  const watchdog = {
    stalled: false,
    reset: (): void => void timer.refresh(),
    stop: (): void => clearTimeout(timer),
  };
  const timer = setTimeout(() => {
    watchdog.stalled = true;
    onStall();
  }, stallMs);
  return watchdog;
}

/** Reads to the end in the background. If the provider does not end, or sends more, the connection is closed. */
function drain(events: AsyncIterator<RawMessageStreamEvent>, close: () => void): void {
  const timer = setTimeout(close, DRAIN_MS);
  events
    .next()
    .then(({ done }) => (done === true ? undefined : close()), close)
    .finally(() => clearTimeout(timer));
}
