/** Owns: a worker of a test's own that runs one command and is killed (doomed-worker.ts), and who would hinder its end. */
import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { onTestFinished } from "vitest";
import { isDead, survivors } from "../support/processes.ts";
import { until } from "../support/waiting.ts";

export type Mode = "restricted" | "unrestricted";
export type Groups = "with control groups" | "without control groups";

/** In a command: who is there to end it. */
export const LAUNCHER = `$(cut -d ' ' -f 4 /proc/$PPID/stat)`;
export const KEEPER = `$(cut -d ' ' -f 4 /proc/${LAUNCHER}/stat)`;
/** Says all of them in one line: supervisor, launcher, keeper. */
export const ANCESTORS = `echo "$PPID ${LAUNCHER} ${KEEPER}"`;

/** Four that do nothing but stop some of their ancestors, while one goes on. */
export const stopping = (ancestors: string): string =>
  `ancestors=${ancestors}; for n in 1 2 3 4; do (while :; do kill -STOP $ancestors; done) 2> /dev/null & done; echo up`;
const PTRACE = process.arch === "arm64" ? 117 : 101;
/** One that traces some of its ancestors. Held like that, a process hears of no signal but SIGKILL. */
export const tracing = (ancestors: string): string =>
  `perl -e 'syscall(${PTRACE}, 16, $_ + 0, 0, 0) for @ARGV; print "up\\n"; close STDOUT; sleep 300' ${ancestors} & wait`;

export type Ancestors = { readonly supervisor: number; readonly launcher: number; readonly keeper: number };

export function ancestorsIn(text: string): Ancestors | null {
  const [supervisor, launcher, keeper] = /^(\d+) (\d+) (\d+)$/m.exec(text)?.slice(1).map(Number) ?? [];
  if (supervisor === undefined || launcher === undefined || keeper === undefined) return null;
  return { supervisor, launcher, keeper };
}

/** Starts it; its command is up when it has said so. @param through a program that becomes the worker */
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
    /** The worker, its command, and those who were there to end it. */
    isGone: () => until(() => survivors(mark).length === 0 && Object.values(ancestors).every(isDead)),
  };
}
