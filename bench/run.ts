/**
 * Owns: a run of measurements: starts the product as a user would, measures the wanted parts over HTTP, prints one table,
 * each figure beside its goal, and says whether anything got worse than in the last runs.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { DefaultLogger, Runtime } from "@temporalio/worker";
import { startProduct, type Product } from "../test/support/product.ts";
import { compareAndKeep } from "./past-runs.ts";
import { ms, table, type Row } from "./stats.ts";

/** Measures a running product, with a directory for its conversations; yields each row when it is known. */
export type Part = (product: Product, dir: string) => AsyncGenerator<Row>;

/** As shells have it. */
const INTERRUPTED = 130;
const REPORTS = join(import.meta.dirname, "..", "reports");

/** @param name of the runs that are compared with each other */
export async function run(name: string, parts: ReadonlyMap<string, Part>): Promise<void> {
  const { values } = parseArgs({ options: { only: { type: "string" } } });
  const wanted = values.only?.split(",") ?? [...parts.keys()];
  const unknown = wanted.filter((part) => !parts.has(part));
  if (unknown.length > 0) {
    console.error(`There is no part "${unknown.join('", "')}". Parts: ${[...parts.keys()].join(", ")}.`);
    process.exitCode = 1;
    return;
  }
  const rows: Row[] = [];
  const show = (row: Row): void => {
    console.log(`  ${row.what}: ${row.figures}`);
    rows.push(row);
  };
  // The floor's worker says at length how it is made.
  Runtime.install({ logger: new DefaultLogger("WARN"), shutdownSignals: [] });
  const dir = mkdtempSync(join(tmpdir(), "bedrock-bench-"));
  const dataDir = join(dir, "data");
  let product: Product | null = null;
  process.once("SIGINT", () => void product?.stop().finally(() => process.exit(INTERRUPTED)));
  try {
    // The first start makes the database; the second one is measured.
    await (await startProduct({ dataDir })).stop();
    product = await startProduct({ dataDir });
    show({
      what: "start to ready, warm",
      figures: ms(product.startMs),
      goal: "3 s",
      compared: product.startMs,
    });
    for (const [part, measure] of parts) {
      if (!wanted.includes(part)) continue;
      console.log(`measuring: ${part}`);
      for await (const row of measure(product, dir)) show(row);
    }
  } finally {
    await product?.stop();
    rmSync(dir, { recursive: true, force: true });
  }
  console.log(`\n${table(rows)}\n`);
  console.log(compareAndKeep(join(REPORTS, `${name}.json`), rows));
}
