/** Owns: `bedrock` in a test, as a person or a script runs it: in pipes, or in a terminal of its own. */
import { spawn } from "node:child_process";
import { join } from "node:path";
import { expect, onTestFinished, vi } from "vitest";

const ROOT = join(import.meta.dirname, "..", "..");

export type Ended = { readonly code: number; readonly stdout: string; readonly stderr: string };

export type Running = {
  /** In a terminal, that of the terminal. */
  readonly pid: number;
  /** What it has written so far; in a terminal, everything is in `stdout`. */
  readonly stdout: () => string;
  readonly stderr: () => string;
  readonly type: (text: string) => void;
  readonly endInput: () => void;
  readonly kill: (signal: NodeJS.Signals) => void;
  readonly ended: Promise<Ended>;
  /** Waits until one of its outputs has this. */
  readonly shows: (text: string | RegExp) => Promise<void>;
};

export type Options = {
  readonly url: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  readonly isTerminal?: boolean;
  /** In a session of its own, which the end of the terminal does not end. The file gets its standard output. */
  readonly outlivesTerminal?: { readonly outputIn: string };
  /** The checkout of the program; this one unless given. */
  readonly root?: string;
  /** A command that runs the command that follows, in another surrounding. */
  readonly within?: readonly string[];
};

export function bedrock(
  args: readonly string[],
  { url, env = {}, cwd, isTerminal = false, outlivesTerminal, root = ROOT, within = [] }: Options,
): Running {
  // Each of these decides on colours.
  const { NO_COLOR: _, FORCE_COLOR: __, CI: ___, ...inherited } = process.env;
  const command = [...within, process.execPath, join(root, "cli", "bedrock.mjs"), ...args];
  const words = command.map(quoted).join(" ");
  const line =
    outlivesTerminal === undefined
      ? `exec ${words}`
      : `exec setsid --wait sh -c ${quoted(`${words} > ${outlivesTerminal.outputIn}`)}`;
  const [program = "", ...rest] = isTerminal
    ? ["script", "--quiet", "--return", "--flush", "--command", line, "/dev/null"]
    : command;
  const child = spawn(program, rest, {
    cwd: cwd ?? process.cwd(),
    env: { ...inherited, TERM: "xterm-256color", BEDROCK_URL: url, ...env },
    stdio: "pipe",
  });
  let [stdout, stderr] = ["", ""];
  child.stdout.on("data", (chunk: Buffer) => (stdout += chunk.toString()));
  child.stderr.on("data", (chunk: Buffer) => (stderr += chunk.toString()));
  child.stdin.on("error", () => undefined);
  const ended = new Promise<Ended>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code, signal) =>
      resolve({ code: code ?? (signal === null ? -1 : -2), stdout, stderr }),
    );
  });
  onTestFinished(async () => {
    child.kill("SIGKILL");
    await ended;
  });
  return {
    pid: child.pid ?? -1,
    stdout: () => stdout,
    stderr: () => stderr,
    type: (text) => void child.stdin.write(text),
    endInput: () => void child.stdin.end(),
    kill: (signal) => void child.kill(signal),
    ended,
    shows: (wanted) =>
      vi.waitFor(() => {
        const all = `${stdout}\n${stderr}`;
        if (!(typeof wanted === "string" ? all.includes(wanted) : wanted.test(all)))
          throw new Error(`not shown: ${String(wanted)} in ${all}`);
      }, 20_000),
  };
}

/** A command that needs no input, to its end. */
export function run(args: readonly string[], options: Options): Promise<Ended> {
  const running = bedrock(args, options);
  running.endInput();
  return running.ended;
}

/** The id of the conversation that a run names on standard error. */
export function idIn(output: string): string {
  const [id] = /[0-9a-f]{32}/.exec(output) ?? [];
  expect(id, output).toBeDefined();
  return id ?? "";
}

/** An event, as `--stream-json` prints it. */
type Line = { readonly number: number | null; readonly event: string; readonly data: unknown };

/** The whole lines of `--stream-json`: a command that was killed may have written half of one. */
export const linesOf = (output: string): readonly Line[] =>
  output
    .split("\n")
    .slice(0, -1)
    .map((line) => JSON.parse(line) as Line);

const quoted = (word: string): string => `'${word.replaceAll("'", "'\\''")}'`;
