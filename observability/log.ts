/**
 * Owns: the log of a process: one line of JSON for each event, in one vocabulary (docs/observability.md). It never has the
 * text of a message or of a tool's output, and no secret.
 * Not here: what the command line and `npm start` say to a person.
 */
import { inspect } from "node:util";
import { pino, type DestinationStream, type Logger } from "pino";
import type { LogFormat, LogLevel } from "./log-settings.ts";
import { readable } from "./readable.ts";

export type Log = Logger;

/** The fields that an event may have besides `level`, `time`, `service` and `msg`. */
export type LogFields = {
  /** A conversation's id. */
  readonly conversation?: string;
  /** The number of a conversation's revision. */
  readonly revision?: number;
  /** The id of an HTTP request, which its answer has, too. */
  readonly request?: string;
  readonly method?: string;
  /** The pattern of the path. */
  readonly route?: string;
  readonly status?: number;
  /** Milliseconds. */
  readonly duration?: number;
  /** What went wrong: its type, message and stack. */
  readonly err?: unknown;
};

export type LogOptions = {
  /** `api`, `worker` */
  readonly service: string;
  readonly level: LogLevel;
  readonly format: LogFormat;
  /** Values that no line may show, wherever they come from. */
  readonly secrets: readonly string[];
  /** Standard output unless given. */
  readonly destination?: DestinationStream;
};

/** A secret of fewer characters would blank out ordinary words. */
const SHORTEST_SECRET = 8;
/** Bytes that wait for a reader who is slow. Beyond them lines are dropped: nobody's log may stop the process. */
const BACKLOG_BYTES = 1024 * 1024;
const BLANK = "[secret]";

type Sink = DestinationStream & { readonly flushSync?: () => void };

export function createLog({ service, level, format, secrets, destination }: LogOptions): Log {
  const out: Sink = destination ?? pino.destination({ fd: 1, sync: false, maxLength: BACKLOG_BYTES });
  const known = secrets.filter((secret) => secret.length >= SHORTEST_SECRET);
  const inJson = [...new Set(known.flatMap((secret) => [secret, JSON.stringify(secret).slice(1, -1)]))];
  const write = (line: string): void => {
    let clean = line;
    for (const secret of inJson) if (clean.includes(secret)) clean = clean.replaceAll(secret, BLANK);
    out.write(format === "text" ? readable(clean) : clean);
  };
  // pino calls it for `fatal`, after which a process may end at once.
  const sink: Sink = { write, flushSync: () => out.flushSync?.() };
  return pino(
    {
      level,
      base: { service },
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      serializers: { err: serialised },
    },
    sink,
  );
}

/** Errors of Postgres have the values of the query: only these fields are shown. */
function serialised(error: unknown): unknown {
  if (!(error instanceof Error)) return { message: inspect(error, { depth: 2 }) };
  const { name, message, stack, cause } = error;
  const code: unknown = "code" in error ? error.code : undefined;
  return {
    type: name,
    message,
    ...(typeof code === "string" || typeof code === "number" ? { code } : {}),
    stack,
    ...(cause === undefined ? {} : { cause: serialised(cause) }),
  };
}
