/**
 * Owns: the metrics of the API and of a worker, for Prometheus: their names, labels and buckets (docs/observability.md
 * has the same table). A label has few values, and never an id.
 * Not here: the metrics of Temporal's SDK (metrics-server.ts adds them).
 */
import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from "prom-client";
import type { RunStopReason, TokenUsage } from "../machine/message.ts";
import { PARTS, type Part } from "./turn.ts";

/** Seconds. What a person waits for: from a fast answer to a task of an hour. */
const LONG = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 900, 3_600];
/** Seconds. Round trips to Postgres and Temporal. */
const SHORT = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/** Values of conversations by state that Postgres was asked for. */
export type Backlog = {
  /** Open conversations by the kind of their state. */
  readonly conversations: Readonly<Record<string, number>>;
  readonly queued: number;
  /** Age of the oldest message that waits and is not held, in seconds; 0: none waits. */
  readonly oldestSeconds: number;
};

type Exposition = {
  readonly contentType: string;
  /** All metrics as text. */
  readonly render: () => Promise<string>;
  readonly registry: Registry;
};

type SpanDrops = { readonly countDroppedSpans: (target: string, count: number) => void };

export type ApiMetrics = Exposition &
  SpanDrops & {
    /** @param route the pattern, never the path: labels must stay few. */
    readonly countRequest: (method: string, route: string, status: number, seconds: number) => void;
    /** Counts an open stream until `ended`. */
    readonly countStream: (ended: Promise<void>) => void;
  };

export type ApiMetricsOptions = {
  /** Asked at each scrape; null: not known now. */
  readonly backlog?: () => Promise<Backlog | null>;
  /** Also the metrics of the process: once in a process. */
  readonly isProcess?: boolean;
};

export function createApiMetrics({ backlog, isProcess = false }: ApiMetricsOptions = {}): ApiMetrics {
  const registry = new Registry();
  const registers = [registry];
  if (isProcess) collectDefaultMetrics({ register: registry });
  const requests = new Histogram({
    name: "bedrock_http_request_seconds",
    help: "Time until a request was answered; of a stream, until it was open.",
    labelNames: ["method", "route", "status"],
    buckets: SHORT,
    registers,
  });
  const streams = new Gauge({ name: "bedrock_event_streams", help: "Open event streams.", registers });
  if (backlog !== undefined) observeBacklog(registers, backlog);
  return {
    ...exposition(registry),
    ...spanDrops(registers),
    countRequest: (method, route, status, seconds) =>
      requests.observe({ method, route, status: String(status) }, seconds),
    countStream(ended) {
      streams.inc();
      void ended.then(() => streams.dec());
    },
  };
}

function observeBacklog(registers: Registry[], read: () => Promise<Backlog | null>): void {
  const conversations = new Gauge({
    name: "bedrock_conversations",
    help: "Conversations that are not archived, by state.",
    labelNames: ["state"],
    registers,
  });
  const oldest = new Gauge({
    name: "bedrock_queue_oldest_seconds",
    help: "Age of the oldest message that waits for earlier work, held ones left out.",
    registers,
  });
  const queued = new Gauge({
    name: "bedrock_queue_messages",
    help: "Messages that wait, also those that are held.",
    registers,
    // One collect for all three: they come from one query.
    async collect() {
      const found = await read();
      conversations.reset();
      if (found === null) return;
      for (const [state, count] of Object.entries(found.conversations)) conversations.set({ state }, count);
      oldest.set(found.oldestSeconds);
      queued.set(found.queued);
    },
  });
}

/** How a request to the model ended: `response`, `lost`, or the kind of its error. */
type LlmOutcome = string;

export type TurnTimes = {
  readonly reason: RunStopReason;
  readonly seconds: number;
  readonly parts: readonly { readonly part: Part; readonly seconds: number }[];
  /** From one request to the next, with the tools between them. */
  readonly rounds: readonly number[];
  /** How long the message waited behind earlier work; null: it did not. */
  readonly queuedSeconds: number | null;
  /** From the moment at which the conversation took the Stop until everything had ended. */
  readonly stops: readonly { readonly stopping: string; readonly seconds: number }[];
  /** The kind of error of each retry. */
  readonly retries: readonly string[];
};

export type WorkerMetrics = Exposition &
  SpanDrops & {
    readonly countCommit: (outcome: "stored" | "diverged" | "failed", seconds: number) => void;
    /** From the order of an activity until a worker began it. */
    readonly countWait: (activity: "request" | "tool", seconds: number) => void;
    /** @param model a known model's id, else `other` */
    readonly countFirstToken: (model: string, seconds: number) => void;
    readonly countRequest: (model: string, outcome: LlmOutcome, seconds: number) => void;
    /** The tokens of one response. */
    readonly countTokens: (model: string, usage: TokenUsage) => void;
    /** What one request cost, where its model's price is known. */
    readonly countCost: (model: string, dollars: number) => void;
    readonly countTool: (tool: string, status: string, seconds: number) => void;
    /** Counts a running tool until `ended`. */
    readonly countRunning: (ended: Promise<unknown>) => void;
    readonly countTurn: (turn: TurnTimes) => void;
  };

export function createWorkerMetrics({
  isProcess = false,
}: Pick<ApiMetricsOptions, "isProcess"> = {}): WorkerMetrics {
  const registry = new Registry();
  const registers = [registry];
  if (isProcess) collectDefaultMetrics({ register: registry });
  const histogram = <L extends string>(name: string, help: string, labelNames: L[], buckets: number[]) =>
    new Histogram({ name, help, labelNames, buckets, registers });
  const counter = <L extends string>(name: string, help: string, labelNames: L[]) =>
    new Counter({ name, help, labelNames, registers });

  const turns = histogram(
    "bedrock_turn_seconds",
    "Whole turns, from the message to the end.",
    ["reason"],
    LONG,
  );
  const parts = counter("bedrock_turn_part_seconds_total", "Where the time of turns went.", ["part"]);
  for (const part of PARTS) parts.inc({ part }, 0);
  const rounds = histogram(
    "bedrock_round_seconds",
    "Tool rounds: from a request to the next one, with the tools between them.",
    [],
    LONG,
  );
  const queueWaits = histogram(
    "bedrock_queue_wait_seconds",
    "How long a follow-up waited behind earlier work.",
    [],
    LONG,
  );
  const stops = histogram(
    "bedrock_cancel_seconds",
    "From a Stop until everything that ran had ended.",
    ["stopping"],
    SHORT,
  );
  const retries = counter("bedrock_retries_total", "Requests made again, by the error before.", [
    "error_kind",
  ]);
  const requests = histogram(
    "bedrock_llm_request_seconds",
    "Requests to the model, until their end.",
    ["model", "outcome"],
    LONG,
  );
  const firstTokens = histogram(
    "bedrock_first_token_seconds",
    "From sending a request until the first token of the answer.",
    ["model"],
    LONG,
  );
  const tokens = counter("bedrock_tokens_total", "Tokens of responses.", ["model", "kind"]);
  const cost = counter("bedrock_cost_dollars_total", "What requests cost, by the models' prices.", ["model"]);
  const tools = histogram("bedrock_tool_seconds", "Tool calls, while they ran.", ["tool", "status"], LONG);
  const running = new Gauge({ name: "bedrock_running_tools", help: "Tools that run now.", registers });
  const commits = histogram(
    "bedrock_commit_seconds",
    "Commits, with the time that they waited for the conversation's row.",
    ["outcome"],
    SHORT,
  );
  // A rule must find all of them before the first one happens.
  for (const outcome of ["stored", "diverged", "failed"]) commits.zero({ outcome });
  for (const stopping of ["tool", "request", "sub_agents"]) stops.zero({ stopping });
  const waits = histogram(
    "bedrock_task_wait_seconds",
    "From the order of a request or a call until a worker began it.",
    ["activity"],
    SHORT,
  );
  return {
    ...exposition(registry),
    ...spanDrops(registers),
    countCommit: (outcome, seconds) => commits.observe({ outcome }, seconds),
    countWait: (activity, seconds) => waits.observe({ activity }, seconds),
    countFirstToken: (model, seconds) => firstTokens.observe({ model }, seconds),
    countRequest: (model, outcome, seconds) => requests.observe({ model, outcome }, seconds),
    countTokens(model, usage) {
      tokens.inc({ model, kind: "input" }, usage.inputTokens);
      tokens.inc({ model, kind: "output" }, usage.outputTokens);
      tokens.inc({ model, kind: "cache_read" }, usage.cacheReadTokens);
      tokens.inc({ model, kind: "cache_creation" }, usage.cacheCreationTokens);
    },
    countCost: (model, dollars) => cost.inc({ model }, dollars),
    countTool: (tool, status, seconds) => tools.observe({ tool, status }, seconds),
    countRunning(ended) {
      running.inc();
      const end = (): void => running.dec();
      void ended.then(end, end);
    },
    countTurn(turn) {
      turns.observe({ reason: turn.reason }, turn.seconds);
      for (const { part, seconds } of turn.parts) parts.inc({ part }, seconds);
      for (const seconds of turn.rounds) rounds.observe(seconds);
      if (turn.queuedSeconds !== null) queueWaits.observe(turn.queuedSeconds);
      for (const { stopping, seconds } of turn.stops) stops.observe({ stopping }, seconds);
      for (const kind of turn.retries) retries.inc({ error_kind: kind });
    },
  };
}

function exposition(registry: Registry): Exposition {
  return { contentType: registry.contentType, render: () => registry.metrics(), registry };
}

function spanDrops(registers: Registry[]): SpanDrops {
  const drops = new Counter({
    name: "bedrock_spans_dropped_total",
    help: "Spans that could not be stored or sent to the collector.",
    labelNames: ["target"],
    registers,
  });
  for (const target of ["store", "collector"]) drops.inc({ target }, 0);
  return { countDroppedSpans: (target, count) => drops.inc({ target }, count) };
}
