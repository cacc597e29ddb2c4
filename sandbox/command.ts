/**
 * Owns: running one command, from its start to the last byte that is waited for: its output, bounded while it is read,
 * its time-out and its end. When the result is known, nothing of the command is left (launcher.ts).
 * Not here: which command, and what its output means (tools/).
 */
import { StringDecoder } from "node:string_decoder";
import type { Readable } from "node:stream";
import { launch, type Ending, type Program } from "./launcher.ts";
import { isExpired } from "./lease.ts";
import { createOutputBuffer } from "./output.ts";

export type OutputStream = "stdout" | "stderr";

export type Command = Program & {
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
  /** By its signal, or because its lease expired. */
  readonly aborted: boolean;
  readonly flooded: boolean;
  /** All its processes together used more memory than they may. */
  readonly outOfMemory: boolean;
  /** Why it could not be started, as the system says. */
  readonly spawnError: string | null;
};

const FLOOD_BYTES = 256 * 1024 * 1024;
/**
 * Milliseconds to read what is still in the pipes when nothing is left that writes. A process of the system's own may
 * hold the pipes open.
 */
const DRAIN_MS = 100;
/**
 * Milliseconds to wait for a killed process. One in uninterruptible sleep does not die, and must not delay the result.
 */
const DEATH_MS = 2_000;

/** Runs a command to its end. Never rejects. */
export async function runCommand(command: Command): Promise<CommandResult> {
  const { signal, lease, timeoutMs, limitBytes, floodBytes = FLOOD_BYTES, onOutput } = command;
  const buffer = createOutputBuffer(limitBytes);
  const why = { timedOut: false, aborted: signal.aborted || isExpired(lease), flooded: false };
  const result = (ending: Ending): CommandResult => {
    const { text: output, truncated } = buffer.finish();
    return { ...exitOf(ending), outOfMemory: ending.kind === "out_of_memory", output, truncated, ...why };
  };
  if (why.aborted) return result({ kind: "lost" });

  let bytes = 0;
  const readers: { readonly closed: Promise<void>; readonly stop: () => void }[] = [];
  const read = (name: OutputStream, stream: Readable): void => {
    const decoder = new StringDecoder("utf8");
    const take = (text: string): void => {
      if (text === "") return;
      buffer.add(text);
      onOutput?.(name, text);
    };
    stream.on("data", (chunk: Buffer) => {
      if (why.flooded) return;
      bytes += chunk.length;
      if (bytes > floodBytes) kill("flooded");
      take(decoder.write(withoutNul(chunk)));
    });
    stream.on("error", () => {
      // What could be read was read.
    });
    const closed = new Promise<void>((resolve) => {
      stream.once("close", () => {
        take(decoder.end());
        resolve();
      });
    });
    readers.push({ closed, stop: () => stream.destroy() });
  };
  const running = launch(command, (stdout, stderr) => {
    read("stdout", stdout);
    read("stderr", stderr);
  });
  const overdue = deadline();
  const kill = (reason: keyof typeof why): void => {
    why[reason] = true;
    running.kill();
    overdue.start(DEATH_MS);
  };
  const onAbort = (): void => kill("aborted");
  const timer = setTimeout(kill, timeoutMs, "timedOut");
  signal.addEventListener("abort", onAbort, { once: true });

  const ending = await Promise.race([running.ended, overdue.passed.then((): Ending => ({ kind: "lost" }))]);
  clearTimeout(timer);
  overdue.stop();
  signal.removeEventListener("abort", onAbort);
  const drained = deadline();
  drained.start(DRAIN_MS);
  await Promise.race([Promise.all(readers.map((reader) => reader.closed)), drained.passed]);
  drained.stop();
  for (const reader of readers) reader.stop();
  // After the lease has expired nobody waits for the command, however it ended. An orphaned command was killed for
  // nothing that it did.
  why.aborted ||= isExpired(lease) || ending.kind === "orphaned";
  return result(ending);
}

/** Works on bytes: to remove a flood of NULs from text would keep this process from everything else. */
function withoutNul(chunk: Buffer): Buffer {
  if (!chunk.includes(0)) return chunk;
  let length = 0;
  for (const byte of chunk) if (byte !== 0) chunk[length++] = byte;
  return chunk.subarray(0, length);
}

function exitOf(ending: Ending): Pick<CommandResult, "exitCode" | "signal" | "spawnError"> {
  switch (ending.kind) {
    case "exited":
      return { exitCode: ending.code, signal: null, spawnError: null };
    case "killed":
      return { exitCode: null, signal: ending.signal, spawnError: null };
    case "not_started":
      return { exitCode: null, signal: null, spawnError: ending.reason };
    case "out_of_memory":
    case "lost":
    case "orphaned":
      return { exitCode: null, signal: "SIGKILL", spawnError: null };
  }
}

function deadline() {
  let timer: NodeJS.Timeout | undefined;
  let pass: () => void = () => undefined;
  const passed = new Promise<void>((resolve) => (pass = resolve));
  return {
    passed,
    start: (ms: number): void => void (timer ??= setTimeout(pass, ms)),
    stop: (): void => clearTimeout(timer),
  };
}
