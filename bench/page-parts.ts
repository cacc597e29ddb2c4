/** Owns: the parts of the benchmark that are about the page, and the goal of each figure (docs/performance.md). */
import { withBrowser } from "./browser.ts";
import type { Part } from "./run.ts";
import { brokenConnections } from "./page-network.ts";
import { ANSWERS, bareKeydowns, longLines, typedStream } from "./page-stream.ts";
import { approvals, decisionsElsewhere, firstLoad, longConversations, manyTabs, stops } from "./page.ts";
import { ms, quantile, spread, type Row } from "./stats.ts";
import { texts } from "./text.ts";

const STALLS = [0.5, 0.99, 1];
const STREAM_SECONDS = 60;

const mebibytes = (bytes: number): string => `${Math.round(bytes / 1024 / 1024)} MiB`;
const tasks = (all: readonly number[]): string =>
  all.length === 0 ? "none above 50 ms" : `${all.length} above 50 ms, max ${ms(quantile(all, 1))}`;

const page: Part = (product) =>
  withBrowser(async function* (browser): AsyncGenerator<Row> {
    const { bytes, elsewhere } = await firstLoad(browser, product);
    const figures = `${(bytes / 1024).toFixed(1)} KB`;
    yield { what: "JavaScript of the first load, gzip", figures, goal: "150 KB" };
    yield { what: "requests to another origin", figures: String(elsewhere.length), goal: "0" };
  });

const pageLong: Part = (product, dir) =>
  withBrowser(async function* (browser): AsyncGenerator<Row> {
    const found = await longConversations(browser, product, dir);
    const what = "5,000 messages with 3,000 calls";
    yield { what: `${what}: first paint`, figures: spread(found.firstPaints, STALLS), goal: "1 s" };
    yield { what: `${what}: rows mounted, at most`, figures: String(found.mounted), goal: "150" };
    yield { what: "heap with all messages of two such", figures: mebibytes(found.heap), goal: "150 MiB" };
    const first = spread(found.firstSwitches, STALLS);
    yield { what: "switch to such a conversation, the first time", figures: first, goal: "200 ms" };
    yield { what: "the same, all messages loaded", figures: spread(found.switches, STALLS), goal: "200 ms" };
  });

const pageStream: Part = (product, dir) =>
  withBrowser(async function* (browser): AsyncGenerator<Row> {
    const bare = await bareKeydowns(browser);
    const field = "a text field on an empty page, 4 times slower: keydown to paint";
    yield { what: field, figures: spread(bare, [0.5, 0.95, 1]), goal: "" };
    for (const kind of Object.keys(ANSWERS) as (keyof typeof ANSWERS)[]) {
      const found = await typedStream(browser, product, dir, kind, STREAM_SECONDS);
      const what = `${kind}, ${Math.round(found.deltasPerSecond)} deltas/s, 4 times slower`;
      const calm = spread(found.calm, [0.5, 0.95, 1]);
      yield { what: `${what}: keydown to paint, before it comes`, figures: calm, goal: "" };
      const keys = spread(found.keydowns, [0.5, 0.95, 1]);
      const ratio = quantile(found.keydowns, 0.95) / quantile(bare, 0.95);
      yield {
        what: `${what}: keydown to paint`,
        figures: `${keys}, p95 ${ratio.toFixed(1)} × the empty page's`,
        ...{ goal: "p95 32 ms", compared: ratio },
      };
      yield { what: `${what}: tasks`, figures: tasks(found.longTasks), goal: "max 100 ms" };
      const [first = Number.NaN, last = Number.NaN] = [found.costs[0], found.costs.at(-1)];
      const figures = `${ms(first)}, ${ms(last)}: ${(last / first).toFixed(2)} ×`;
      yield { what: `${what}: busy for a delta, first and last tenth`, figures, goal: "1.5 ×" };
    }
  });

const pageLines: Part = (product, dir) =>
  withBrowser(async function* (browser): AsyncGenerator<Row> {
    const found = await longLines(browser, product, dir);
    const ways = { ofModel: "said by the model", ofTool: "printed by a command", ofPerson: "sent" } as const;
    for (const way of ["ofModel", "ofTool", "ofPerson"] as const) {
      const figures = tasks(found[way].filter((longest) => longest > 0));
      yield { what: `200 kB in one line, ${ways[way]}: tasks`, figures, goal: "max 100 ms" };
    }
  });

const pageTabs: Part = (product, dir) =>
  withBrowser(async function* (browser): AsyncGenerator<Row> {
    const found = await manyTabs(browser, product, dir);
    yield { what: "12 tabs: opening each", figures: spread(found.loads, [0.5, 1]), goal: "300 ms" };
    yield { what: "12 tabs: switching in each", figures: spread(found.switches, [0.5, 1]), goal: "300 ms" };
    yield { what: "12 tabs: streams at the API", figures: String(found.streams), goal: "2" };
    yield { what: "12 tabs: showed what came", figures: String(found.live), goal: "12" };
  });

const pageApproval: Part = (product, dir) =>
  withBrowser(async function* (browser): AsyncGenerator<Row> {
    const found = await approvals(browser, product, dir, 10);
    for (const place of ["list", "title", "icon"] as const)
      yield {
        what: `approval asked for, to the ${place}`,
        figures: spread(found[place], STALLS),
        goal: "1 s",
      };
    const decided = await decisionsElsewhere(browser, product, dir, 10);
    const { page: card, client } = decided;
    yield { what: "approval decided elsewhere, to the card", figures: spread(card, STALLS), goal: "1 s" };
    yield {
      what: "the same, to the command line and editors",
      figures: spread(client, STALLS),
      goal: "1 s",
    };
  });

const pageStop: Part = (product, dir) =>
  withBrowser(async function* (browser): AsyncGenerator<Row> {
    const { connected, cut } = await stops(browser, product, dir, 10);
    yield { what: 'Escape to "stopping"', figures: spread(connected, STALLS), goal: "100 ms" };
    yield { what: "the same, cut off", figures: spread(cut, STALLS), goal: "100 ms" };
  });

const pageNetwork: Part = (product, dir) =>
  withBrowser(async function* (browser): AsyncGenerator<Row> {
    const counts = { silent: 4, online: 10 };
    const found = await brokenConnections(browser, product, dir, counts);
    const what = "half-open connection";
    yield { what: `${what}: noticed`, figures: spread(found.noticed, [0.5, 1]), goal: "35 s" };
    yield {
      what: `${what}: healed when packets pass again`,
      figures: spread(found.healed, [0.5, 1]),
      goal: "",
    };
    yield { what: `${what}: healed at \`online\``, figures: spread(found.online, [0.5, 1]), goal: "1 s" };
    const figures = `${found.kept} of ${counts.silent + counts.online}`;
    yield { what: `${what}: drafts kept`, figures, goal: "all" };
  });

/** In the order in which they are measured. */
export const PAGE_PARTS: ReadonlyMap<string, Part> = new Map<string, Part>([
  ["page", page],
  ["page-long", pageLong],
  ["page-stream", pageStream],
  ["page-lines", pageLines],
  ["page-tabs", pageTabs],
  ["page-approval", pageApproval],
  ["page-stop", pageStop],
  ["page-network", pageNetwork],
  ["texts", texts],
]);
