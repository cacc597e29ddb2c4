/**
 * Owns: the moment of each fault: one in which a tool, a request and a commit are under way. It counts how often a
 * fault found such a moment. A run in which the faults missed proves nothing.
 */
import { setTimeout as pause } from "node:timers/promises";
import type { Sql } from "postgres";
import { openClient } from "../db/connect.ts";
import { commandsIn } from "./leftovers.ts";
import type { Pace } from "./pace.ts";
import type { Plan } from "./plan.ts";
import type { Random } from "./random.ts";
import type { Fault, Scene } from "./scene.ts";

/** How often each fault took hold while a tool, a request and a commit were under way. */
export type Hits<Name extends string> = Readonly<Record<Name, number>>;

/** The faults that there are, and how each is drawn. */
export type Faults<Name extends string> = {
  readonly names: readonly Name[];
  readonly draw: (name: Name, chance: Random) => Fault;
};

/** Milliseconds to wait for a good moment; then the fault strikes all the same. */
const TIMEOUT_MS = 15_000;
/** Milliseconds without a good moment after which another turn begins. */
const HURRY_MS = 400;
/** The number of missed faults that are tried again, and how many faults later. */
const SECOND_CHANCES = 12;
/** The chance that a fault does not wait for the one before it. */
const OVERLAP = 0.4;

export class Injector<Name extends string> {
  readonly #hits: Record<Name, number>;
  readonly #scene: Scene;
  readonly #draw: Faults<Name>["draw"];
  readonly #pace: Pace;
  readonly #sql: Sql;

  constructor(scene: Scene, { names, draw }: Faults<Name>, pace: Pace) {
    this.#hits = Object.fromEntries(names.map((name) => [name, 0])) as Record<Name, number>;
    this.#scene = scene;
    this.#draw = draw;
    this.#pace = pace;
    this.#sql = openClient(scene.product.databaseUrl, "chaos");
  }

  get hits(): Hits<Name> {
    return this.#hits;
  }

  /** @param deploy begins in the middle of the run, and is awaited only at the end. */
  async run(
    { faults, chance }: Plan<Name>,
    deploy: () => Promise<void>,
    say: (line: string) => void,
  ): Promise<void> {
    const middle = Math.floor(faults.length / 2);
    let deployed: Promise<void> = Promise.resolve();
    let running: Promise<void> = Promise.resolve();
    const left = [...faults];
    let chances = SECOND_CHANCES;
    for (let n = 0; left.length > 0; n++) {
      const next = left.shift();
      if (next === undefined) break;
      const { name, afterMs } = next;
      if (n === middle) deployed = awaitedLater(deploy());
      await pause(afterMs);
      if (chance.next() >= OVERLAP) await running;
      const fault = this.#draw(name, chance.fork());
      const isGood = await this.#untilGood(fault);
      const struck = this.#scene.journal.during(name, fault.strike).then((tookHold) => {
        if (isGood && tookHold) this.#hits[name]++;
        else if (chances-- > 0) left.splice(SECOND_CHANCES, 0, next);
      });
      running = awaitedLater(Promise.all([running, struck]).then(() => undefined));
      if (left.length === 0) await running;
      this.#pace.advance((n + 1) / (n + 1 + left.length));
      if ((n + 1) % 10 === 0) say(`${n + 1} of ${n + 1 + left.length} faults`);
    }
    await Promise.all([running, deployed]);
  }

  async close(): Promise<void> {
    await this.#sql.end({ timeout: 1 });
  }

  /** False when no good moment came in time. */
  async #untilGood({ isReady }: Fault): Promise<boolean> {
    const until = performance.now() + TIMEOUT_MS;
    let hurry = performance.now() + HURRY_MS;
    for (;;) {
      if ((await this.#isGood()) && isReady()) return true;
      if (performance.now() > until) return false;
      if (performance.now() > hurry) {
        this.#pace.hurry();
        hurry = performance.now() + HURRY_MS;
      }
      await pause(5);
    }
  }

  /** The most expensive check comes last. */
  async #isGood(): Promise<boolean> {
    const { product, cwd } = this.#scene;
    return (
      (await this.#isCommitting()) &&
      product.model.requests.some(({ end }) => end === null) &&
      commandsIn(cwd).length > 0
    );
  }

  /** False where Postgres does not answer, because it is away just then. */
  async #isCommitting(): Promise<boolean> {
    try {
      const asked = this.#sql`select from pg_stat_activity
        where query like 'select commit_revisions%' and state = 'active' limit 1`;
      const rows = await Promise.race([asked, pause(500, null)]);
      return rows !== null && rows.length > 0;
    } catch {
      return false;
    }
  }
}

/**
 * For a promise that is awaited later. Until then its rejection must not be unhandled: that would end this process, but
 * not the processes that it started.
 */
function awaitedLater(promise: Promise<void>): Promise<void> {
  promise.catch(() => undefined);
  return promise;
}
