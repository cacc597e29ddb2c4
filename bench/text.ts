/** Measures: the texts of the page in Chromium, by themselves: sizes, and 200 kB in one line on a slow processor. */
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";
import type { Page } from "playwright-core";
import { hasNoBrowser, buildPage, openPage } from "../test/web/text/harness/open.ts";
import type { Harness } from "../test/web/text/harness/harness.ts";
import { LINES } from "./page-stream.ts";
import { ms, spread, type Row } from "./stats.ts";

declare const harness: Harness;

const ROOT = join(import.meta.dirname, "..");

export async function* texts(): AsyncGenerator<Row> {
  yield* measureSizes();
  if (hasNoBrowser) return;
  const opened = await openPage(await buildPage({ mode: "production" }));
  try {
    const session = await opened.page.context().newCDPSession(opened.page);
    for (const rate of [1, 4]) {
      await session.send("Emulation.setCPUThrottlingRate", { rate });
      yield {
        what: `a text of 200 kB in one line, ${rate === 1 ? "" : `${rate} times slower, `}the longest task`,
        figures: spread(await longestTasks(opened.page, rate), [0.5, 0.95, 1]),
        goal: rate === 1 ? "max 100 ms" : "",
      };
    }
    if (opened.problems.length > 0) throw new Error(`problems of the page: ${opened.problems.join("; ")}`);
  } finally {
    await opened.close();
  }
}

/** Compressed, without React: what the page loads at once, and the worker's files. */
async function* measureSizes(): AsyncGenerator<Row> {
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
  yield {
    what: "the page's code for texts, gzip, without React",
    figures: kB(outputFiles.reduce((sum, { contents }) => sum + size(contents), 0)),
    goal: "15 kB",
  };
  const files = [...(await buildPage({ mode: "production" }))].filter(
    ([path]) => path.endsWith(".js") && path !== "/page.js",
  );
  for (const name of ["text-worker", "highlight"]) {
    const file = files.find(([path]) => path.startsWith(`/${name}`));
    yield { what: `${name}, gzip`, figures: kB(size(file?.[1] ?? new Uint8Array())), goal: "" };
  }
  const grammars = files
    .filter(([path]) => !/^\/(text-worker|highlight)/.test(path))
    .map(([, contents]) => size(contents));
  yield {
    what: "a language's grammar, gzip",
    figures: `${kB(Math.min(...grammars))} to ${kB(Math.max(...grammars))}`,
    goal: "",
  };
}

/** Milliseconds, one for each line as Markdown and as output. */
async function longestTasks(page: Page, rate: number): Promise<readonly number[]> {
  const tasks: number[] = [];
  for (const [what, line] of Object.entries(LINES)) {
    // What was shown before would come out of a cache.
    const text = `${rate}${line}`;
    for (const item of [
      { kind: "markdown", text, streaming: false },
      { kind: "output", text },
    ] as const) {
      const { longestTask } = await page.evaluate((one) => harness.timeOf([one]), item);
      console.log(`    ${rate}x, ${item.kind} of ${what}: ${ms(longestTask)}`);
      tasks.push(longestTask);
    }
  }
  return tasks;
}
