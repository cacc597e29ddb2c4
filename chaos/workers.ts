/**
 * Owns: the workers of a run: the one that `npm start` keeps, and one beside it that is kept in the same way. With two
 * of them somebody goes on while one is away, and what wakes finds the world changed. Both change to another release
 * one after the other.
 */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { ManagedProcess } from "../local/managed-process.ts";
import type { Product } from "../test/support/product.ts";
import { kill, presentPid, type Target } from "./processes.ts";

/** Milliseconds for which both releases work together. */
const TOGETHER_MS = 3_000;

export type Place = {
  /** Where the sources are. */
  readonly root: string;
  /** For its files and its log. */
  readonly folder: string;
  readonly dataDir: string;
  /** Where the provider is reached. */
  readonly provider: string;
};

export class Workers {
  readonly targets: readonly [Target, Target];
  readonly #second: ManagedProcess;

  private constructor(product: Product, second: ManagedProcess) {
    this.#second = second;
    this.targets = [() => product.pidOf("worker"), () => second.pid];
  }

  static async start(product: Product, { root, folder, dataDir, provider }: Place): Promise<Workers> {
    mkdirSync(folder);
    const second = new ManagedProcess(
      {
        name: "second-worker",
        command: process.execPath,
        args: ["local/run.mjs", "worker.ts"],
        cwd: root,
        env: {
          PATH: process.env["PATH"],
          HOME: process.env["HOME"],
          DATABASE_URL: product.databaseUrl,
          TEMPORAL_ADDRESS: product.temporalAddress,
          DATA_DIR: dataDir,
          ANTHROPIC_API_KEY: "test-key",
          ANTHROPIC_BASE_URL: provider,
        },
        ready: { line: /^worker ready/m },
        stopWithin: 3_500,
      },
      { log: join(folder, "second-worker.log"), identity: join(folder, "second-worker.json") },
      () => undefined,
    );
    await second.start();
    return new Workers(product, second);
  }

  /** A rolling deploy: each worker is ended in good order, and the next one runs from the sources as they are now. */
  async roll(): Promise<void> {
    const [first, second] = this.targets;
    await kill(second, "SIGTERM");
    await presentPid(second);
    await pause(TOGETHER_MS);
    await kill(first, "SIGTERM");
  }

  /** Nothing is remembered by any of them any more. */
  async restart(): Promise<void> {
    await Promise.all(this.targets.map((target) => kill(target, "SIGKILL")));
  }

  stop(): Promise<void> {
    return this.#second.stop();
  }
}
