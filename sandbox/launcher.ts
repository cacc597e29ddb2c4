/**
 * Owns: the launcher of this process (launcher.pl) and the messages between the two. It is started with the first
 * command and kept: its fork takes a tenth of the time of a fork of this process. It outlives this process by the few
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
import { openControlGroups, type ControlGroup, type ControlGroups } from "./control-groups.ts";
import type { Lease } from "./lease.ts";
import type { Limits } from "./limits.ts";
import { encodeSyscall } from "./syscall.ts";
import { architecture, numberOf, type Architecture, type SystemCall } from "./system-calls.ts";

export type Program = {
  /** The program and its arguments. */
  readonly argv: readonly [string, ...string[]];
  readonly cwd: string;
  /** The whole environment: nothing is inherited. */
  readonly env: Readonly<Record<string, string>>;
  /** null: not confined. A program whose confinement cannot be applied is not run. */
  readonly confinement: Confinement | null;
  /** The launcher enforces it, because it is not frozen together with this process. */
  readonly lease?: Lease;
};

/** How a program ended. Nothing of it is left, nor of what it started. */
export type Ending =
  | { readonly kind: "exited"; readonly code: number }
  | { readonly kind: "killed"; readonly signal: NodeJS.Signals }
  | { readonly kind: "not_started"; readonly reason: string }
  /** Killed because all its processes together used more memory than they may. */
  | { readonly kind: "out_of_memory" }
  /** Killed before its supervisor reported how it ended. */
  | { readonly kind: "lost" }
  /** Killed because its launcher, or the keeper, was killed. */
  | { readonly kind: "orphaned" };

export type Running = {
  /** Orders the kill of the program and of everything that it started. Harmless after the end. */
  readonly kill: () => void;
  readonly ended: Promise<Ending>;
};

export type OnStreams = (stdout: Readable, stderr: Readable) => void;

/** The launcher of this process, with the keeper above it, and what it runs. */
type Launcher = {
  readonly child: ChildProcessByStdio<Writable, Readable, null>;
  readonly groups: ControlGroups;
  readonly pending: Map<string, Pending>;
  /** The launcher kills what still runs, or has ended. */
  isEnding: boolean;
};
type Pending = { readonly onStreams: OnStreams; readonly end: (ending: Ending) => void };

/**
 * Milliseconds between the expiry of a lease and the time at which the launcher kills the command. In this time this
 * process, if it can, ends the command itself and reports why.
 */
const GRACE_MS = 100;
/** Milliseconds that this process waits for what is left after the keeper was killed. */
const KILLED_MS = 3_000;

const SCRIPT = join(import.meta.dirname, "launcher.pl");
const SIGNALS = new Map(Object.entries(constants.signals).map(([name, number]) => [number, name]));

let launcher: Launcher | null = null;
let lastId = 0;

/**
 * Starts a program under a supervisor. `onStreams` gets its output as real pipes; it is not called if the program was
 * not started.
 */
export function launch(program: Program, onStreams: OnStreams): Running {
  const { argv, cwd, env, confinement, lease } = program;
  const arch = architecture();
  const fields = [cwd, ...counted(variables({ ...env, ...confinement?.env })), ...argv];
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
  const { groups, pending } = current;
  const groupsOfCommand = groups.of(confinement?.limits ?? null);
  const order = [
    ...watchFields(confinement?.limits),
    String(groupsOfCommand.length),
    ...groupsOfCommand.flatMap(groupFields),
    ...counted((confinement?.steps ?? []).map((step) => encodeSyscall(step, arch))),
    ...fields,
  ];
  const bytes = Buffer.from(order.map((field) => `${field}\0`).join(""));
  const until = (): number => (lease === undefined ? 0 : Math.ceil(lease.expiresAt + GRACE_MS));
  const unsubscribe = lease?.onRenewed(() => tell(current, `renew ${id} ${until()}\n`));
  const ended = new Promise<Ending>((end) => pending.set(id, { onStreams, end })).finally(unsubscribe);
  hold(current, true);
  tell(current, Buffer.concat([Buffer.from(`run ${id} ${bytes.length} ${until()}\n`), bytes]));
  const kill = (): void => {
    if (!pending.has(id)) return;
    // This process kills the group itself, because no command can have stopped this process.
    groups.kill(id);
    tell(current, `kill ${id}\n`);
  };
  return { ended, kill };
}

function tell({ child }: Launcher, what: string | Buffer): void {
  child.stdin.write(what);
  // A command may have stopped the keeper, which continues the launcher.
  child.kill("SIGCONT");
}

const counted = (fields: readonly string[]): string[] => [String(fields.length), ...fields];

const variables = (env: Program["env"]): string[] =>
  Object.entries(env).map(([name, value]) => `${name}=${value}`);

function watchFields(limits: Limits | undefined): string[] {
  if (limits === undefined) return ["0", "0", "0", "0"];
  const { files, bytesPerFile, availableBytes } = limits.watch;
  return [limits.memoryBytes, files, bytesPerFile, availableBytes].map(String);
}

const groupFields = ({ parent, entry, events, settings }: ControlGroup): string[] => [
  parent,
  entry,
  events ?? "",
  ...counted(settings),
];

/** The system calls that keeper, launcher and supervisors make themselves. */
const OWN_CALLS: readonly SystemCall[] = [
  ...(["prctl", "setsid", "ppoll", "rt_sigprocmask", "clock_gettime", "clone3"] as const),
  ...(["openat", "close_range"] as const),
];

function start(arch: Architecture): Launcher {
  const numbers = OWN_CALLS.flatMap((name) => [name, String(numberOf(arch, name))]);
  const groups = openControlGroups();
  const lists = [groups.directories, groups.leftovers].map((directories) => directories.join("\n"));
  const child = spawn("perl", [SCRIPT, String(process.pid), ...lists, ...numbers], {
    // Outside the terminal's foreground process group: only this process acts upon Ctrl-C.
    detached: true,
    stdio: ["pipe", "pipe", "ignore"],
    env: { PATH: process.env["PATH"] },
  });
  const started: Launcher = { child, groups, pending: new Map(), isEnding: false };
  const end = (ending: Ending): void => {
    forget(started);
    for (const pending of started.pending.values()) pending.end(ending);
    started.pending.clear();
    groups.close();
  };
  child.once("error", ({ message }) => {
    end({ kind: "not_started", reason: `perl, which supervises commands, cannot be started: ${message}` });
  });
  child.once("exit", () => {
    forget(started);
    // The keeper may have been killed before it had killed everything.
    groups.kill();
    if (started.pending.size > 0) setTimeout(end, KILLED_MS, { kind: "orphaned" }).unref();
  });
  // Keeper, launcher and supervisors hold this output open, and each ends after what is below it. So the last of them
  // has ended.
  child.once("close", () => end({ kind: "orphaned" }));
  child.stdin.on("error", () => {
    // Ignored: the child's end reports everything.
  });
  createInterface(child.stdout).on("line", (line) => hear(started, line));
  child.unref();
  return started;
}

/** The next command starts another launcher. */
function forget(ending: Launcher): void {
  ending.isEnding = true;
  if (launcher === ending) launcher = null;
}

function hear(from: Launcher, line: string): void {
  if (line === "lost") forget(from);
  const [, id = "", word = "", rest = ""] = /^(\d+) (\w+) ?(.*)$/.exec(line) ?? [];
  const command = from.pending.get(id);
  if (command === undefined) return;
  if (word === "started") {
    try {
      const [stdout, stderr] = rest.split(" ").map(openPipe);
      if (stdout !== undefined && stderr !== undefined) command.onStreams(stdout, stderr);
    } catch {
      // The launcher has ended already, or this process has no descriptor left. Without its output the command is not
      // worth running.
      tell(from, `kill ${id}\n`);
    }
    tell(from, `opened ${id}\n`);
    return;
  }
  from.pending.delete(id);
  if (from.pending.size === 0) hold(from, false);
  const ending = endingOf(word, rest);
  const isKilled = ending.kind === "killed" || ending.kind === "lost";
  command.end(isKilled && from.isEnding ? { kind: "orphaned" } : ending);
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

/**
 * Opens a pipe of another process anew. Programs can open /dev/stdout on such a pipe, but not on Node's own streams.
 */
const openPipe = (path: string): Socket =>
  new Socket({ fd: openSync(path, "r"), readable: true, writable: false });

/** An idle launcher does not keep this process alive. */
function hold({ child }: Launcher, held: boolean): void {
  for (const stream of [child.stdin, child.stdout]) {
    if (!(stream instanceof Socket)) continue;
    if (held) stream.ref();
    else stream.unref();
  }
}
