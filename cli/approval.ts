/** Owns: asking the person at the terminal for the approval of Restricted mode's end: No, unless they say yes. */
import { createInterface } from "node:readline";
import type { Approval } from "../client/outcome.ts";
import type { ProcessStreams, Terminal } from "./terminal.ts";

/** Milliseconds. What is typed before was meant for something else. */
const GUARD_MS = 500;

export type Decision = "approve" | "deny";

/**
 * @param signal somebody else has decided, or the question is void
 * @returns null: the question was taken back; "nobody": the terminal was closed, and nothing is decided by that
 */
export async function askPerson(
  { input, errors }: ProcessStreams,
  terminal: Terminal,
  { reason }: Approval,
  signal: AbortSignal,
): Promise<Decision | "nobody" | null> {
  terminal.tell("The agent asks to leave Restricted mode:", "yellow");
  terminal.tell(
    reason
      .split("\n")
      .map((line) => `  ${line}`)
      .join("\n"),
  );
  terminal.tell("If you allow it, its commands have your rights and the network, in this conversation.");
  // Nothing that is printed then stands in the line of the question.
  signal.addEventListener("abort", () => errors.write("\n"), { once: true });
  const lines = createInterface({ input, output: errors, terminal: true });
  // Those of a terminal that is closed, whose end comes as well.
  lines.on("error", () => undefined);
  // The handler of the whole command stops the run, which takes the question back.
  lines.on("SIGINT", () => process.emit("SIGINT"));
  const ended = new Promise<null>((resolve) => {
    const end = () => resolve(null);
    signal.addEventListener("abort", end, { once: true });
    lines.once("close", end);
    if (signal.aborted) end();
  });
  try {
    const shownAt = performance.now();
    for (;;) {
      const answer = await Promise.race([
        ended,
        new Promise<string>((resolve) => lines.question("Allow it? [y/N] ", resolve)),
      ]);
      if (signal.aborted) return null;
      // By Ctrl-D, which is no yes.
      if (answer === null) return input.readableEnded ? "nobody" : "deny";
      if (performance.now() - shownAt < GUARD_MS) continue;
      return /^\s*y(es)?\s*$/i.test(answer) ? "approve" : "deny";
    }
  } finally {
    lines.close();
  }
}
