/**
 * `npm run load`: what much at once takes: conversations that work, conversations that rest, event streams, and long
 * conversations. It draws the plots of docs/performance.md, takes a quarter of an hour and needs an otherwise idle
 * machine. `-- --only rates` measures parts.
 */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { drawFlame } from "./load/flame.ts";
import { flames } from "./load/flames.ts";
import { idle } from "./load/idle.ts";
import { lengths } from "./load/length.ts";
import { draw } from "./load/plot.ts";
import { onProduction } from "./load/production.ts";
import { rate, type Rate } from "./load/rates.ts";
import { streams } from "./load/streams.ts";
import { loadOfHost } from "./load/tool-host.ts";
import { difference, dividedBy, listed, total, type ByProcess } from "./processes.ts";
import { run, type LonePart, type Part } from "./run.ts";
import { fitLine, quantile, spread, type Row } from "./stats.ts";

const PLOTS = join(import.meta.dirname, "..", "docs", "plots");
const CONVERSATIONS = [1, 10, 50, 200];
/** The first is as many as a worker keeps in memory. */
const IDLE = [1_000, 2_000, 5_000, 10_000];
const STREAMED = 50;
const CLIENTS = 1_000;
const TURNS = 500;
const STALLS = [0.5, 0.99, 1];
const MIB = 1024 * 1024;
const KIB = 1024;

const inMebibytes = (memory: ByProcess): string => listed(dividedBy(memory, MIB), "MiB");

/** What so many conversations at once take. */
function* ofRate({ conversations, ...at }: Rate, goal: string, on = ""): Generator<Row> {
  const { roundsPerSecond, floorPerSecond, rounds, processor, memory } = at;
  const what = `${on}${conversations} at once`;
  const share = Math.round((100 * roundsPerSecond) / floorPerSecond);
  yield {
    what: `${what}: rounds a second`,
    figures: `${roundsPerSecond.toFixed(0)}, ${share} % of the floor's ${floorPerSecond.toFixed(0)}`,
    ...{ goal, compared: floorPerSecond / roundsPerSecond },
  };
  yield { what: `${what}: a round`, figures: spread(rounds, STALLS), goal: "" };
  const all = total(processor);
  const figures = `${all.toFixed(0)} ms: ${listed(processor, "ms")}`;
  yield { what: `${what}: processor time of a round`, figures, goal: "", compared: all };
  yield { what: `${what}: memory`, figures: inMebibytes(memory), goal: "" };
}

const rates: Part = async function* (product, dir) {
  const found: Rate[] = [];
  for (const conversations of CONVERSATIONS) {
    const at = await rate(product, dir, conversations);
    found.push(at);
    yield* ofRate(at, conversations === 50 ? "80, 70 %" : "");
  }
  const of = (value: (at: Rate) => number) => found.map((at) => [at.conversations, value(at)] as const);
  const x = { name: "conversations at once", isLogarithmic: true } as const;
  picture("rates", {
    ...{ title: "Tool rounds a second", x, y: "rounds a second" },
    lines: [
      { name: "Bedrock", points: of((at) => at.roundsPerSecond) },
      { name: "Temporal's floor", points: of((at) => at.floorPerSecond) },
    ],
  });
  picture("rounds", {
    ...{ title: "A tool round", x, y: "ms" },
    lines: [
      { name: "p50", points: of(({ rounds }) => quantile(rounds, 0.5)) },
      { name: "p99", points: of(({ rounds }) => quantile(rounds, 0.99)) },
    ],
  });
};

const production: LonePart = async function* (dir) {
  for await (const { workers, floor, rates, cancels } of onProduction(dir)) {
    const on = `${workers} worker${workers === 1 ? "" : "s"}, production server, `;
    yield { what: `${on}the floor's round alone`, figures: spread(floor, STALLS), goal: "" };
    for (const rate of rates) yield* ofRate(rate, "", on);
    for (const { running, samples, survivors } of cancels) {
      const what = `${on}cancel to the last death, ${running} running`;
      yield { what, figures: `${spread(samples, STALLS)}, ${survivors} survivors`, goal: "" };
    }
  }
};

const flameGraphs: LonePart = async function* (dir) {
  const found = await flames(dir);
  mkdirSync(PLOTS, { recursive: true });
  for (const [name, stacks] of Object.entries(found)) {
    const title = `Processor time of the ${name}, 50 conversations at work`;
    drawFlame(title, stacks, join(PLOTS, `flame-${name}.svg`));
    yield { what: `flame graph of the ${name}`, figures: `${stacks.length} samples`, goal: "" };
  }
};

const resting: Part = async function* (product, dir) {
  const { idle: looks, wakes, cached } = await idle(product, dir, IDLE);
  const [none, some, ...more] = looks;
  const all = more.at(-1);
  if (none === undefined || some === undefined || all === undefined) return;
  const each = (from: typeof none, to: typeof none) =>
    dividedBy(difference(to.memory, from.memory), (to.conversations - from.conversations) * KIB);
  const inMemory = each(none, some);
  const evicted = each(some, all);
  const goal = "307 KiB";
  yield {
    what: `one idle conversation, the first ${some.conversations}, which workers keep`,
    figures: `${total(inMemory).toFixed(0)} KiB: ${listed(inMemory, "KiB")}`,
    ...{ goal, compared: total(inMemory) },
  };
  yield {
    what: `one idle conversation, from there to ${all.conversations}`,
    figures: `${total(evicted).toFixed(0)} KiB: ${listed(evicted, "KiB")}`,
    goal: "0 in the worker",
  };
  yield { what: `with ${all.conversations} idle: memory`, figures: inMebibytes(all.memory), goal: "" };
  yield {
    what: "an idle one wakes that no worker has: POST to its request",
    ...{ figures: spread(wakes, STALLS), goal: "p50 50 ms", compared: quantile(wakes, 0.5) },
  };
  yield { what: "the same, one that a worker has", figures: spread(cached, STALLS), goal: "" };
  const of = (name: keyof ByProcess) =>
    looks.map(({ conversations, memory }) => [conversations, memory[name] / MIB] as const);
  picture("idle", {
    title: "Memory with idle conversations",
    x: { name: "idle conversations" },
    y: "MiB",
    lines: (["worker", "api", "temporal", "postgres"] as const).map((name) => ({ name, points: of(name) })),
  });
};

const clients: Part = async function* (product, dir) {
  const { deliveries, missing, bytesAClient } = await streams(product, dir, STREAMED, CLIENTS);
  const what = `${CLIENTS} streams on ${STREAMED} conversations, one more does not read`;
  yield {
    what: `${what}: text from the provider to each`,
    figures: `${spread(deliveries, STALLS)}, ${missing} missing`,
    ...{ goal: "0 missing", compared: quantile(deliveries, 0.5) },
  };
  const figures = `${(bytesAClient / KIB).toFixed(0)} KiB`;
  yield { what: `${what}: memory of one, in the API`, figures, goal: "" };
  const shares = [0, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 1];
  picture("streams", {
    title: `Text to ${CLIENTS} clients`,
    x: { name: "of the deliveries, %" },
    y: "ms",
    lines: [{ name: "provider to client", points: shares.map((q) => [100 * q, quantile(deliveries, q)]) }],
  });
};

const long: Part = async function* (product, dir) {
  const found = await lengths(product, dir, TURNS);
  const events = found.map((at) => [at.turns, at.events] as const);
  const bytes = found.map((at) => [at.turns, at.bytes / KIB] as const);
  for (const [of, unit, points] of [
    ["Temporal's histories", "events", events],
    ["the database", "KiB", bytes],
  ] as const) {
    const { slope, r2 } = fitLine(points);
    yield {
      what: `a turn adds to ${of}, over ${TURNS} turns`,
      figures: `${slope.toFixed(1)} ${unit}, linear (R² ${r2.toFixed(3)})`,
      ...{ goal: "linear", compared: slope },
    };
  }
  picture("length", {
    title: "What a conversation adds, turn by turn",
    x: { name: "turns" },
    y: "",
    lines: [
      { name: "events in Temporal", points: events },
      { name: "KiB in the database", points: bytes },
    ],
  });
};

const hosts: Part = async function* (product, dir) {
  for (const running of [50, 150]) {
    const found = await loadOfHost(product, dir, { running, calls: 10 });
    const what = `a tool host, ${running} conversations with a call each`;
    yield {
      what: `${what}: memory of a call that runs`,
      figures: `${(found.perRunning / MIB).toFixed(1)} MiB, beside ${(found.idle / MIB).toFixed(0)} MiB at rest`,
      ...{ goal: "", compared: found.perRunning },
    };
    yield {
      what: `${what}: processor time of a call`,
      figures: `${found.processor.toFixed(1)} ms, ${found.callsPerSecond.toFixed(0)} calls a second`,
      ...{ goal: "", compared: found.processor },
    };
  }
};

function picture(name: string, plot: Parameters<typeof draw>[0]): void {
  mkdirSync(PLOTS, { recursive: true });
  draw(plot, join(PLOTS, `${name}.svg`));
}

await run(
  "load",
  new Map([
    ["rates", rates],
    ["long", long],
    ["clients", clients],
    ["resting", resting],
    ["hosts", hosts],
  ]),
  new Map([
    ["production", production],
    ["flames", flameGraphs],
  ]),
);
