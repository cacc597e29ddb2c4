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
/** Measures what it starts itself, in an empty directory, while no other product runs. */
export type LonePart = (dir: string) => AsyncGenerator<Row>;

/** As shells have it. */
const INTERRUPTED = 130;
const REPORTS = join(import.meta.dirname, "..", "reports");

/** @param name of the runs that are compared with each other */
export async function run(
  name: string,
  parts: ReadonlyMap<string, Part>,
  loneParts: ReadonlyMap<string, LonePart> = new Map(),
): Promise<void> {
  const { values } = parseArgs({ options: { only: { type: "string" } } });
  const all = [...parts.keys(), ...loneParts.keys()];
  const wanted = values.only?.split(",") ?? all;
  const unknown = wanted.filter((part) => !all.includes(part));
  if (unknown.length > 0) {
    console.error(`There is no part "${unknown.join('", "')}". Parts: ${all.join(", ")}.`);
    process.exitCode = 1;
    return;
  }
  const rows: Row[] = [];
  const show = (row: Row): void => {
    console.log(`  ${row.what}: ${row.figures}`);
    rows.push(row);
  };
  const showAll = async (part: string, measured: AsyncGenerator<Row>): Promise<void> => {
    console.log(`measuring: ${part}`);
    for await (const row of measured) show(row);
  };
  // The floor's worker says at length how it is made.
  Runtime.install({ logger: new DefaultLogger("WARN"), shutdownSignals: [] });
  const dir = mkdtempSync(join(tmpdir(), "bedrock-bench-"));
  const dataDir = join(dir, "data");
  let product: Product | null = null;
  const interrupt = async (): Promise<void> => {
    await product?.stop();
    // What a lone part has started ends with this process.
    process.exit(INTERRUPTED);
  };
  process.once("SIGINT", () => void interrupt());
  try {
    if (wanted.some((part) => parts.has(part))) {
      // The first start makes the database; the second one is measured.
      await (await startProduct({ dataDir })).stop();
      product = await startProduct({ dataDir });
      show({
        what: "start to ready, warm",
        figures: ms(product.startMs),
        goal: "3 s",
        compared: product.startMs,
      });
      for (const [part, measure] of parts)
        if (wanted.includes(part)) await showAll(part, measure(product, dir));
      await product.stop();
      product = null;
    }
    for (const [part, measure] of loneParts)
      if (wanted.includes(part)) await showAll(part, measure(mkdtempSync(join(dir, `${part}-`))));
  } finally {
    await product?.stop();
    rmSync(dir, { recursive: true, force: true });
  }
  console.log(`\n${table(rows)}\n`);
  console.log(compareAndKeep(join(REPORTS, `${name}.json`), rows));
}
