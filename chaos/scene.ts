/**
 * Owns: what virtual users, the injector and the checks know of a run: the product, whether it runs as `npm start` or as
 * a team on several hosts, and what has happened to it.
 */
import type { Served } from "../test/support/product.ts";
import type { Journal } from "./journal.ts";
import type { Restarts } from "./restarts.ts";

export type Scene = {
  readonly product: Served;
  readonly restarts: Pick<Restarts, "complaints" | "count" | "hasForgotten" | "next" | "settled">;
  readonly journal: Journal;
  /** The folder in which all commands run. */
  readonly cwd: string;
  /** Milliseconds within which a conversation that works must make progress, all recoveries included. */
  readonly stuckAfterMs: number;
  /** Conversations that no virtual user has made. */
  readonly others: readonly string[];
  /** Replaces all workers of conversations: the new ones have no workflow in memory, and replay. */
  readonly replaceWorkers: () => Promise<void>;
};

/** A fault that was drawn, and waits for its moment. */
export type Fault = {
  /** Its target is present. */
  readonly isReady: () => boolean;
  /**
   * Strikes at once. Resolves when the fault is over, with whether it took hold; its consequences may still be going
   * on.
   */
  readonly strike: () => Promise<boolean>;
};
