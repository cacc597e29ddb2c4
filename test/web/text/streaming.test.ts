/** Text that comes in pieces, in a browser: what a person sees in the end, and on the way there. */
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Harness } from "./harness/harness.ts";
import { buildPage, hasNoBrowser, openPage, type TestPage } from "./harness/open.ts";
import { answer, cut, tangle } from "./markdown-texts.ts";

declare const harness: Harness;

/** The address of a link is shown in full only until it is formatted; the mark of a task, until then, is a letter. */
const withoutAddresses = answer.map((text) =>
  `Begins: ${text}`
    .replace(/!?\[(\w+)\]\([^)]*\)/g, "$1")
    .replace(/https\S+/g, "x")
    .replace(/\[x\]/g, "[ ]"),
);

describe.skipIf(hasNoBrowser)("a text that comes in pieces", () => {
  let opened: TestPage;
  /** It has seen nothing of what comes in pieces. */
  let other: TestPage;
  beforeAll(async () => {
    const files = await buildPage();
    [opened, other] = await Promise.all([openPage(files), openPage(files)]);
  });
  afterAll(async () => {
    await Promise.all([opened.close(), other.close()]);
    expect([...opened.problems, ...other.problems]).toEqual([]);
  });

  /** The markup of a text that is shown at once. */
  const whole = async ({ page }: TestPage, text: string): Promise<string> => {
    await page.evaluate(() => harness.show([]));
    await page.evaluate((all) => harness.show([{ kind: "markdown", text: all, streaming: false }]), text);
    await page.waitForFunction(() => harness.isFormatted());
    return page.evaluate(() => harness.html());
  };

  test.each([
    ["answers", cut(answer), 25],
    ["tangles", cut(tangle), 40],
  ])("property: %s end in the same elements as if they had come at once", async (_name, pieces, numRuns) => {
    const { page } = opened;
    await fc.assert(
      fc.asyncProperty(pieces, async (parts) => {
        await page.evaluate(() => harness.show([]));
        await page.evaluate((all) => harness.stream(all), parts);
        const expected = await whole(other, parts.join(""));
        await expect.poll(() => page.evaluate(() => harness.html())).toBe(expected);
      }),
      { numRuns },
    );
  });

  test("property: the letters that are seen never get fewer", async () => {
    const { page } = opened;
    await fc.assert(
      fc.asyncProperty(cut(withoutAddresses), async (parts) => {
        await page.evaluate(() => harness.show([]));
        const { letters } = await page.evaluate((all) => harness.stream(all), parts);
        expect(letters).toEqual(letters.toSorted((a, b) => a - b));
        expect(letters.at(-1)).toBeGreaterThan(0);
      }),
      { numRuns: 25 },
    );
  });

  test("who comes when much has been said sees no letter go that was there before it was formatted", async () => {
    const { page } = opened;
    const long = Array.from({ length: 4_000 }, (_, at) => `A paragraph, number ${at}, of words.\n\n`).join(
      "",
    );
    const more = Array.from({ length: 40 }, () => "more ");
    await page.evaluate(() => harness.show([]));
    const { letters } = await page.evaluate((all) => harness.stream(all), [long, ...more]);
    expect(letters).toEqual(letters.toSorted((a, b) => a - b));
    await page.waitForFunction(() => harness.isFormatted());
  });

  test.each([
    ["paragraphs", Array.from({ length: 700 }, (_, at) => (at % 30 === 29 ? "end.\n\n" : `**word** ${at} `))],
    ["code", ["```ts\n", ...Array.from({ length: 700 }, (_, at) => (at % 6 === 5 ? "1;\n" : `a${at} = `))]],
    ["a list", Array.from({ length: 500 }, (_, at) => (at % 10 === 0 ? "\n- item " : `word ${at} `))],
  ])("a delta changes as much of the page at the end of %s as at the beginning", async (_name, pieces) => {
    const { page } = opened;
    await page.evaluate(() => harness.show([]));
    const { mutations } = await page.evaluate((all) => harness.stream(all, 4), pieces);
    const sum = (values: readonly number[]): number => values.reduce((a, b) => a + b, 0);
    const tenth = Math.floor(mutations.length / 10);
    // The first tenth has the change from plain to formatted.
    expect(sum(mutations.slice(-tenth))).toBeLessThanOrEqual(2 * sum(mutations.slice(tenth, 2 * tenth)));
    expect(sum(mutations)).toBeGreaterThan(0);
  });

  test("a worker lexes, and another one colours code, which is the same code", async () => {
    const { page } = opened;
    const code = "const a = `b ${c}`; // d\n".repeat(100);
    await page.evaluate(() => harness.show([]));
    await page.evaluate(
      (parts) => harness.stream(parts),
      ["```ts\n", ...(code.match(/.{1,90}/gs) ?? []), "```\n"],
    );
    await expect.poll(() => page.locator(".tx-comment").count()).toBe(100);
    await expect(page.locator("pre code").textContent()).resolves.toBe(code.trimEnd());
    expect(page.workers().map((worker) => worker.url())).toEqual(
      Array<string>(2).fill(`${opened.origin}/text-worker.js`),
    );
  });

  test("a text that was formatted before is so at once when it is shown again", async () => {
    const { page } = opened;
    const html = await whole(opened, "# a\n\n**b**");
    await page.evaluate(() => harness.show([]));
    const again = await page.evaluate(() => {
      harness.show([{ kind: "markdown", text: "# a\n\n**b**", streaming: false }]);
      return harness.html();
    });
    expect(again).toBe(html);
  });
});
