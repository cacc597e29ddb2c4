/**
 * Owns: requests that are sent again when it is not known whether the server has carried them out: that is said, and
 * they are repeated for a while. A server that is not there at all is not waited for.
 */
import { mayRepeat, Unreachable, type Calls } from "../client/index.ts";
import type { Terminal } from "./terminal.ts";

export type Insistence = {
  readonly terminal: Terminal;
  /** Milliseconds; a minute is the most. */
  readonly patience?: number;
  /** Said to the person when no answer came: what may be true all the same. */
  readonly doubt?: string;
};

/** Node's codes of a connection that was never made, so that nothing was carried out. */
const NOT_THERE = new Set(["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "EHOSTUNREACH", "ENETUNREACH"]);

/** The calls, of which `persist` gives up at once where no server is, and otherwise says that it tries again. */
export function insistent(calls: Calls, { terminal, patience = 60_000, doubt }: Insistence): Calls {
  const persist: Calls["persist"] = async (request) => {
    try {
      return await calls.call(request);
    } catch (error) {
      if (!mayRepeat(error) || isNotThere(error)) throw error;
      terminal.tell(`${(error as Error).message} Trying again …`, "yellow");
    }
    try {
      return await calls.persist(request, AbortSignal.timeout(patience));
    } catch (error) {
      if (mayRepeat(error) && doubt !== undefined) terminal.tell(doubt);
      throw error;
    }
  };
  return { ...calls, persist };
}

function isNotThere(error: unknown): boolean {
  if (!(error instanceof Unreachable)) return false;
  // fetch's own error, and below it the one of the connection; without a code, fetch itself refuses the address.
  const { cause } = error.cause as { readonly cause?: unknown };
  return cause instanceof Error && (!("code" in cause) || NOT_THERE.has(String(cause.code)));
}
