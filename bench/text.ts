/**
 * `node --import tsx bench/text.ts`: measures the texts of the page in Chromium, by themselves: sizes, 200 kB in one
 * line, and text that comes 50 times a second while somebody types. `--seconds 60` is how long each of these takes.
 */
import { join } from "node:path";
import { parseArgs } from "node:util";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";
import type { CDPSession, Page } from "playwright-core";
import type { Harness } from "../test/web/text/harness/harness.ts";
import { buildPage, openPage, type TestPage } from "../test/web/text/harness/open.ts";
import { ms, quantile, spread, table, type Row } from "./stats.ts";

declare const harness: Harness;

const ROOT = join(import.meta.dirname, "..");
const DELTAS_PER_SECOND = 50;
/** A quick typist. */
const KEY_EVERY_MS = 100;
const LINE = 200_000;

const { values } = parseArgs({ options: { seconds: { type: "string", default: "20" } } });
const seconds = Number(values.seconds);

const filled = (part: string): string => part.repeat(Math.ceil(LINE / part.length)).slice(0, LINE);
const LINES: { readonly [what: string]: string } = {
  backslashes: filled("\\"),
  JSON: filled('{"a":[{"b":1}]},'),
  base64: filled(Buffer.from(Array.from({ length: 300 }, (_, at) => at)).toString("base64")),
  brackets: filled("["),
  links: filled("[a](http://a.bb) "),
  asterisks: filled("*"),
  "words with asterisks": filled("*a "),
  "emphasis that takes the lexer minutes": filled("_a_"),
  backticks: filled("`a`"),
  tags: filled("<a "),
  "letters of three bytes": filled("日本語"),
};

const sentence = (at: number): string => `Some *prose* with \`code\`, number ${at}, and **more** words. `;
const ANSWERS: { readonly [what: string]: (at: number) => string } = {
  mixed: (at) =>
    [
      `\n\n## Part ${at}\n\n${sentence(at)}${sentence(at)}\n\n- ${sentence(at)}\n- ${sentence(at)}\n\n`,
      `\`\`\`ts\n${`const a${at} = f(\`x\`, 1); // c\n`.repeat(12)}\`\`\`\n\n| a | b |\n|-|-|\n| 1 | ${at} |\n\n`,
    ].join(""),
  "one fence": (at) => `${at === 0 ? "```ts\n" : ""}const a${at} = f("x", ${at}); // comment\n`,
  "one list": (at) => `- ${sentence(at)}\n`,
  paragraphs: (at) => `${sentence(at)}${sentence(at)}\n\n`,
};

const rows: Row[] = [];
function show(row: Row): void {
  console.log(`  ${row.what}: ${row.figures}`);
  rows.push(row);
}

await measureSizes();
const opened = await openPage(await buildPage({ mode: "production" }));
try {
  const session = await opened.page.context().newCDPSession(opened.page);
  await session.send("Performance.enable");
  for (const rate of [1, 4]) {
    await session.send("Emulation.setCPUThrottlingRate", { rate });
    await measureLines(opened.page, rate);
  }
  for (const [what, part] of Object.entries(ANSWERS)) await measureStream(opened, session, what, part);
  if (opened.problems.length > 0) console.log(`problems of the page: ${opened.problems.join("; ")}`);
} finally {
  await opened.close();
}
console.log(`\n${table(rows)}`);

/** Compressed, without React: what the page loads at once, and the worker's files. */
async function measureSizes(): Promise<void> {
  const { outputFiles } = await build({
    stdin: {
      contents: ["markdown.tsx", "output.tsx", "diff.tsx", "json-view.tsx", "format.ts"]
        .map((file) => `export * from "./web/text/${file}";`)
        .join("\n"),
      resolveDir: ROOT,
    },
    external: ["react", "react/jsx-runtime"],
    ...{ bundle: true, minify: true, format: "esm", jsx: "automatic", write: false, target: "es2022" },
    define: { TEXT_WORKER_URL: '"/text-worker.js"', "process.env.NODE_ENV": '"production"' },
  });
  const size = (bytes: Uint8Array): number => gzipSync(bytes, { level: 9 }).length;
  const kB = (bytes: number): string => `${(bytes / 1000).toFixed(1)} kB`;
  show({
    what: "page, gzip, without React",
    figures: kB(outputFiles.reduce((sum, { contents }) => sum + size(contents), 0)),
    goal: "15 kB",
  });
  const files = [...(await buildPage({ mode: "production" }))].filter(
    ([path]) => path.endsWith(".js") && path !== "/page.js",
  );
  for (const name of ["text-worker", "highlight"]) {
    const file = files.find(([path]) => path.startsWith(`/${name}`));
    show({ what: `${name}, gzip`, figures: kB(size(file?.[1] ?? new Uint8Array())), goal: "" });
  }
  const grammars = files
    .filter(([path]) => !/^\/(text-worker|highlight)/.test(path))
    .map(([, contents]) => size(contents));
  show({
    what: "a language's grammar, gzip",
    figures: `${kB(Math.min(...grammars))} to ${kB(Math.max(...grammars))}`,
    goal: "",
  });
}

async function measureLines(page: Page, rate: number): Promise<void> {
  const tasks: number[] = [];
  for (const [what, text] of Object.entries(LINES)) {
    for (const kind of ["markdown", "output"] as const) {
      const item =
        kind === "markdown"
          ? ({ kind, text, streaming: false } as const)
          : ({ kind, text: `${rate}${text}` } as const);
      const { longestTask } = await page.evaluate(
        (items) => harness.timeOf(items),
        [kind === "markdown" ? { ...item, text: `${rate}${text}` } : item],
      );
      tasks.push(longestTask);
      console.log(`    ${rate}x, ${kind} of ${what}: ${ms(longestTask)}`);
    }
  }
  show({
    what: `200 kB in one line, ${rate}x CPU: the longest task`,
    figures: spread(tasks, [0.5, 0.95, 1]),
    goal: rate === 1 ? "max 100 ms" : "",
  });
}

/** Throttled to a fourth, as the last lines were. */
async function measureStream(
  { page }: TestPage,
  session: CDPSession,
  what: string,
  part: (at: number) => string,
): Promise<void> {
  const count = seconds * DELTAS_PER_SECOND;
  let text = "";
  for (let at = 0; text.length < count * 20; at++) text += part(at);
  const pieces = Array.from({ length: count }, (_, at) => text.slice(at * 20, (at + 1) * 20));
  await page.evaluate(() => harness.show([]));
  await page.locator("textarea").focus();
  await page.evaluate(() => [harness.longTasks(), harness.keydowns()]);
  const busy: number[] = [];
  const sample = async (): Promise<void> => {
    const { metrics } = await session.send("Performance.getMetrics");
    busy.push((metrics.find(({ name }) => name === "TaskDuration")?.value ?? 0) * 1000);
  };
  const streaming = page.evaluate(([all, every]) => harness.stream(all, every), [
    pieces,
    1000 / DELTAS_PER_SECOND,
  ] as const);
  const typing = { isOn: true };
  const ended = streaming.finally(() => (typing.isOn = false));
  const sampler = setInterval(() => void sample(), (seconds * 1000) / 10);
  await sample();
  while (typing.isOn) {
    await page.keyboard.press("a");
    await new Promise((resolve) => setTimeout(resolve, KEY_EVERY_MS));
  }
  await ended;
  clearInterval(sampler);
  const keydowns = await page.evaluate(() => harness.keydowns());
  const tasks = await page.evaluate(() => harness.longTasks());
  const costs = busy.slice(1).map((value, at) => value - (busy[at] ?? 0));
  const perDelta = (cost: number | undefined): number => (cost ?? Number.NaN) / (count / 10);
  show({ what: `${what}: keydown to paint`, figures: spread(keydowns, [0.5, 0.95, 1]), goal: "p95 32 ms" });
  show({
    what: `${what}: tasks above 50 ms`,
    figures: tasks.length === 0 ? "none" : `${tasks.length}, max ${ms(quantile(tasks, 1))}`,
    goal: "max 100 ms",
  });
  // Without the start of the workers.
  show({
    what: `${what}: busy for a delta, second and last tenth`,
    figures: `${ms(perDelta(costs[1]))}, ${ms(perDelta(costs.at(-1)))}`,
    goal: "1.5 times",
  });
}
