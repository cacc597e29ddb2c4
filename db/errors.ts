/** Owns: telling "Postgres cannot be asked now" from "what was asked is wrong". */

/** The server cannot be reached, is starting, stopping or full: the same call may succeed later. */
export function isUnavailable(error: unknown): boolean {
  throw new Error("todo");
}
