/**
 * Owns: sending a person's decision. Where the token of this command may not decide, the person at the terminal is asked
 * for one that may. It is kept in this process's memory only.
 */
import { createInterface } from "node:readline";
import { Writable } from "node:stream";
import { createCalls, Refused, type Calls, type Server } from "../client/index.ts";
import type { Decision } from "./approval.ts";
import type { ProcessStreams, Terminal } from "./terminal.ts";

/**
 * Asks for a token, without an echo.
 *
 * @param signal takes the question back
 * @returns null: the person gave none
 */
export type AskToken = (problem: string, signal: AbortSignal) => Promise<string | null>;

export type DecisionOrder = {
  readonly id: string;
  readonly toolCallId: string;
  readonly decision: Decision;
  /** Aborted when the decision is void. */
  readonly signal: AbortSignal;
};

/** Tokens that are asked for before a refusal counts. */
const MOST_TOKENS = 3;

/**
 * Sends a decision.
 *
 * @param calls with the token of this command; by them the decision is sent first
 * @param askToken null: nobody can be asked
 * @throws Refused, Unreachable
 */
export async function sendDecision(
  {
    calls,
    server,
    askToken,
  }: { readonly calls: Calls; readonly server: Server; readonly askToken: AskToken | null },
  { id, toolCallId, decision, signal }: DecisionOrder,
) {
  const send = ({ persist }: Calls) =>
    persist((routes) =>
      routes.conversations[":id"].approval.$post({ param: { id }, json: { decision, toolCallId } }),
    );
  let sender = calls;
  for (let asked = 0; ; asked++) {
    try {
      return await send(sender);
    } catch (error) {
      if (askToken === null || asked === MOST_TOKENS || !needsToken(error)) throw error;
      const token = await askToken(asked === 0 ? "" : error.message, signal);
      if (token === null || signal.aborted) throw error;
      sender = createCalls({ ...server, token });
    }
  }
}

function needsToken(error: unknown): error is Refused {
  return error instanceof Refused && ["forbidden_role", "unauthorized"].includes(error.problem.code);
}

/** A question at a terminal. */
export function tokenQuestion({ input, errors }: ProcessStreams, terminal: Terminal): AskToken {
  return async (problem, signal) => {
    if (problem !== "") terminal.tell(problem, "red");
    else terminal.tell("This needs a token that may approve: `npm start` shows one in its terminal.");
    errors.write("Token (not shown): ");
    const silent = new Writable({ write: (_chunk, _encoding, done) => done() });
    const lines = createInterface({ input, output: silent, terminal: true });
    lines.on("error", () => undefined);
    try {
      const answer = await new Promise<string | null>((resolve) => {
        const end = () => resolve(null);
        signal.addEventListener("abort", end, { once: true });
        lines.once("close", end);
        lines.once("SIGINT", () => {
          process.emit("SIGINT");
          end();
        });
        lines.question("", resolve);
        if (signal.aborted) end();
      });
      return answer === null || answer.trim() === "" ? null : answer.trim();
    } finally {
      errors.write("\n");
      lines.close();
    }
  };
}
