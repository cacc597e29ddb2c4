/**
 * Owns: a worker process of a single test, which runs one command and is killed (doomed-worker.ts), and the scripts
 * that hinder the end of the command.
 */
import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { onTestFinished } from "vitest";
import { isDead, survivors } from "../support/processes.ts";
import { until } from "../support/waiting.ts";

export type Mode = "restricted" | "unrestricted";
export type Groups = "with control groups" | "without control groups";

/** Shell expressions, in a command, for the ids of the processes that end it. */
export const LAUNCHER = `$(cut -d ' ' -f 4 /proc/$PPID/stat)`;
export const KEEPER = `$(cut -d ' ' -f 4 /proc/${LAUNCHER}/stat)`;
/** Prints all three ids in one line: supervisor, launcher, keeper. */
export const ANCESTORS = `echo "$PPID ${LAUNCHER} ${KEEPER}"`;

/** Four processes that do nothing but stop these ancestors, while the command goes on. */
export const stopping = (ancestors: string): string =>
  `ancestors=${ancestors}; for n in 1 2 3 4; do (while :; do kill -STOP $ancestors; done) 2> /dev/null & done; echo up`;
const PTRACE = process.arch === "arm64" ? 117 : 101;
/** A process that traces these ancestors. A process that is held like that gets no signal but SIGKILL. */
export const tracing = (ancestors: string): string =>
  `perl -e 'syscall(${PTRACE}, 16, $_ + 0, 0, 0) for @ARGV; print "up\\n"; close STDOUT; sleep 300' ${ancestors} & wait`;

export type Ancestors = { readonly supervisor: number; readonly launcher: number; readonly keeper: number };

export function ancestorsIn(text: string): Ancestors | null {
  const [supervisor, launcher, keeper] = /^(\d+) (\d+) (\d+)$/m.exec(text)?.slice(1).map(Number) ?? [];
  if (supervisor === undefined || launcher === undefined || keeper === undefined) return null;
  return { supervisor, launcher, keeper };
}

/** Starts the worker and waits until its command says "up". @param through a program that becomes the worker */
export async function startWorker(
  script: string,
  mode: Mode,
  options: { readonly groups?: Groups; readonly through?: readonly string[] } = {},
) {
  const mark = randomUUID();
  const { groups = "with control groups", through = [] } = options;
  const node = [process.execPath, "--import", "tsx", `${import.meta.dirname}/doomed-worker.ts`];
  const [program, ...args] = [...through, ...node, `${ANCESTORS}; ${script}`, mode, groups];
  const worker = spawn(program, args, {
    stdio: ["ignore", "pipe", "inherit"],
    env: { ...process.env, MARK: mark },
  });
  onTestFinished(() => void worker.kill("SIGKILL"));
  let output = "";
  for await (const chunk of worker.stdout) {
    output += String(chunk);
    if (/^up$/m.test(output)) break;
  }
  const ancestors = ancestorsIn(output);
  if (ancestors === null) throw new Error(`The command said only: ${output}`);
  return {
    mark,
    output,
    ancestors,
    pid: worker.pid ?? 0,
    kill: () => worker.kill("SIGKILL"),
    /** Resolves when the worker, its command, and its supervisor, launcher and keeper are dead. */
    isGone: () => until(() => survivors(mark).length === 0 && Object.values(ancestors).every(isDead)),
  };
}
