/**
 * Owns: faults after which the product is started again, one at a time. Either the machine dies, and Temporal's
 * database comes back as it was earlier, or not at all; or the process of `npm start` alone is killed. It tells when
 * the product is ready again.
 */
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { openClient } from "../db/connect.ts";
import { familyOf, isDead } from "../test/support/processes.ts";
import type { Product } from "../test/support/product.ts";
import type { Journal } from "./journal.ts";
import { commandsIn } from "./leftovers.ts";
import { signal } from "./processes.ts";
import type { Workers } from "./workers.ts";

/** Other faults may make a start fail; then it is tried again. */
const STARTS_AT_MOST = 8;
/** Milliseconds within which a process stops after SIGSTOP. */
const STILL_MS = 500;
/** Milliseconds within which conversations come to rest after a start amid other faults. */
const REST_AMID_FAULTS_MS = 20_000;
/** Milliseconds within which all die when their machine, or their launcher, has died. */
const DEATH_MS = 5_000;
/** No worker has to work on a conversation in these states. A continuation goes on after a restart. */
const AT_REST = [
  ...(["idle", "error", "context_exhausted", "awaiting_mode_approval"] as const),
  ...(["completed", "failed", "awaiting_continuation"] as const),
];

export type Delays = {
  /** Milliseconds from the copy of Temporal's database to the death of all processes. */
  readonly copyAgeMs: number;
  /** Milliseconds from that death to the start. */
  readonly downMs: number;
};

export class Restarts {
  readonly complaints: string[] = [];
  /** Temporal's database was lost or put back: a conversation that got no message since then may have no workflow. */
  hasForgotten = false;
  readonly #product: Product;
  readonly #workers: Workers;
  readonly #cwd: string;
  readonly #copies: string;
  readonly #journal: Journal;
  readonly #checks: Promise<void>[] = [];
  #last: Promise<unknown> = Promise.resolve();
  /** How often the product was started again. */
  count = 0;
  readonly #waiting = new Set<() => void>();

  /** @param places the folder of all commands, and one for copies */
  constructor(
    product: Product,
    workers: Workers,
    journal: Journal,
    places: { readonly cwd: string; readonly copies: string },
  ) {
    this.#journal = journal;
    this.#product = product;
    this.#workers = workers;
    this.#cwd = places.cwd;
    this.#copies = places.copies;
    mkdirSync(this.#copies);
  }

  /** Performs work that must not overlap with a restart, or with other such work. */
  alone<T>(work: () => Promise<T>): Promise<T> {
    const turn = this.#last.then(work);
    this.#last = turn.catch(() => undefined);
    return turn;
  }

  /** Resolves when the product is ready after the next restart. */
  next(): Promise<void> {
    return new Promise((resolve) => void this.#waiting.add(resolve));
  }

  /** The machine dies and comes up again. Temporal's database is then as it was at the time of this call, or lost. */
  powerCut(name: string, temporal: "older" | "lost", { copyAgeMs, downMs }: Delays): Promise<boolean> {
    return this.alone(async () => {
      if (temporal === "older" && !(await this.#copy())) return false;
      await pause(copyAgeMs);
      const died = new Date();
      await this.#killEverything();
      this.#replace(temporal === "older");
      this.hasForgotten = true;
      await pause(downMs);
      await this.#start(name, died);
      await this.#insist(() => this.#workers.startSecond());
      return true;
    });
  }

  /** Kills `npm start` alone. What it has started ends with it; only Postgres takes its time, to shut down. */
  killLauncher(name: string, downMs: number): Promise<boolean> {
    return this.alone(async () => {
      const died = new Date();
      const started = (["api", "worker", "temporal"] as const).flatMap(
        (each) => attempt(() => this.#product.pidOf(each)) ?? [],
      );
      if (!signal(this.#product.pid, "SIGKILL")) return false;
      await untilOver(DEATH_MS, () => started.every(isDead));
      if (!started.every(isDead))
        this.complaints.push("npm start was killed, and what it had started was alive");
      await pause(downMs);
      // A restart is one of all workers.
      this.#workers.lose();
      await this.#start(name, died);
      await this.#insist(() => this.#workers.startSecond());
      return true;
    });
  }

  get #database(): string {
    return join(this.#product.dataDir, "temporal", "temporal.db");
  }

  /** Copies the database while the server is stopped; false where another fault has got in the way. */
  async #copy(): Promise<boolean> {
    const pid = attempt(() => this.#product.pidOf("temporal"));
    if (pid === null || !signal(pid, "SIGSTOP")) return false;
    try {
      // The copies show one moment only if the server was stopped from before the first to after the last.
      const until = performance.now() + STILL_MS;
      while (!standsStill(pid) && performance.now() < until) await pause(5);
      for (const suffix of ["", "-wal"])
        copy(this.#database + suffix, join(this.#copies, `temporal${suffix}`));
      return standsStill(pid);
    } finally {
      signal(pid, "SIGCONT");
    }
  }

  #replace(byCopy: boolean): void {
    for (const suffix of ["", "-wal", "-shm"]) {
      rmSync(this.#database + suffix, { force: true });
      if (byCopy && suffix !== "-shm") copy(join(this.#copies, `temporal${suffix}`), this.#database + suffix);
    }
  }

  /**
   * Kills everything, commands included. First come the two that start dead processes again: the manager of the second
   * worker (`lose`) and `npm start`.
   */
  async #killEverything(): Promise<void> {
    const postgres = attempt(() => this.#product.pidOf("postgres"));
    const roots = [this.#product.pid, postgres, ...this.#workers.targets.map((target) => attempt(target))];
    const doomed = new Set(roots.flatMap((pid) => (pid === null ? [] : familyOf(pid))));
    this.#workers.lose();
    for (const pid of doomed) signal(pid, "SIGKILL");
    const alive = (): boolean => [...doomed].some((pid) => !isDead(pid)) || commandsIn(this.#cwd).length > 0;
    await untilOver(DEATH_MS, () => !alive());
    if (alive()) this.complaints.push("after everything was killed, something was alive");
  }

  /** Resolves when all checks after restarts have ended. */
  async settled(): Promise<void> {
    await Promise.all(this.#checks);
  }

  async #start(name: string, died: Date): Promise<void> {
    this.count++;
    await this.#insist(() => this.#product.startAgain());
    // When the product is ready, conversations are at rest. If other faults get in the way, they come to rest soon
    // after.
    const others = this.#journal.since(died, name);
    if (others.length > 0) this.#checks.push(this.#comesToRest(died, others));
    else {
      const atWork = await this.#atWork(died);
      this.complaints.push(...atWork.map((each) => `${each} when the product was ready after "${name}"`));
    }
    for (const resolve of this.#waiting) resolve();
    this.#waiting.clear();
  }

  async #comesToRest(died: Date, others: readonly string[]): Promise<void> {
    const until = performance.now() + REST_AMID_FAULTS_MS;
    let atWork = await this.#atWork(died);
    while (atWork.length > 0 && performance.now() < until) {
      await pause(200);
      atWork = await this.#atWork(died);
    }
    this.complaints.push(...atWork.map((each) => `${each} long after a restart amid ${others.join(", ")}`));
  }

  /** The conversations whose rows are in a working state and have not changed since everything died. */
  async #atWork(died: Date): Promise<string[]> {
    const sql = openClient(this.#product.databaseUrl, "chaos");
    try {
      const rows = await sql<{ id: string; state: string }[]>`
        select id, state from conversations where updated_at < ${died} and state not in ${sql(AT_REST)}`;
      return rows.map(({ id, state }) => `${id}: ${state}`);
    } catch {
      // Another fault has hit Postgres already; the final check finds what stays at work.
      return [];
    } finally {
      await sql.end({ timeout: 1 });
    }
  }

  async #insist(start: () => Promise<void>): Promise<void> {
    for (let n = 1; ; n++) {
      try {
        await start();
        return;
      } catch (error) {
        if (n === STARTS_AT_MOST || this.#product.ended.aborted) throw error;
        await pause(500);
      }
    }
  }
}

function attempt<T>(ask: () => T): T | null {
  try {
    return ask();
  } catch {
    return null;
  }
}

/** Waits for the condition, at most so many milliseconds. */
async function untilOver(ms: number, holds: () => boolean): Promise<void> {
  const until = performance.now() + ms;
  while (!holds() && performance.now() < until) await pause(5);
}

function copy(from: string, to: string): void {
  if (existsSync(from)) copyFileSync(from, to);
  else rmSync(to, { force: true });
}

/** All of its threads are stopped. */
function standsStill(pid: number): boolean {
  const threads = attempt(() => readdirSync(`/proc/${pid}/task`)) ?? [];
  const stateOf = (thread: string): string | undefined =>
    /^State:\s+(\S)/m.exec(readFileSync(`/proc/${pid}/task/${thread}/status`, "utf8"))?.[1];
  return threads.length > 0 && threads.every((thread) => attempt(() => stateOf(thread)) === "T");
}
