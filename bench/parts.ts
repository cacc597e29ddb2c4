/**
 * Owns: the parts of the benchmark, and the goal of each figure. Not here: how each is measured (the files beside it).
 */
import type { Product } from "../test/support/product.ts";
import { cancels, TREES } from "./cancel.ts";
import { firstBytes } from "./command-line.ts";
import { recovery, type Crash } from "./crash.ts";
import { foldTimes, steers } from "./cycles.ts";
import { commitsWhileStreaming, firstDeltas } from "./deltas.ts";
import { temporalFloor } from "./floor.ts";
import { cachedShare, longConversations } from "./long.ts";
import { PAGE_PARTS } from "./page-parts.ts";
import { Histories } from "./history.ts";
import { plainTurns, toolRounds, type Span } from "./rounds.ts";
import type { Part } from "./run.ts";
import { deathsOfLargeTrees, ordinaryWork, spawns } from "./sandbox.ts";
import { ms, quantile, spread, type Row } from "./stats.ts";
import { movedTurns } from "./upgrade.ts";
import { cancelsOfFamilies, firstRequests, GENERATION, memoryOfFinished, wallTime } from "./sub-agents.ts";

const DEATHS = [0.5, 0.99, 1];
/** Includes the maximum: users notice if one in a hundred takes a second. */
const STALLS = [0.5, 0.99, 1];
/** Milliseconds of a stall that people notice. */
const NOTICED_MS = 200;

async function* rounds(product: Product, dir: string): AsyncGenerator<Row> {
  const before = await temporalFloor(product.temporalAddress, 50);
  const { id, rounds } = await toolRounds(product, dir, 10);
  // The machine's speed changes while it is measured.
  const after = await temporalFloor(product.temporalAddress, 50);
  const floor = quantile([...before, ...after], 0.5);
  yield { what: "Temporal's floor: 2 activities, 2 local", figures: ms(floor), goal: "" };
  const samples = rounds.map(({ from, to }) => to - from);
  const goal = "p50 25 ms, p99 60 ms, max 150 ms";
  const what = `tool round with \`bash true\`, ${rounds.length} of them`;
  yield { what, figures: spread(samples, STALLS), goal };
  const ratio = (quantile(samples, 0.5) / floor).toFixed(2);
  yield { what: "tool round / floor", figures: ratio, goal: "1.15", compared: Number(ratio) };
  const histories = await Histories.read(product.temporalAddress, id);
  yield* across("round", rounds, histories);
  for (const [span, took] of histories.spans()) {
    if (took >= 0.5) yield { what: `of it ${span}`, figures: ms(took), goal: "" };
  }
}

async function* turns(product: Product, dir: string): AsyncGenerator<Row> {
  const { id, turns } = await plainTurns(product, dir, 300);
  const samples = turns.map(({ from, to }) => to - from);
  yield {
    what: "turn without tools, POST to idle",
    ...{ figures: spread(samples, STALLS), goal: "28 ms", compared: quantile(samples, 0.5) },
  };
  yield* across("turn", turns, await Histories.read(product.temporalAddress, id));
}

/** What a continue-as-new costs, and what each gap was that people notice. */
function* across(what: string, spans: readonly Span[], histories: Histories): Generator<Row> {
  const continuations = histories.continuations();
  // A turn that has come to rest continues as new before the next one, which waits for it.
  const continues = ({ from, to }: Span, n: number) =>
    continuations.some((at) => at > (spans[n - 1]?.to ?? from) && at <= to);
  const took = (some: readonly Span[]) => some.map(({ from, to }) => to - from);
  const over = took(spans.filter(continues));
  const usual = quantile(took(spans.filter((span, n) => !continues(span, n))), 0.5);
  const ratio = (quantile(over, 0.5) / usual).toFixed(2);
  yield {
    what: `${what} across a continue-as-new, ${over.length} of them`,
    figures: `${spread(over, STALLS)}, ${ratio} × the others`,
    goal: "2 ×",
  };
  const gaps = spans.filter(({ from, to }) => to - from > NOTICED_MS);
  const figures = gaps.map(({ from, to }) => `${ms(to - from)} (${histories.longestIn(from, to) ?? "?"})`);
  yield {
    what: `${what}s above ${NOTICED_MS} ms, and their longest part`,
    figures: figures.join(", ") || "none",
    goal: "none",
  };
}

async function* long(product: Product, dir: string): AsyncGenerator<Row> {
  const { short, long, bytes } = await longConversations(product, dir);
  const ratio = (quantile(long, 0.5) / quantile(short, 0.5)).toFixed(2);
  yield { what: "turn at message 10, without the model", figures: spread(short), goal: "" };
  yield { what: "the same at message 2,000", figures: `${spread(long)}, ${ratio} ×`, goal: "1.5 ×" };
  const list = [...bytes].map(([length, added]) => `${length}: ${(added / 1024).toFixed(1)}`);
  yield {
    what: "KiB that a turn adds to Temporal's history, by messages before it",
    figures: list.join(", "),
    goal: "the same",
  };
  const share = await cachedShare(product, dir);
  yield {
    what: "input of 30 tool rounds out of the provider's cache",
    figures: `${(share * 100).toFixed(1)} % of what could be`,
    goal: "95 %",
  };
}

async function* cancel(product: Product, dir: string): AsyncGenerator<Row> {
  for (const tree of Object.keys(TREES) as (keyof typeof TREES)[]) {
    for (const at of [1, 20, 100]) {
      const { samples, survivors } = await cancels(product, dir, tree, at, Math.max(at, 40));
      yield {
        what: `cancel to the last death: ${tree}, ${at} running`,
        figures: `${spread(samples, DEATHS)}, ${survivors} survivors`,
        goal: at < 100 ? "p50 20 ms, p99 50 ms, 0" : "p99 80 ms, 0",
        compared: quantile(samples, 0.5),
      };
    }
  }
}

async function* subAgents(product: Product, dir: string): AsyncGenerator<Row> {
  const one = await firstRequests(product, dir, 1, 30);
  yield { what: "spawn_agents to the first request of one", figures: spread(one), goal: "60 ms" };
  const eight = await firstRequests(product, dir, 8, 20);
  yield {
    what: "the same, to that of the last of 8",
    ...{ figures: spread(eight), goal: "150 ms", compared: quantile(eight, 0.5) },
  };
  const [alone, together] = [await wallTime(product, dir, 1), await wallTime(product, dir, 8)];
  const figures = `${ms(together)}, ${(together / alone).toFixed(2)} × one alone`;
  yield { what: "8 sub-agents with a second of work each", figures, goal: "that of the slowest" };
  for (const count of [1, 8]) {
    const samples = await cancelsOfFamilies(product, dir, count, 20);
    const what = `cancel of a parent to the last death, ${count} sub-agents with trees`;
    yield { what, figures: spread(samples, DEATHS), goal: "100 ms" };
  }
  const sizes = await memoryOfFinished(product, dir);
  yield {
    what: `the worker after each ${GENERATION} finished sub-agents`,
    figures: `${sizes.map((size) => Math.round(size / 1024 / 1024)).join(", ")} MiB`,
    goal: "no growth",
  };
}

async function* sandbox(): AsyncGenerator<Row> {
  const found = await spawns(100);
  if (found === null) return;
  const bare = quantile(found.bare, 0.5);
  const added = (samples: readonly number[]): string => {
    const difference = quantile(samples, 0.5) - bare;
    return `${difference < 0 ? "-" : "+"}${ms(Math.abs(difference))}`;
  };
  yield { what: "`bash -c true`, a bare spawn", figures: spread(found.bare), goal: "" };
  yield { what: "the same, supervised (Unrestricted)", figures: added(found.unrestricted), goal: "+8 ms" };
  yield { what: "the same, Restricted", figures: added(found.restricted), goal: "+8 ms" };
  for (const { command, unrestricted, restricted, failed } of await ordinaryWork(5)) {
    const [without, within] = [quantile(unrestricted, 0.5), quantile(restricted, 0.5)];
    const figures = `${ms(within)}, ${(within / without).toFixed(2)} × Unrestricted, ${failed} failed`;
    yield { what: `\`${command.replaceAll("|", "\\|")}\`, Restricted`, figures, goal: "0 failed" };
  }
  const deaths = await deathsOfLargeTrees(40);
  yield { what: "abort of 250 processes, Restricted", figures: spread(deaths, DEATHS), goal: "p99 100 ms" };
}

async function* cycles(product: Product): AsyncGenerator<Row> {
  const [some, many] = [foldTimes(10_000), foldTimes(100_000)];
  const figures = `${ms(many.fold)}, ${(many.fold / some.fold).toFixed(1)} × that of 10,000`;
  yield { what: "fold of 100,000 messages", figures, goal: "200 ms, linear" };
  yield { what: "the same, and all cycles as steps", figures: ms(many.withSteps), goal: "" };
  const { sent, arrived } = await steers(product, 50, 20);
  yield {
    what: "steer while 50 tools run, in the next request",
    figures: `${arrived} of ${sent}`,
    goal: "1000 of 1000",
  };
}

async function* deltas(product: Product, dir: string): AsyncGenerator<Row> {
  const samples = await firstDeltas(product, dir, 40);
  yield {
    what: "first delta to the client",
    ...{ figures: spread(samples), goal: "5 ms + batching", compared: quantile(samples, 0.5) },
  };
  for (const streams of [0, 50]) {
    const commits = await commitsWhileStreaming(product, dir, streams, 40);
    const what = `POST to its commit, ${streams} conversations streaming`;
    yield { what, figures: spread(commits), goal: "" };
  }
}

const CRASHES: readonly Crash[] = [
  { of: "worker", during: "request", another: true },
  { of: "worker", during: "tool", another: true },
  { of: "worker", during: "request" },
  { of: "worker", during: "tool" },
  { of: "temporal", during: "tool" },
  { of: "postgres", during: "tool" },
  { of: "api", during: "tool" },
];

async function* crash(product: Product, dir: string): AsyncGenerator<Row> {
  for (const crash of CRASHES) {
    const samples: number[] = [];
    for (let n = 0; n < 5; n++) samples.push(await recovery(product, dir, crash));
    const who = crash.another === true ? "one of two workers" : crash.of;
    const what = `kill -9 of ${who} in a ${crash.during}, to the next request`;
    yield { what, figures: spread(samples, [0.5, 1]), goal: "5 s", compared: quantile(samples, 0.5) };
  }
}

async function* upgrade(product: Product, dir: string): AsyncGenerator<Row> {
  const { moved, others } = await movedTurns(product, dir, 6);
  yield {
    what: `turn on the current version, ${others.length} of them`,
    figures: spread(others, STALLS),
    goal: "",
  };
  const ratio = (quantile(moved, 0.5) / quantile(others, 0.5)).toFixed(2);
  yield {
    what: `turn across a change of the version, ${moved.length} of them`,
    ...{ figures: `${spread(moved, STALLS)}, ${ratio} × the others`, goal: "3 ×", compared: Number(ratio) },
  };
}

async function* commandLine(product: Product, dir: string): AsyncGenerator<Row> {
  const { node, ...commands } = await firstBytes(product, dir, 40);
  yield { what: "`node -e 0`", figures: spread(node, STALLS), goal: "" };
  for (const [command, samples] of Object.entries(commands)) {
    const ratio = (quantile(samples, 0.5) / quantile(node, 0.5)).toFixed(1);
    const what = `\`bedrock ${command}\`, start to first byte`;
    const figures = `${spread(samples, STALLS)}, ${ratio} × node`;
    yield { what, figures, goal: "250 ms", compared: Number(ratio) };
  }
}

/** In the order in which they are measured. */
export const PARTS: ReadonlyMap<string, Part> = new Map<string, Part>([
  ["rounds", rounds],
  ["turns", turns],
  ["long", long],
  ["cancel", cancel],
  ["sub-agents", subAgents],
  ["sandbox", sandbox],
  ["cycles", cycles],
  ["deltas", deltas],
  ["crash", crash],
  ["command-line", commandLine],
  ["upgrade", upgrade],
  ...PAGE_PARTS,
]);
