/**
 * Owns: the launcher of this process (launcher.pl), started with the first command and kept, and what is said to it.
 * A fork of the launcher takes a tenth of what a fork of this process would, and it outlives this process by the few
 * milliseconds that it takes to kill every command.
 */
import { spawn, type ChildProcessByStdio } from "node:child_process";
import { openSync } from "node:fs";
import { Socket } from "node:net";
import { constants } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Readable, Writable } from "node:stream";
import type { Confinement } from "./confinement.ts";
import type { Lease } from "./lease.ts";
import { encodeStep } from "./step.ts";
import { architecture, numberOf, type Architecture, type SystemCall } from "./system-calls.ts";

export type Program = {
  /** The program and its arguments. */
  readonly argv: readonly [string, ...string[]];
  readonly cwd: string;
  /** The whole environment: nothing is inherited. */
  readonly env: Readonly<Record<string, string>>;
  /** What it is kept from; null: nothing. Where it cannot be applied, the program is not run. */
  readonly confinement: Confinement | null;
  /** The launcher keeps it: it is not frozen with this process. */
  readonly lease?: Lease;
};

/** How a program ended. Nothing of it is left, nor of what it started. */
export type Ending =
  | { readonly kind: "exited"; readonly code: number }
  | { readonly kind: "killed"; readonly signal: NodeJS.Signals }
  | { readonly kind: "not_started"; readonly reason: string }
  /** Killed because all of it together took more memory than it may. */
  | { readonly kind: "out_of_memory" }
  /** Killed before it said how it ended. */
  | { readonly kind: "lost" };

export type Running = {
  /** Asks for the death of the program and of everything that it started. Harmless after the end. */
  readonly kill: () => void;
  readonly ended: Promise<Ending>;
};

export type OnStreams = (stdout: Readable, stderr: Readable) => void;

type Launcher = ChildProcessByStdio<Writable, Readable, null>;
type Pending = { readonly onStreams: OnStreams; readonly end: (ending: Ending) => void };

/** Milliseconds after the end of a lease in which this process, if it can, ends the command itself and says why. */
const GRACE_MS = 100;

const SCRIPT = join(import.meta.dirname, "launcher.pl");
const SIGNALS = new Map(Object.entries(constants.signals).map(([name, number]) => [number, name]));

let launcher: Launcher | null = null;
let lastId = 0;
const pending = new Map<string, Pending>();

/** Starts a program under a supervisor. `onStreams` gets its output, real pipes, unless it was not started. */
export function launch({ argv, cwd, env, confinement, lease }: Program, onStreams: OnStreams): Running {
  const arch = architecture();
  const fields = [cwd, ...variables({ ...env, ...confinement?.env }), ...argv];
  const refusal =
    arch === null
      ? `commands cannot be run on this architecture (${process.arch})`
      : fields.some((field) => field.includes("\0"))
        ? "a NUL character in the command, its directory or its environment"
        : null;
  if (arch === null || refusal !== null) {
    return { kill: () => undefined, ended: Promise.resolve({ kind: "not_started", reason: refusal ?? "" }) };
  }
  const id = String(++lastId);
  const current = (launcher ??= start(arch));
  const steps = (confinement?.steps ?? []).map((step) => encodeStep(step, arch));
  const confined = [String(confinement?.memoryBytes ?? 0), String(steps.length), ...steps];
  const bytes = Buffer.from([...confined, ...fields].map((field) => `${field}\0`).join(""));
  const until = (): number => (lease === undefined ? 0 : Math.ceil(lease.until + GRACE_MS));
  const unsubscribe = lease?.onRenewed(() => tell(current, `renew ${id} ${until()}\n`));
  const ended = new Promise<Ending>((end) => pending.set(id, { onStreams, end })).finally(unsubscribe);
  hold(current, true);
  tell(current, Buffer.concat([Buffer.from(`run ${id} ${bytes.length} ${until()}\n`), bytes]));
  const kill = (): void => {
    if (pending.has(id)) tell(current, `kill ${id}\n`);
  };
  return { ended, kill };
}

function tell(child: Launcher, what: string | Buffer): void {
  child.stdin.write(what);
  // A command may have stopped it.
  child.kill("SIGCONT");
}

function variables(env: Program["env"]): string[] {
  const entries = Object.entries(env).map(([name, value]) => `${name}=${value}`);
  return [String(entries.length), ...entries];
}

/** Those that the launcher makes itself. */
const OWN_CALLS: readonly SystemCall[] = ["prctl", "setsid", "setitimer", "clock_gettime"];

function start(arch: Architecture): Launcher {
  const numbers = OWN_CALLS.flatMap((name) => [name, String(numberOf(arch, name))]);
  const child = spawn("perl", [SCRIPT, String(process.pid), ...numbers], {
    // Out of the terminal's foreground group: Ctrl-C is for this process to act upon.
    detached: true,
    stdio: ["pipe", "pipe", "ignore"],
    env: { PATH: process.env["PATH"] },
  });
  const gone = (ending: Ending): void => {
    if (launcher === child) launcher = null;
    for (const [id, { end }] of pending) {
      pending.delete(id);
      end(ending);
    }
  };
  child.once("error", ({ message }) => {
    gone({ kind: "not_started", reason: `perl, which supervises commands, cannot be started: ${message}` });
  });
  child.once("exit", () => gone({ kind: "lost" }));
  child.stdin.on("error", () => {
    // Its end says it all.
  });
  createInterface(child.stdout).on("line", (line) => hear(child, line));
  child.unref();
  return child;
}

function hear(child: Launcher, line: string): void {
  const [, id = "", word = "", rest = ""] = /^(\d+) (\w+) ?(.*)$/.exec(line) ?? [];
  const command = pending.get(id);
  if (command === undefined) return;
  if (word === "started") {
    try {
      const [stdout, stderr] = rest.split(" ").map((descriptor) => openPipe(child, descriptor));
      if (stdout !== undefined && stderr !== undefined) command.onStreams(stdout, stderr);
    } catch {
      // The launcher is gone already, or no descriptor is left here: without its output it is not worth running.
      tell(child, `kill ${id}\n`);
    }
    tell(child, `opened ${id}\n`);
    return;
  }
  pending.delete(id);
  if (pending.size === 0) hold(child, false);
  command.end(endingOf(word, rest));
}

function endingOf(word: string, rest: string): Ending {
  switch (word) {
    case "exit":
      return { kind: "exited", code: Number(rest) };
    case "signal":
      return { kind: "killed", signal: (SIGNALS.get(Number(rest)) ?? "SIGKILL") as NodeJS.Signals };
    case "memory":
      return { kind: "out_of_memory" };
    case "error":
      return { kind: "not_started", reason: rest };
    default:
      return { kind: "lost" };
  }
}

/** A pipe of another process, opened anew here: programs can open /dev/stdout, which they cannot on Node's own. */
function openPipe(child: Launcher, descriptor: string): Socket {
  const fd = openSync(`/proc/${String(child.pid)}/fd/${descriptor}`, "r");
  return new Socket({ fd, readable: true, writable: false });
}

/** An idle launcher does not keep this process alive. */
function hold(child: Launcher, held: boolean): void {
  for (const stream of [child.stdin, child.stdout]) {
    if (!(stream instanceof Socket)) continue;
    if (held) stream.ref();
    else stream.unref();
  }
}
