/** Texts of models and tools that attack the page: nothing runs, nothing is loaded, no link lies. */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { diffsOf } from "../../../tools/diff.ts";
import { FOREIGN, XSS_CORPUS } from "../xss-corpus.ts";
import type { Harness, Shown } from "./harness/harness.ts";
import { buildPage, hasNoBrowser, openPage, type TestPage } from "./harness/open.ts";

declare const harness: Harness;

/** The text in each field that a model or a tool can fill. */
function fieldsOf(text: string): Shown[] {
  const [diff] = diffsOf(
    "/work/file.ts",
    { kind: "text", text: `a\n${text}\nb\n` },
    `b\n${text}\n${text}`,
    {},
  );
  const path = `/work/${text}`;
  return [
    { kind: "markdown", text, streaming: false },
    { kind: "markdown", text, streaming: true },
    {
      kind: "markdown",
      text: `# ${text}\n\n- ${text}\n\n> ${text}\n\n\`\`\`${text}\n${text}\n\`\`\``,
      streaming: false,
    },
    { kind: "output", text, stream: "stderr" },
    { kind: "json", value: { [text]: [text, { text }] } },
    {
      kind: "diff",
      diff: { path, change: "modified", diff: text, addedLines: 1, removedLines: 1, truncated: true },
    },
    ...(diff === undefined ? [] : [{ kind: "diff" as const, diff: { ...diff, path } }]),
  ];
}

describe.skipIf(hasNoBrowser)("the corpus of attacks", () => {
  let opened: TestPage;
  const folder = mkdtempSync(join(tmpdir(), "bedrock-netlog-"));
  const netLog = join(folder, "net.json");

  beforeAll(async () => {
    opened = await openPage(await buildPage(), [`--log-net-log=${netLog}`]);
  });
  afterAll(async () => {
    await opened.close();
    rmSync(folder, { recursive: true, force: true });
  });

  test("has at least 80 entries, each with a name of its own", () => {
    expect(new Set(XSS_CORPUS.map(([name]) => name)).size).toBe(XSS_CORPUS.length);
    expect(XSS_CORPUS.length).toBeGreaterThanOrEqual(80);
  });

  test.each(XSS_CORPUS)("%s", async (_name, text) => {
    const { page } = opened;
    await page.evaluate((items) => harness.show(items), fieldsOf(text));
    await page.waitForFunction(() => harness.isFormatted());
    expect(await page.evaluate(() => harness.findings())).toEqual([]);
    // Again, as it comes in pieces.
    for (let end = 1; end < text.length; end += Math.ceil(text.length / 7))
      await page.evaluate(
        (part) =>
          harness.show([
            { kind: "markdown", text: part, streaming: true },
            { kind: "output", text: part },
          ]),
        text.slice(0, end),
      );
    await page.waitForFunction(() => harness.isFormatted());
    expect(await page.evaluate(() => harness.findings())).toEqual([]);
    expect(opened.problems.splice(0)).toEqual([]);
  });

  test("the page is still there, and nothing was asked of anybody else, not even for a name", async () => {
    const { page, origin, requests, browser } = opened;
    expect(page.url()).toBe(`${origin}/`);
    expect(browser.contexts().flatMap((context) => context.pages())).toHaveLength(1);
    expect(requests.filter((url) => !url.startsWith(`${origin}/`))).toEqual([]);
    await opened.close();
    const log = readFileSync(netLog, "utf8");
    // It is a log of this page, so it would have the others.
    expect(log).toContain("/text-worker.js");
    expect(log).not.toContain(FOREIGN);
  });
});
