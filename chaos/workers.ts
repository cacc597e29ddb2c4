/**
 * Owns: the workers of a run: the one that `npm start` keeps running, and a second one that is kept running in the same
 * way. One goes on while the other is away, and a worker that wakes finds that everything has moved on. Both change to
 * another release one after the other.
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
  /** The address of the provider. */
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
    const config = { ...settings, payloadKeys: product.payloadKeys };
    const { databaseUrl, temporalAddress } = product;
    const spec = workerProcess(config, { databaseUrl, temporalAddress, modelUrl: provider });
    const files = { log: join(folder, "second-worker.log"), identity: join(folder, "second-worker.json") };
    const make = (): ManagedProcess =>
      new ManagedProcess({ ...spec, name: "second-worker", cwd: root }, files, () => undefined);
    const workers = new Workers(product, make);
    await workers.#second.start();
    return workers;
  }

  /** Kills the second worker; nothing starts it again until the machine is up. */
  lose(): void {
    this.#second.kill();
  }

  /** Starts the second worker together with the machine, after `lose`. */
  async startSecond(): Promise<void> {
    this.#second = this.#make();
    await this.#second.start();
  }

  /** A rolling deploy: each worker ends in order, and its successor runs from the current sources. */
  async roll(): Promise<void> {
    const [first, second] = this.targets;
    await untilKilled(second, "SIGTERM");
    await pause(TOGETHER_MS);
    await untilKilled(first, "SIGTERM");
  }

  /** Kills both workers, so that no workflow stays cached. */
  async restart(): Promise<void> {
    await Promise.all(this.targets.map((target) => untilKilled(target, "SIGKILL")));
  }

  stop(): Promise<void> {
    return this.#second.stop();
  }
}

/** The process may be away at that moment, for example by a fault; then this waits for it. */
async function untilKilled(target: Target, how: "SIGKILL" | "SIGTERM"): Promise<void> {
  do await untilPresent(target);
  while (!(await kill(target, how)));
}
