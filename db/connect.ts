/**
 * Owns: how a connection to Postgres is made; the postgres package is used through this module only.
 * Not here: the queries.
 */
import { drizzle, type PostgresJsDatabase } from "drizzle-orm/postgres-js";
import postgres from "postgres";
import * as schema from "./schema.ts";

/** The raw client: its `bigint` columns are numbers, its `timestamptz` columns are Dates. */
type Sql = postgres.Sql<{ bigint: number }>;
export type Orm = PostgresJsDatabase<typeof schema>;

export type Database = {
  /** For a query that must be one statement. */
  readonly sql: Sql;
  /** For ordinary reads. It has a client of its own, because drizzle changes the type parsers of its client. */
  readonly orm: Orm;
  /** Waits for running queries, at most two seconds. */
  close(): Promise<void>;
};

export type ConnectionOptions = {
  /** Connections of each of the two pools; 8 by default. */
  readonly max?: number;
  /** As seen in pg_stat_activity. */
  readonly applicationName?: string;
};

/** Opens pools that connect on first use and reconnect by themselves; it does not fail when the server is down. */
export function openDatabase(url: string, options: ConnectionOptions = {}): Database {
  const { url: server, ...host } = serverOf(url);
  const shared = { ...optionsOf(options), ...host };
  const sql: Sql = postgres(server, { ...shared, types: { bigint: NUMERIC_BIGINT } });
  const client = postgres(server, shared);
  return {
    sql,
    orm: drizzle(client, { schema }),
    async close() {
      await Promise.all([sql.end({ timeout: 2 }), client.end({ timeout: 2 })]);
    },
  };
}

/**
 * A single connection for one purpose: migrating, listening, an advisory lock.
 *
 * @param session `any` also takes a standby, which can only be read
 */
export function openClient(
  url: string,
  applicationName: string,
  session: "read-write" | "any" = "read-write",
): postgres.Sql {
  const { url: server, ...host } = serverOf(url);
  const { target_session_attrs: readWrite, ...options } = optionsOf({ max: 1, applicationName });
  const attributes = session === "any" ? {} : { target_session_attrs: readWrite };
  return postgres(server, { ...options, ...attributes, ...host });
}

/** All counters of the schema stay far below 2^53. */
const NUMERIC_BIGINT: postgres.PostgresType<number> = {
  to: 20,
  from: [20],
  serialize: (value: number) => value.toString(),
  parse: (value: string) => Number(value),
};

/**
 * Seconds of silence after which the kernel asks whether the server's host is still there; ten seconds later the
 * connection ends. A listener has nothing to send, and would wait for a host that died for more than a minute.
 */
const KEEP_ALIVE = 5;

/** Longest pause between two attempts to connect, in seconds: a database that is back is found soon. */
const LONGEST_BACKOFF = 1;

function optionsOf({ max = 8, applicationName = "bedrock" }: ConnectionOptions) {
  return {
    max,
    connect_timeout: 5,
    keep_alive: KEEP_ALIVE,
    // Of several hosts in the URL the primary is taken; a standby that a stable address leads to counts as away.
    target_session_attrs: "read-write" as const,
    backoff: (attempt: number) => Math.min(LONGEST_BACKOFF, 0.02 * 2 ** attempt) * (0.5 + Math.random() / 2),
    onnotice: () => undefined,
    // We read no arrays. To learn their types, the driver would query each connection first. If the connection ended
    // during that query, the driver would reject an internal promise, which ends the process.
    fetch_types: false,
    connection: { application_name: applicationName, TimeZone: "UTC" },
  };
}

/** A URL gives a socket's folder as libpq does, `?host=/folder`; the driver accepts it only as an option. */
function serverOf(url: string): { url: string; host?: string } {
  if (!/[?&]host=/.test(url)) return { url };
  const parsed = new URL(url);
  const host = parsed.searchParams.get("host") ?? "";
  parsed.searchParams.delete("host");
  return { url: parsed.href, host };
}
