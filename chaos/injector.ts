/**
 * Owns: when each fault comes: in a moment in which a tool, a request and a commit are under way, and how often it found
 * one. A run in which the faults missed shows nothing.
 */
import { setTimeout as pause } from "node:timers/promises";
import type { Sql } from "postgres";
import { openClient } from "../db/connect.ts";
import { FAULTS, inject, type FaultName, type World } from "./faults.ts";
import type { Pace } from "./pace.ts";
import type { Plan } from "./plan.ts";
import type { Person } from "./person.ts";

export type InFlight = { readonly tool: boolean; readonly request: boolean; readonly commit: boolean };
export type Hits = Readonly<
  Record<FaultName, { tool: number; request: number; commit: number; all: number }>
>;

/** For how long a good moment is waited for; then the fault comes all the same. */
const PATIENCE_MS = 15_000;
/** So long without one, and more of the turns begin. */
const HURRY_MS = 400;
/** The chance that a fault does not wait for the one before it. */
const OVERLAP = 0.4;

export class Injector {
  readonly hits: Hits = Object.fromEntries(
    FAULTS.map((name) => [name, { tool: 0, request: 0, commit: 0, all: 0 }]),
  ) as Hits;
  readonly #world: World;
  readonly #people: readonly Person[];
  readonly #pace: Pace;
  readonly #sql: Sql;

  constructor(world: World, people: readonly Person[], pace: Pace) {
    this.#world = world;
    this.#people = people;
    this.#pace = pace;
    this.#sql = openClient(world.product.databaseUrl, "chaos");
  }

  /** @param deploy is begun in the middle of it, and is not waited for before the end. */
  async run(
    { faults, chance }: Plan,
    deploy: () => Promise<void>,
    say: (line: string) => void,
  ): Promise<void> {
    const middle = Math.floor(faults.length / 2);
    let deployed: Promise<void> = Promise.resolve();
    let running: Promise<void> = Promise.resolve();
    for (const [n, { name, afterMs }] of faults.entries()) {
      if (n === middle) deployed = deploy();
      await pause(afterMs);
      if (chance.next() >= OVERLAP) await running;
      const found = await this.#goodMoment();
      this.#count(name, found);
      running = Promise.all([running, inject(name, this.#world, chance.fork())]).then(() => undefined);
      this.#pace.advance((n + 1) / faults.length);
      if ((n + 1) % 10 === 0) say(`${n + 1} of ${faults.length} faults`);
    }
    await Promise.all([running, deployed]);
  }

  async close(): Promise<void> {
    await this.#sql.end({ timeout: 1 });
  }

  async #goodMoment(): Promise<InFlight> {
    const until = performance.now() + PATIENCE_MS;
    let hurry = performance.now() + HURRY_MS;
    for (;;) {
      const found = await this.#look();
      if ((found.tool && found.request && found.commit) || performance.now() > until) return found;
      if (performance.now() > hurry) {
        this.#pace.hurry();
        hurry = performance.now() + HURRY_MS;
      }
      await pause(5);
    }
  }

  async #look(): Promise<InFlight> {
    const commit = await this.#isCommitting();
    const { product } = this.#world;
    return {
      commit,
      tool: this.#people.some(({ isAtTool }) => isAtTool),
      request: product.model.requests.some(({ end }) => end === null),
    };
  }

  /** False where Postgres cannot say so: it is away just then. */
  async #isCommitting(): Promise<boolean> {
    try {
      const asked = this.#sql`select from pg_stat_activity
        where query like 'select commit_batches%' and state = 'active' limit 1`;
      const rows = await Promise.race([asked, pause(500, null)]);
      return rows !== null && rows.length > 0;
    } catch {
      return false;
    }
  }

  #count(name: FaultName, { tool, request, commit }: InFlight): void {
    const hits = this.hits[name];
    hits.tool += Number(tool);
    hits.request += Number(request);
    hits.commit += Number(commit);
    hits.all += Number(tool && request && commit);
  }
}
