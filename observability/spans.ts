/**
 * Owns: spans, which record what a process did for a turn and how long each part took. They are made by our own code in
 * the API and in activities, never by an interceptor of workflows: whether they are recorded leaves no mark in a history.
 * A span that has ended waits in a bounded queue, and leaves in batches in the background. What cannot leave is dropped.
 * Not here: where spans go (db/spans.ts, otlp.ts); what a turn's spans say (turn.ts).
 */
import {
  ROOT_CONTEXT,
  SpanStatusCode,
  trace,
  TraceFlags,
  type Attributes,
  type Span,
} from "@opentelemetry/api";
import {
  BasicTracerProvider,
  BatchSpanProcessor,
  RandomIdGenerator,
  type IdGenerator,
  type ReadableSpan,
  type SpanExporter,
} from "@opentelemetry/sdk-trace-base";
import { ExportResultCode } from "@opentelemetry/core";
import { resourceFromAttributes } from "@opentelemetry/resources";
import { rootSpanIdOf, traceIdOf } from "./trace-id.ts";

/** `message`: the API takes one; `request`, `tool`, `commit`: an activity. */
type SpanName = "message" | "request" | "tool" | "commit";

/** A point in time within a span. */
type Mark = "committed" | "sent" | "first_token";

/** What a span belongs to. `operationId`: the request or call, by generation id. */
type Subject = {
  readonly conversationId: string;
  readonly cycleId: string | null;
  readonly operationId: string | null;
};

/** A span as it is stored. Times are milliseconds since the epoch. */
export type SpanRecord = Subject & {
  readonly traceId: string;
  readonly spanId: string;
  readonly name: string;
  readonly startedAt: number;
  readonly endedAt: number;
  readonly marks: readonly { readonly name: string; readonly at: number }[];
  readonly attributes: Readonly<Record<string, string | number | boolean>>;
};

export type OpenSpan = {
  readonly mark: (mark: Mark) => void;
  readonly set: (attributes: Attributes) => void;
  /** @param outcome a word; `failed` as its beginning marks the span as an error */
  readonly end: (outcome: string) => void;
};

export type Spans = {
  /** @param startedAt milliseconds since the epoch; now unless given */
  readonly open: (name: SpanName, subject: Subject, startedAt?: number) => OpenSpan;
  /**
   * Records what was learned of a turn after it: the span of the whole turn, and those of its phases, which no process
   * has seen from beginning to end.
   */
  readonly addTurn: (turn: EndedTurn) => void;
  /** Gives what waits a moment to leave. */
  readonly close: () => Promise<void>;
};

export type EndedTurn = {
  readonly conversationId: string;
  readonly cycleId: string;
  readonly startedAt: number;
  readonly endedAt: number;
  readonly attributes: Attributes;
  readonly phases: readonly {
    readonly name: string;
    readonly startedAt: number;
    readonly endedAt: number;
    readonly attributes: Attributes;
  }[];
};

export type SpansOptions = {
  /** `bedrock-api`, `bedrock-worker` */
  readonly service: string;
  /** Of spans that processes record; null: nobody keeps them for the page. */
  readonly store: ((spans: readonly SpanRecord[]) => Promise<void>) | null;
  /** A collector; it gets all spans, those of whole turns, too. */
  readonly exporter: SpanExporter | null;
  /** Called with the number of spans that could not leave. */
  readonly dropped?: (target: "store" | "collector", count: number) => void;
};

/** Spans that wait; about a kilobyte each. More are dropped. */
const WAITING = 4_096;
const BATCH = 512;
/** Milliseconds between batches: a page that is opened after a turn shows it whole. */
const EVERY_MS = 500;
const GIVE_UP_MS = 5_000;
const CLOSE_MS = 500;

const SCOPE = "bedrock";

export const NO_SPANS: Spans = {
  open: () => ({ mark: () => undefined, set: () => undefined, end: () => undefined }),
  addTurn: () => undefined,
  close: () => Promise.resolve(),
};

export function createSpans({ service, store, exporter, dropped = () => undefined }: SpansOptions): Spans {
  if (store === null && exporter === null) return NO_SPANS;
  const resource = resourceFromAttributes({ "service.name": service });
  const batched = (to: SpanExporter): BatchSpanProcessor =>
    new BatchSpanProcessor(to, {
      maxQueueSize: WAITING,
      maxExportBatchSize: BATCH,
      scheduledDelayMillis: EVERY_MS,
      exportTimeoutMillis: GIVE_UP_MS,
    });
  const collector =
    exporter === null ? [] : [batched(counting(exporter, (count) => dropped("collector", count)))];
  const stored = store === null ? [] : [batched(storeExporter(store, (count) => dropped("store", count)))];
  const ids = new ChosenIds();
  const provider = new BasicTracerProvider({ resource, spanProcessors: [...collector, ...stored] });
  // The page makes the phases of a turn from the stored states, so only a collector needs them.
  const ofTurns = new BasicTracerProvider({ resource, spanProcessors: collector, idGenerator: ids });
  const tracer = provider.getTracer(SCOPE);
  const turnTracer = ofTurns.getTracer(SCOPE);

  return {
    open(name, subject, startedAt) {
      const attributes: Attributes = { "bedrock.conversation": subject.conversationId };
      if (subject.cycleId !== null) attributes["bedrock.cycle"] = subject.cycleId;
      if (subject.operationId !== null) attributes["bedrock.operation"] = subject.operationId;
      const started = startedAt ?? Date.now();
      const context =
        subject.cycleId === null ? ROOT_CONTEXT : contextOf(subject.conversationId, subject.cycleId);
      const span = tracer.startSpan(name, { startTime: started, attributes }, context);
      return openSpan(span);
    },
    addTurn({ conversationId, cycleId, startedAt, endedAt, attributes, phases }) {
      if (collector.length === 0) return;
      const traceId = traceIdOf({ conversationId, cycleId });
      const common = { "bedrock.conversation": conversationId, "bedrock.cycle": cycleId };
      ids.choose(traceId, rootSpanIdOf(traceId));
      const whole = turnTracer.startSpan(
        "turn",
        { startTime: startedAt, root: true, attributes: { ...common, ...attributes } },
        ROOT_CONTEXT,
      );
      for (const phase of phases) {
        const context = trace.setSpan(ROOT_CONTEXT, whole);
        turnTracer
          .startSpan(
            phase.name,
            { startTime: phase.startedAt, attributes: { ...common, ...phase.attributes } },
            context,
          )
          .end(phase.endedAt);
      }
      whole.end(endedAt);
    },
    async close() {
      const ended = Promise.allSettled([provider.shutdown(), ofTurns.shutdown()]);
      // A collector that does not answer holds up no end of a process.
      await Promise.race([ended, new Promise((resolve) => setTimeout(resolve, CLOSE_MS).unref())]);
    },
  };
}

function openSpan(span: Span): OpenSpan {
  return {
    mark: (mark) => void span.addEvent(mark, Date.now()),
    set: (attributes) => void span.setAttributes(attributes),
    end: (outcome) => {
      span.setAttribute("bedrock.outcome", outcome);
      if (outcome.startsWith("failed")) span.setStatus({ code: SpanStatusCode.ERROR, message: outcome });
      span.end(Date.now());
    },
  };
}

/** The parent of a turn's spans is the span of the whole turn, which is recorded when the turn has ended. */
function contextOf(conversationId: string, cycleId: string) {
  const traceId = traceIdOf({ conversationId, cycleId });
  return trace.setSpanContext(ROOT_CONTEXT, {
    traceId,
    spanId: rootSpanIdOf(traceId),
    traceFlags: TraceFlags.SAMPLED,
    isRemote: true,
  });
}

/** Random ids, except those that are set for the next span without a parent. */
class ChosenIds implements IdGenerator {
  readonly #random = new RandomIdGenerator();
  #traceId: string | null = null;
  #spanId: string | null = null;

  choose(traceId: string, spanId: string): void {
    this.#traceId = traceId;
    this.#spanId = spanId;
  }

  generateTraceId(): string {
    const chosen = this.#traceId;
    this.#traceId = null;
    return chosen ?? this.#random.generateTraceId();
  }

  generateSpanId(): string {
    const chosen = this.#spanId;
    this.#spanId = null;
    return chosen ?? this.#random.generateSpanId();
  }
}

type Answer = Parameters<SpanExporter["export"]>[1];
/** Hands every batch on to Postgres, and answers success: what is lost is counted, and nobody else is to be told. */
function storeExporter(
  store: NonNullable<SpansOptions["store"]>,
  lost: (count: number) => void,
): SpanExporter {
  return {
    export(spans: ReadableSpan[], answer: Answer) {
      store(spans.map(recordOf))
        .catch(() => lost(spans.length))
        .finally(() => answer({ code: ExportResultCode.SUCCESS }));
    },
    shutdown: () => Promise.resolve(),
  };
}

function counting(exporter: SpanExporter, lost: (count: number) => void): SpanExporter {
  return {
    export(spans: ReadableSpan[], answer: Answer) {
      exporter.export(spans, ({ code }) => {
        if (code !== ExportResultCode.SUCCESS) lost(spans.length);
        answer({ code: ExportResultCode.SUCCESS });
      });
    },
    shutdown: () => exporter.shutdown(),
  };
}

function recordOf(span: ReadableSpan): SpanRecord {
  const { traceId, spanId } = span.spanContext();
  const {
    "bedrock.conversation": conversationId,
    "bedrock.cycle": cycleId,
    "bedrock.operation": operationId,
    ...attributes
  } = span.attributes;
  return {
    conversationId: String(conversationId),
    cycleId: textOrNull(cycleId),
    operationId: textOrNull(operationId),
    ...{ traceId, spanId, name: span.name },
    startedAt: milliseconds(span.startTime),
    endedAt: milliseconds(span.endTime),
    marks: span.events.map(({ name, time }) => ({ name, at: milliseconds(time) })),
    attributes: Object.fromEntries(Object.entries(attributes).flatMap(plain)),
  };
}

const textOrNull = (value: unknown): string | null => (typeof value === "string" ? value : null);

function plain([name, value]: [string, unknown]): [string, string | number | boolean][] {
  return typeof value === "string" || typeof value === "number" || typeof value === "boolean"
    ? [[name, value]]
    : [];
}

/** @param time seconds and nanoseconds */
const milliseconds = ([seconds, nanoseconds]: readonly [number, number]): number =>
  seconds * 1_000 + nanoseconds / 1e6;
