/**
 * Measures: the product on a Temporal server for production, on Postgres: tool rounds at once, and a cancel, with one
 * worker and with two.
 */
import { mkdtempSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { startProductionTemporal } from "../../test/support/production-temporal.ts";
import { startProduct } from "../../test/support/product.ts";
import { spawnWorker } from "../../test/support/worker-process.ts";
import { cancels, type Cancels } from "../cancel.ts";
import { temporalFloor } from "../floor.ts";
import type { Processes } from "../processes.ts";
import { rate, type Rate } from "./rates.ts";

const CONVERSATIONS = [1, 10, 50, 200];
const FLOOR_ROUNDS = 50;
const RUNNING = [1, 20];
const CANCELS = 40;

export type OnProduction = {
  readonly workers: number;
  /** Milliseconds of each round of Temporal alone. */
  readonly floor: readonly number[];
  readonly rates: readonly Rate[];
  readonly cancels: readonly (Cancels & { readonly running: number })[];
};

/** @param dir an empty directory for all data */
export async function* onProduction(dir: string): AsyncGenerator<OnProduction> {
  const say = (line: string): void => console.log(`    ${line}`);
  const temporal = await startProductionTemporal(mkdtempSync(join(dir, "temporal-")), say);
  try {
    const product = await startProduct({
      dataDir: join(dir, "data"),
      env: { TEMPORAL_ADDRESS: temporal.address },
    });
    try {
      const second = {
        DATABASE_URL: product.databaseUrl,
        TEMPORAL_ADDRESS: temporal.address,
        TOOL_HOST: hostname(),
        ANTHROPIC_API_KEY: "test-key",
        ANTHROPIC_BASE_URL: product.model.url,
        DATA_DIR: join(dir, "second"),
      };
      const processes = {
        worker: [product.pidOf("worker")],
        api: [product.pidOf("api")],
        postgres: [product.pidOf("postgres")],
        temporal: [temporal.pid, temporal.postgresPid],
      };
      const measure = async (now: Processes): Promise<OnProduction> => {
        const rates: Rate[] = [];
        for (const conversations of CONVERSATIONS) rates.push(await rate(product, dir, conversations, now));
        const stopped: OnProduction["cancels"][number][] = [];
        for (const running of RUNNING)
          stopped.push({ running, ...(await cancels(product, dir, "sleep 300", running, CANCELS)) });
        const floor = await temporalFloor(temporal.address, FLOOR_ROUNDS);
        return { workers: now.worker.length, floor, rates, cancels: stopped };
      };
      yield await measure(processes);
      const worker = spawnWorker(second);
      try {
        await worker.ready;
        yield await measure({ ...processes, worker: [...processes.worker, worker.pid] });
      } finally {
        worker.signal("SIGKILL");
        await worker.exited;
      }
    } finally {
      await product.stop();
    }
  } finally {
    await temporal.stop();
  }
}
