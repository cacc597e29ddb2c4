/**
 * Owns: running one command in a process group of its own, from spawn to the last byte that is waited for. When it
 * exits, times out or is aborted, the whole group is killed.
 * Not here: which command, and what its output means (tools/).
 */
import { spawn, type ChildProcessByStdio } from "node:child_process";
import { StringDecoder } from "node:string_decoder";
import type { Readable } from "node:stream";
import { createOutputBuffer } from "./output.ts";

export type OutputStream = "stdout" | "stderr";

export type Command = {
  /** The program and its arguments. */
  readonly argv: readonly [string, ...string[]];
  readonly cwd: string;
  /** The whole environment: nothing is inherited. */
  readonly env: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
  readonly timeoutMs: number;
  /** Bytes of output that are kept (output.ts). */
  readonly limitBytes: number;
  /** Bytes of output after which the command is killed; reading endless output costs a whole core. */
  readonly floodBytes?: number;
  readonly onOutput?: (stream: OutputStream, text: string) => void;
};

export type CommandResult = {
  /** null when it was killed or never started. */
  readonly exitCode: number | null;
  readonly signal: NodeJS.Signals | null;
  /** Both streams in the order of arrival, valid text without NUL. */
  readonly output: string;
  readonly truncated: boolean;
  readonly timedOut: boolean;
  readonly aborted: boolean;
  readonly flooded: boolean;
  /** Why it could not be started, as the system says. */
  readonly spawnError: string | null;
};

const FLOOD_BYTES = 256 * 1024 * 1024;
/** For what is still in the pipes when the command has exited: a survivor may hold them open for ever. */
const DRAIN_MS = 100;
/** For a killed process that does not die (uninterruptible sleep): the result must not wait for it. */
const DEATH_MS = 2_000;

type Child = ChildProcessByStdio<null, Readable, Readable>;

/** Runs a command to its end. Never rejects. */
export async function runCommand(command: Command): Promise<CommandResult> {
  const { argv, cwd, env, signal, timeoutMs, limitBytes, floodBytes = FLOOD_BYTES, onOutput } = command;
  const buffer = createOutputBuffer(limitBytes);
  const ending = { timedOut: false, aborted: signal.aborted, flooded: false };
  const result = (exit: Exit): CommandResult => {
    const { text: output, truncated } = buffer.finish();
    return { ...exit, output, truncated, ...ending };
  };
  if (signal.aborted) return result(NEVER_RAN);

  const [program, ...args] = argv;
  let child: Child;
  try {
    child = spawn(program, args, { cwd, env, detached: true, stdio: ["ignore", "pipe", "pipe"] });
  } catch (error) {
    return result({ ...NEVER_RAN, spawnError: String(error) });
  }

  const { exited, giveUp } = waitForExit(child);
  const kill = (reason: keyof typeof ending): void => {
    ending[reason] = true;
    killGroup(child);
    setTimeout(giveUp, DEATH_MS).unref();
  };
  const onAbort = (): void => kill("aborted");
  const timer = setTimeout(kill, timeoutMs, "timedOut");
  signal.addEventListener("abort", onAbort, { once: true });

  let bytes = 0;
  const read = (stream: OutputStream): Promise<void> => {
    const decoder = new StringDecoder("utf8");
    const take = (text: string): void => {
      if (text === "") return;
      const clean = text.replaceAll("\0", "");
      buffer.add(clean);
      onOutput?.(stream, clean);
    };
    child[stream].on("data", (chunk: Buffer) => {
      if (ending.flooded) return;
      bytes += chunk.length;
      if (bytes > floodBytes) kill("flooded");
      take(decoder.write(chunk));
    });
    child[stream].on("error", () => {
      // What could be read was read.
    });
    return new Promise((resolve) => {
      child[stream].once("close", () => {
        take(decoder.end());
        resolve();
      });
    });
  };
  const drained = Promise.all([read("stdout"), read("stderr")]);

  const exit = await exited;
  clearTimeout(timer);
  signal.removeEventListener("abort", onAbort);
  // Whatever the command left running in the background ends with it.
  killGroup(child);
  await Promise.race([drained, delay(DRAIN_MS)]);
  child.stdout.destroy();
  child.stderr.destroy();
  return result(exit);
}

type Exit = Pick<CommandResult, "exitCode" | "signal" | "spawnError">;
const NEVER_RAN: Exit = { exitCode: null, signal: null, spawnError: null };

/** `exit`, not `close`: a background process that holds a pipe delays `close` for as long as it lives. */
function waitForExit(child: Child): { readonly exited: Promise<Exit>; readonly giveUp: () => void } {
  let settle: (exit: Exit) => void;
  const exited = new Promise<Exit>((resolve) => {
    settle = resolve;
    child.once("exit", (exitCode, signal) => resolve({ exitCode, signal, spawnError: null }));
    child.once("error", (error) => resolve({ ...NEVER_RAN, spawnError: error.message }));
  });
  return { exited, giveUp: () => settle({ ...NEVER_RAN, signal: "SIGKILL" }) };
}

function killGroup(child: Child): void {
  if (child.pid === undefined) return;
  try {
    process.kill(-child.pid, "SIGKILL");
  } catch {
    // The group is empty, or no longer ours.
  }
}

function delay(ms: number): Promise<void> {
  return new Promise((resolve) => void setTimeout(resolve, ms).unref());
}
