/**
 * `npm run bench`: starts the product as a person would, measures it over HTTP, and prints one table, each figure
 * beside its goal. On a machine that does nothing else; about three minutes. `-- --only rounds,turns` measures a part.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { cancels, TREES } from "./cancel.ts";
import { recovery, type Crash } from "./crash.ts";
import { foldTimes, steers } from "./cycles.ts";
import { commitsWhileStreaming, firstDeltas } from "./deltas.ts";
import { temporalFloor } from "./floor.ts";
import { cachedShare, longConversations } from "./long.ts";
import { startProduct, type Product } from "../test/support/product.ts";
import { plainTurns, toolRounds } from "./rounds.ts";
import { deathsOfLargeTrees, ordinaryWork, spawns } from "./sandbox.ts";
import { spans } from "./spans.ts";
import { cancelsOfFamilies, firstRequests, GENERATION, memoryOfFinished, wallTime } from "./sub-agents.ts";
import { ms, quantile, spread, table, type Row } from "./stats.ts";

const CRASHES: readonly Crash[] = [
  { of: "worker", during: "request", another: true },
  { of: "worker", during: "tool", another: true },
  { of: "worker", during: "request" },
  { of: "worker", during: "tool" },
  { of: "temporal", during: "tool" },
  { of: "postgres", during: "tool" },
  { of: "api", during: "tool" },
];

const only = process.argv.includes("--only") ? process.argv.at(-1)?.split(",") : undefined;
const rows: Row[] = [];
const dir = mkdtempSync(join(tmpdir(), "bedrock-bench-"));
const dataDir = join(dir, "data");
let product: Product | null = null;
try {
  // The first start makes the database; the figure is of the second.
  await (await startProduct({ dataDir })).stop();
  product = await startProduct({ dataDir });
  rows.push({ what: "start to ready, warm", figures: ms(product.startMs), goal: "4 s" });
  const running = product;

  await measure("rounds", async () => {
    const floor = quantile(await temporalFloor(running.temporalAddress, 50), 0.5);
    const { id, samples: rounds } = await toolRounds(running, dir);
    const ratio = (quantile(rounds, 0.5) / floor).toFixed(2);
    for (const [span, took] of await spans(running.temporalAddress, id)) {
      if (took >= 0.5) rows.push({ what: `  ${span}`, figures: ms(took), goal: "" });
    }
    rows.push({ what: "Temporal's floor: 2 activities, 2 local", figures: ms(floor), goal: "" });
    rows.push({ what: "tool round with `bash true`", figures: spread(rounds), goal: "25 ms" });
    rows.push({ what: "tool round / floor", figures: ratio, goal: "" });
  });
  await measure("turns", async () => {
    const turns = await plainTurns(running, dir, 50);
    rows.push({ what: "turn without tools, POST to idle", figures: spread(turns), goal: "25 ms" });
  });
  await measure("long", async () => {
    const { short, long, bytes } = await longConversations(running, dir);
    const ratio = (quantile(long, 0.5) / quantile(short, 0.5)).toFixed(2);
    rows.push({ what: "turn at message 10, without the model", figures: spread(short), goal: "" });
    rows.push({ what: "the same at message 2,000", figures: `${spread(long)}, ${ratio} ×`, goal: "1.5 ×" });
    const list = [...bytes].map(([length, added]) => `${length}: ${(added / 1024).toFixed(1)}`);
    rows.push({
      what: "KiB that a turn adds to Temporal's history, by messages before it",
      figures: list.join(", "),
      goal: "the same",
    });
    const share = await cachedShare(running, dir);
    rows.push({
      what: "input of 30 tool rounds out of the provider's cache",
      figures: `${(share * 100).toFixed(1)} % of what could be`,
      goal: "95 %",
    });
  });
  await measure("cancel", async () => {
    for (const tree of Object.keys(TREES) as (keyof typeof TREES)[]) {
      for (const at of [1, 20, 100]) {
        const { samples, survivors } = await cancels(running, dir, tree, at, Math.max(at, 40));
        rows.push({
          what: `cancel to the last death: ${tree}, ${at} running`,
          figures: `${spread(samples, [0.5, 0.99])}, ${survivors} survivors`,
          goal: "p50 30 ms, p99 80 ms, 0",
        });
      }
    }
  });
  await measure("sub-agents", async () => {
    const [one, eight] = [await firstRequests(running, dir, 1, 30), await firstRequests(running, dir, 8, 20)];
    rows.push({ what: "spawn_agents to the first request of one", figures: spread(one), goal: "60 ms" });
    rows.push({ what: "the same, to that of the last of 8", figures: spread(eight), goal: "150 ms" });
    const [alone, together] = [await wallTime(running, dir, 1), await wallTime(running, dir, 8)];
    const figures = `${ms(together)}, ${(together / alone).toFixed(2)} × one alone`;
    rows.push({ what: "8 sub-agents with a second of work each", figures, goal: "that of the slowest" });
    for (const count of [1, 8]) {
      const samples = await cancelsOfFamilies(running, dir, count, 20);
      const what = `cancel of a parent to the last death, ${count} sub-agents with trees`;
      rows.push({ what, figures: spread(samples, [0.5, 0.99]), goal: "100 ms" });
    }
    const sizes = await memoryOfFinished(running, dir);
    rows.push({
      what: `the worker after each ${GENERATION} finished sub-agents`,
      figures: `${sizes.map((size) => Math.round(size / 1024 / 1024)).join(", ")} MiB`,
      goal: "no growth",
    });
  });
  await measure("sandbox", async () => {
    const found = await spawns(100);
    if (found === null) return;
    const bare = quantile(found.bare, 0.5);
    const added = (samples: readonly number[]): string => {
      const difference = quantile(samples, 0.5) - bare;
      return `${difference < 0 ? "-" : "+"}${ms(Math.abs(difference))}`;
    };
    rows.push({ what: "`bash -c true`, a bare spawn", figures: spread(found.bare), goal: "" });
    rows.push({
      what: "the same, supervised (Unrestricted)",
      figures: added(found.unrestricted),
      goal: "+8 ms",
    });
    rows.push({ what: "the same, Restricted", figures: added(found.restricted), goal: "+8 ms" });
    for (const { command, unrestricted, restricted, failed } of await ordinaryWork(5)) {
      const [without, within] = [quantile(unrestricted, 0.5), quantile(restricted, 0.5)];
      const figures = `${ms(within)}, ${(within / without).toFixed(2)} × Unrestricted, ${failed} failed`;
      rows.push({ what: `\`${command}\`, Restricted`, figures, goal: "0 failed" });
    }
    const deaths = await deathsOfLargeTrees(40);
    rows.push({
      what: "abort of 250 processes, Restricted",
      figures: spread(deaths, [0.5, 0.99]),
      goal: "p99 100 ms",
    });
  });
  await measure("cycles", async () => {
    const [some, many] = [foldTimes(10_000), foldTimes(100_000)];
    const figures = `${ms(many.fold)}, ${(many.fold / some.fold).toFixed(1)} × that of 10,000`;
    rows.push({ what: "fold of 100,000 messages", figures, goal: "200 ms, linear" });
    rows.push({ what: "the same, and all cycles as steps", figures: ms(many.withSteps), goal: "" });
    const { sent, arrived } = await steers(running, 50, 20);
    rows.push({
      what: "steer while 50 tools run, in the next request",
      figures: `${arrived} of ${sent}`,
      goal: "1000 of 1000",
    });
  });
  await measure("deltas", async () => {
    const deltas = await firstDeltas(running, dir, 40);
    rows.push({ what: "first delta to the client", figures: spread(deltas), goal: "5 ms + batching" });
    for (const streams of [0, 50]) {
      const commits = await commitsWhileStreaming(running, dir, streams, 40);
      const what = `POST to its commit, ${streams} conversations streaming`;
      rows.push({ what, figures: spread(commits), goal: "" });
    }
  });
  await measure("crash", async () => {
    for (const crash of CRASHES) {
      const samples: number[] = [];
      for (let n = 0; n < 5; n++) samples.push(await recovery(running, dir, crash));
      const who = crash.another === true ? "one of two workers" : crash.of;
      const what = `kill -9 of ${who} in a ${crash.during}, to the next request`;
      rows.push({ what, figures: spread(samples, [0.5, 1]), goal: "5 s" });
    }
  });
} finally {
  await product?.stop();
  rmSync(dir, { recursive: true, force: true });
}
console.log(`\n${table(rows)}`);

async function measure(name: string, body: () => Promise<void>): Promise<void> {
  if (only !== undefined && !only.includes(name)) return;
  console.log(`measuring: ${name}`);
  await body();
}
