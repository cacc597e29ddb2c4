/** Owns: telling "Postgres is unavailable now" from "the statement is wrong". */

/** The server cannot be reached, is starting, stopping, full or read-only: the same call may succeed later. */
export function isUnavailable(error: unknown): boolean {
  // drizzle wraps what the driver threw, Node wraps the attempts at several addresses.
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    if (cause instanceof AggregateError && cause.errors.some(isUnavailable)) return true;
    const code = "code" in cause ? cause.code : undefined;
    if (typeof code === "string" && (CONNECTION_ERRORS.has(code) || SERVER_ERRORS.test(code))) return true;
  }
  return false;
}

/** The SQLSTATE of an error, and the constraint that was violated, where there is one. */
export function sqlErrorOf(error: unknown): {
  readonly code: string | null;
  readonly constraint: string | null;
} {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    if (!("code" in cause) || typeof cause.code !== "string") continue;
    const constraint = "constraint_name" in cause ? cause.constraint_name : null;
    return { code: cause.code, constraint: typeof constraint === "string" ? constraint : null };
  }
  return { code: null, constraint: null };
}

/** Error codes of Node and of the driver. ENOENT is a missing socket: this layer opens no files. */
const CONNECTION_ERRORS = new Set([
  "CONNECTION_CLOSED",
  "CONNECTION_DESTROYED",
  "CONNECTION_ENDED",
  "CONNECT_TIMEOUT",
  "EACCES",
  "EAI_AGAIN",
  "ECONNABORTED",
  "ECONNREFUSED",
  "ECONNRESET",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "ENOENT",
  "ENOTFOUND",
  "EPIPE",
  "ETIMEDOUT",
]);

/**
 * SQLSTATE: connection exceptions, insufficient resources, shutdowns and crashes; read-only (a standby that is
 * being promoted), serialisation failures and deadlocks, a lock timeout.
 */
const SERVER_ERRORS = /^(08...|53...|57P0[1-5]|25006|40001|40P01|55P03)$/;
