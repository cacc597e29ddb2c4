/**
 * Owns: the workers of a run: the one that `npm start` keeps, and one beside it that is kept in the same way. With two
 * of them somebody goes on while one is away, and what wakes finds the world changed. Both change to another release
 * one after the other.
 */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { loadConfig } from "../config.ts";
import { workerProcess } from "../local/children.ts";
import { ManagedProcess } from "../local/managed-process.ts";
import type { Product } from "../test/support/product.ts";
import { kill, untilPresent, type Target } from "./processes.ts";

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
  readonly #make: () => ManagedProcess;
  #second: ManagedProcess;

  private constructor(product: Product, make: () => ManagedProcess) {
    this.#make = make;
    this.#second = make();
    this.targets = [() => product.pidOf("worker"), () => this.#second.pid];
  }

  static async start(product: Product, { root, folder, dataDir, provider }: Place): Promise<Workers> {
    mkdirSync(folder);
    const settings = loadConfig({ DATA_DIR: dataDir, ANTHROPIC_API_KEY: "test-key" });
    const config = { ...settings, payloadKey: product.payloadKey };
    const { databaseUrl, temporalAddress } = product;
    const spec = workerProcess(config, { databaseUrl, temporalAddress, modelUrl: provider });
    const files = { log: join(folder, "second-worker.log"), identity: join(folder, "second-worker.json") };
    const make = (): ManagedProcess =>
      new ManagedProcess({ ...spec, name: "second-worker", cwd: root }, files, () => undefined);
    const workers = new Workers(product, make);
    await workers.#second.start();
    return workers;
  }

  /** Nobody starts the second one again until the machine is up. */
  lose(): void {
    this.#second.kill();
  }

  /** It begins with the machine, after `lose`. */
  async startSecond(): Promise<void> {
    this.#second = this.#make();
    await this.#second.start();
  }

  /** A rolling deploy: each worker is ended in good order, and the next one runs from the sources as they are now. */
  async roll(): Promise<void> {
    const [first, second] = this.targets;
    await untilKilled(second, "SIGTERM");
    await pause(TOGETHER_MS);
    await untilKilled(first, "SIGTERM");
  }

  /** Nothing is remembered by any of them any more. */
  async restart(): Promise<void> {
    await Promise.all(this.targets.map((target) => untilKilled(target, "SIGKILL")));
  }

  stop(): Promise<void> {
    return this.#second.stop();
  }
}

/** It may be away when it is to be killed: by a fault, say. */
async function untilKilled(target: Target, how: "SIGKILL" | "SIGTERM"): Promise<void> {
  do await untilPresent(target);
  while (!(await kill(target, how)));
}
