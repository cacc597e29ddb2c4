/**
 * Owns: that a child process ends when this process does, in whatever way: the kernel signals the child
 * (die-with-parent.pl). What the child has started itself gets no such signal.
 * Not here: what an earlier process left behind all the same (process-manager.ts, postgres.ts).
 */
import { constants } from "node:os";
import { join } from "node:path";
import { architecture, numberOf } from "../sandbox/system-calls.ts";

export type Command = { readonly command: string; readonly args: readonly string[] };

/** A user who starts a child must be able to enter this folder. */
export const SCRIPT_FOLDER = import.meta.dirname;

/**
 * The command that runs another one as a child of this process which gets `signal` when this process ends. SIGKILL also
 * ends a child that is stopped or does not listen. Start it in the main thread: the kernel takes the thread for the parent.
 */
export function dyingWithParent({ command, args }: Command, signal: NodeJS.Signals): Command {
  const arch = architecture();
  if (process.platform !== "linux" || arch === null) return { command, args };
  const numbers = [numberOf(arch, "prctl"), constants.signals[signal], process.pid].map(String);
  return { command: "perl", args: [join(SCRIPT_FOLDER, "die-with-parent.pl"), ...numbers, command, ...args] };
}
