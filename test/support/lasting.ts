/**
 * Owns: a command that says "begun" and goes on until it is killed: a shell that ignores signals, and a child that has
 * left its session. It writes no file, so it runs in either mode; a mark in their environment finds its processes.
 */
import { randomUUID } from "node:crypto";
import { toolCall, type ScriptedBlock } from "../../local/scripted/script.ts";
import { survivors } from "./processes.ts";
import { until } from "./waiting.ts";

export type LastingCommand = {
  readonly call: ScriptedBlock;
  /** Resolves when the shell and the child run. */
  readonly running: () => Promise<unknown>;
  /** The ids of its processes that live now. */
  readonly processes: () => readonly string[];
};

export function lastingCommand(): LastingCommand {
  const mark = randomUUID();
  const script = `echo begun; trap "" TERM HUP; (setsid sleep 300 &); while :; do sleep 1; done`;
  const processes = (): readonly string[] => survivors(mark);
  return {
    call: toolCall("bash", { command: `MARK=${mark} bash -c '${script}'` }),
    // The shell, its `sleep 1`, and the child.
    running: () => until(() => processes().length >= 3),
    processes,
  };
}
