/**
 * Owns: the child processes of one `npm start`: their names, their files, the order in which they end, and the ones
 * that an earlier `npm start` left behind. The kernel kills them with it, so there are some only where it could not.
 * Not here: the life of a single one (managed-process.ts); Postgres (postgres.ts).
 */
import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { ManagedProcess, type ProcessSpec } from "./managed-process.ts";
import { isRunning, parseIdentity, type ProcessIdentity } from "./process-identity.ts";
import { StartError } from "./start-error.ts";

export type ProcessManager = {
  /**
   * Starts a process and keeps it running; resolves when it is ready.
   *
   * @throws StartError when it does not become ready.
   */
  start(spec: ProcessSpec): Promise<void>;
  /** The id of a running process, else null. */
  pidOf(name: string): number | null;
  /** Ends all: one group of `stopOrder` after the other, those of a group together. */
  stop(): Promise<void>;
  /** Kills all at once. */
  kill(): void;
};

export type ProcessManagerOptions = {
  /** Existing folders: for the processes' identities, and for their logs. */
  readonly runDir: string;
  readonly logDir: string;
  /** Names of processes; one that is missing here ends last. */
  readonly stopOrder: readonly (readonly string[])[];
  readonly say: (line: string) => void;
};

export function createProcessManager(options: ProcessManagerOptions): ProcessManager {
  const { runDir, logDir, stopOrder, say } = options;
  const processes = new Map<string, ManagedProcess>();
  let stopping = false;
  return {
    async start(spec) {
      if (stopping) throw new StartError("The start was interrupted.");
      const files = { log: join(logDir, `${spec.name}.log`), identity: identityFile(runDir, spec.name) };
      const managed = new ManagedProcess(spec, files, say);
      processes.set(spec.name, managed);
      await managed.start();
    },
    pidOf(name) {
      return processes.get(name)?.pid ?? null;
    },
    async stop() {
      stopping = true;
      const rest = [...processes.keys()].filter((name) => !stopOrder.flat().includes(name));
      for (const group of [...stopOrder, rest]) {
        await Promise.all(group.map(async (name) => processes.get(name)?.stop()));
      }
    },
    kill() {
      stopping = true;
      for (const managed of processes.values()) managed.kill();
    },
  };
}

/** Milliseconds between SIGTERM and SIGKILL for a process that was left behind. */
const LEFTOVER_GRACE = 2000;

/**
 * Ends the processes that an earlier `npm start` on the same `runDir` could not end. If an id now belongs to another
 * process, that process is left alone.
 */
export async function stopLeftovers(
  options: Pick<ProcessManagerOptions, "runDir" | "stopOrder" | "say">,
  grace = LEFTOVER_GRACE,
): Promise<void> {
  const { runDir, stopOrder, say } = options;
  for (const group of stopOrder) {
    await Promise.all(
      group.map(async (name) => {
        const file = identityFile(runDir, name);
        const identity = readIdentity(file);
        if (identity !== null && isRunning(identity)) {
          say(`An earlier start left its ${name} process (${identity.pid}) behind; it is stopped`);
          await end(name, identity, grace);
        }
        rmSync(file, { force: true });
      }),
    );
  }
}

async function end(name: string, identity: ProcessIdentity, grace: number): Promise<void> {
  for (const [signal, within] of [
    ["SIGTERM", grace],
    ["SIGKILL", 5000],
  ] as const) {
    signalGroup(name, identity, signal);
    const deadline = performance.now() + within;
    while (isRunning(identity) && performance.now() < deadline) await pause(20);
    if (!isRunning(identity)) return;
  }
  throw new StartError(`The ${name} process ${identity.pid} of an earlier start cannot be ended.`);
}

function signalGroup(name: string, identity: ProcessIdentity, signal: NodeJS.Signals): void {
  if (!isRunning(identity)) return;
  try {
    process.kill(-identity.pid, signal);
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "EPERM") {
      throw new StartError(
        `The ${name} process ${identity.pid} of an earlier start belongs to another user: end it, or set DATA_DIR.`,
      );
    }
  }
}

function readIdentity(file: string): ProcessIdentity | null {
  try {
    return parseIdentity(readFileSync(file, "utf8"));
  } catch {
    return null;
  }
}

const identityFile = (runDir: string, name: string) => join(runDir, `${name}.json`);
