/**
 * `npm run bench`: starts the product as a user would, measures it over HTTP, and prints one table, each figure beside
 * its goal. It takes some minutes and needs an otherwise idle machine. `-- --only rounds,turns` measures parts.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { startProduct, type Product } from "../test/support/product.ts";
import { PARTS } from "./parts.ts";
import { ms, table, type Row } from "./stats.ts";

const { values } = parseArgs({ options: { only: { type: "string" } } });
const wanted = values.only?.split(",") ?? [...PARTS.keys()];
const unknown = wanted.filter((name) => !PARTS.has(name));
if (unknown.length > 0) {
  console.error(`There is no part "${unknown.join('", "')}". Parts: ${[...PARTS.keys()].join(", ")}.`);
  process.exit(1);
}

const rows: Row[] = [];
const dir = mkdtempSync(join(tmpdir(), "bedrock-bench-"));
const dataDir = join(dir, "data");
let product: Product | null = null;
try {
  // The first start makes the database; the second one is measured.
  await (await startProduct({ dataDir })).stop();
  product = await startProduct({ dataDir });
  show({ what: "start to ready, warm", figures: ms(product.startMs), goal: "4 s" });
  for (const [name, measure] of PARTS) {
    if (!wanted.includes(name)) continue;
    console.log(`measuring: ${name}`);
    for await (const row of measure(product, dir)) show(row);
  }
} finally {
  await product?.stop();
  rmSync(dir, { recursive: true, force: true });
}
console.log(`\n${table(rows)}`);

function show(row: Row): void {
  console.log(`  ${row.what}: ${row.figures}`);
  rows.push(row);
}
