/** Output, diffs, JSON and code on the page: what a person and a screen reader get of them. */
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import type { Page } from "playwright-core";
import type { FileDiff } from "../../../machine/message.ts";
import { diffsOf } from "../../../tools/diff.ts";
import { axeFindings } from "../axe.ts";
import type { Harness, Shown } from "./harness/harness.ts";
import { buildPage, hasNoBrowser, openPage, type TestPage } from "./harness/open.ts";

declare const harness: Harness;

const ESC = "\u001b";
const lines = (count: number): string => Array.from({ length: count }, (_, at) => `line ${at}\n`).join("");
const diffOf = (before: string, after: string): FileDiff => {
  const [diff] = diffsOf("/work/src/a.ts", { kind: "text", text: before }, after, {});
  if (diff === undefined) throw new Error("The texts are the same.");
  return diff;
};

describe.skipIf(hasNoBrowser)("on the page", () => {
  let opened: TestPage;
  let page: Page;
  beforeAll(async () => {
    opened = await openPage(await buildPage());
    page = opened.page;
    await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  });
  afterEach(async () => {
    await page.evaluate(() => harness.show([]));
    expect(opened.problems.splice(0)).toEqual([]);
  });
  afterAll(() => opened.close());

  const show = async (...items: Shown[]): Promise<void> => {
    await page.evaluate((all) => harness.show(all), items);
    await page.waitForFunction(() => harness.isFormatted());
  };

  describe("output", () => {
    test("has its colours as classes, and its last lines", async () => {
      await show({ kind: "output", text: `${lines(1000)}${ESC}[31mred${ESC}[0m\n` });
      expect(await page.locator(".tx-red").textContent()).toBe("red");
      const text = (await page.locator(".tx-lines").textContent()) ?? "";
      expect(text).toMatch(/^line \d+\n/);
      expect(text.split("\n").length).toBeGreaterThan(200);
      expect(text.split("\n").length).toBeLessThan(250);
      expect(text.endsWith("line 999\nred\n")).toBe(true);
    });

    test("shows more on demand, a thousand at once", async () => {
      await show({ kind: "output", text: lines(3000) });
      const more = page.getByRole("button", { name: /Show more of the 2,\d+ lines before/ });
      await more.click();
      const shown = async (): Promise<number> =>
        (await page.locator(".tx-lines").textContent())?.split("\n").length ?? 0;
      expect(await shown()).toBeLessThan(1300);
      await page.getByRole("button", { name: /Show more/ }).click();
      await page.getByRole("button", { name: /Show more/ }).click();
      expect(await page.locator(".tx-lines").textContent()).toBe(lines(3000));
      expect(await page.getByRole("button").count()).toBe(0);
    });

    test("of one endless line, or of thousands of colours, brings few elements into the page", async () => {
      await show({ kind: "output", text: "x".repeat(200_000) });
      expect((await page.locator(".tx-lines").textContent())?.length).toBeLessThan(110_000);
      await show({ kind: "output", text: `${ESC}[31ma${ESC}[32mb`.repeat(20_000) });
      expect(await page.locator(".tx-lines span").count()).toBeLessThan(4000);
    });

    test("stays at its end while it grows, unless the person has scrolled up", async () => {
      const box = page.locator(".tx-output");
      const top = (): Promise<number> => box.evaluate(({ scrollTop }) => scrollTop);
      await show({ kind: "output", text: lines(100) });
      const before = await top();
      expect(before).toBeGreaterThan(0);
      await show({ kind: "output", text: lines(150) });
      expect(await top()).toBeGreaterThan(before);
      await box.evaluate((element) => (element.scrollTop = 40));
      await expect.poll(top).toBe(40);
      await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(resolve)));
      await show({ kind: "output", text: lines(180) });
      expect(await top()).toBe(40);
    });

    test("does not touch the lines that are there when more come", async () => {
      await show({ kind: "output", text: lines(100) });
      const first = page.locator(".tx-lines > .tx-piece").first();
      await first.evaluate((element) => element.setAttribute("data-mark", "1"));
      await show({ kind: "output", text: lines(101) });
      expect(await first.getAttribute("data-mark")).toBe("1");
    });

    test("that went wrong is named", async () => {
      await show({ kind: "output", text: lines(100), stream: "stderr" });
      await expect.poll(() => page.getByRole("group", { name: "Error output" }).count()).toBe(1);
    });
  });

  describe("a diff", () => {
    test("has signs for those who see no colours, and words for those who see nothing", async () => {
      await show({ kind: "diff", diff: diffOf("a\nb\nc", "a\nx\nc\n"), base: "/work" });
      const rows = page.locator(".df-rows tbody tr:not(.df-hunk)");
      expect(await rows.allInnerTexts()).toEqual(
        expect.arrayContaining([expect.stringMatching(/−[\s\S]*b/), expect.stringMatching(/\+[\s\S]*x/)]),
      );
      expect(await page.locator(".df-added").first().textContent()).toBe("2+addedx");
      expect(await page.locator(".df-removed").first().textContent()).toBe("2−removedb");
      expect(await page.locator(".df-end").allTextContents()).toEqual([" No newline at the end of the file"]);
      expect(await page.locator(".df-head code").textContent()).toBe("src/a.ts");
      expect(await page.getByRole("img", { name: "2 lines added" }).textContent()).toBe("+2");
      expect(await page.getByRole("img", { name: "2 lines removed" }).textContent()).toBe("−2");
    });

    test("that is long is folded, and opens", async () => {
      await show({ kind: "diff", diff: diffOf("", lines(100)) });
      expect(await page.locator(".df-added").count()).toBe(40);
      await page.getByRole("button", { name: "Show 60 more lines" }).click();
      expect(await page.locator(".df-added").count()).toBe(100);
      expect(await page.getByRole("button").count()).toBe(0);
    });

    test.each<[string, Partial<FileDiff>, string]>([
      ["of an empty new file", { change: "created", diff: "" }, "The new file is empty."],
      ["without a line", { diff: "" }, "No line changed."],
      [
        "of a file that is not shown",
        { diff: "", truncated: true },
        "The lines are not shown: the file is binary, too large, or protected.",
      ],
      ["that was cut", { truncated: true }, "The change is longer. Only its beginning was kept."],
      ["that is none", { diff: "@@ -1,2 +1 @@\nwhatever" }, "whatever"],
    ])("%s says so", async (_name, part, said) => {
      await show({ kind: "diff", diff: { ...diffOf("a\n", "b\n"), ...part } });
      expect(await page.locator(".df").textContent()).toContain(said);
    });

    test("shows what makes code read otherwise than it runs", async () => {
      await show({ kind: "diff", diff: diffOf("a\n", "if (\u202e b) \u2066 {\u200b\r\n") });
      expect(await page.locator(".df-added .tx-hidden").allTextContents()).toEqual([
        ...["U+202E", "U+2066", "U+200B U+000D"],
      ]);
    });
  });

  test("JSON that is long shows more on demand", async () => {
    await show({ kind: "json", value: { a: "x".repeat(5000), b: ["\u202e"] } });
    expect(await page.locator(".tx-json pre").textContent()).toContain("4,400 more characters");
    await page.getByRole("button", { name: "Show more" }).click();
    expect(await page.locator(".tx-json pre").textContent()).toBe(
      JSON.stringify({ a: "x".repeat(5000), b: ["U+202E"] }, null, 2),
    );
    expect(await page.getByRole("button").count()).toBe(0);
  });

  describe("code", () => {
    const fence = (code: string): Shown => ({
      kind: "markdown",
      text: `\`\`\`ts\n${code}\n\`\`\``,
      streaming: false,
    });

    test("is copied as it is", async () => {
      const code = `${"const a = `b`; // <c> &amp;\n".repeat(100)}\tend`;
      await show(fence(code));
      await page.getByRole("button", { name: "Copy code" }).click();
      await expect.poll(() => page.locator(".md-copy").textContent()).toBe("Copied");
      expect(await page.evaluate("navigator.clipboard.readText()")).toBe(code);
    });

    test("that is wider than the page can be scrolled with the keyboard; other code is no stop", async () => {
      await show(fence("a ".repeat(500)), fence("a"));
      const wide = page.getByRole("group", { name: "Code, TypeScript" });
      await expect.poll(() => wide.count()).toBe(1);
      await wide.focus();
      await page.keyboard.press("ArrowRight");
      await expect.poll(() => wide.evaluate(({ scrollLeft }) => scrollLeft)).toBeGreaterThan(0);
      expect(await page.locator("pre[tabindex]").count()).toBe(1);
    });

    test("is a stop as soon as the page is too narrow for it, and no longer", async () => {
      const wide = { width: 1280, height: 800 };
      await page.setViewportSize(wide);
      await show(fence("a ".repeat(50)));
      const stops = page.locator("pre[tabindex]");
      for (const size of [{ ...wide, width: 400 }, wide, { ...wide, width: 300 }]) {
        await page.setViewportSize(size);
        await expect.poll(() => stops.count()).toBe(size === wide ? 0 : 1);
      }
      await page.setViewportSize(wide);
    });

    test("is a stop as soon as it has grown wider than the page", async () => {
      const begun = "```ts\nconst a = ";
      await show({ kind: "markdown", text: begun, streaming: true });
      await show({ kind: "markdown", text: `${begun}${"b + ".repeat(500)}`, streaming: true });
      await expect.poll(() => page.locator("pre[tabindex]").count()).toBe(1);
    });
  });

  test("links open elsewhere, and images are addresses", async () => {
    await show({
      kind: "markdown",
      text: "[docs](https://example.com/a) https://example.com ![x](http://example.com/?q=1) [y](src/a.ts) ![z](a.png)",
      streaming: false,
    });
    expect(await page.locator(".md").innerText()).toBe(
      "docs (example.com) https://example.com Image “x”: http://example.com/?q=1 y (src/a.ts) Image “z”: a.png",
    );
    expect(
      await page.locator("a").evaluateAll((all) => all.map((link) => link.getAttribute("href"))),
    ).toEqual([...["https://example.com/a", "https://example.com/", "http://example.com/?q=1"]]);
  });

  test.each(["light", "dark"] as const)("axe finds nothing in the %s theme", async (colorScheme) => {
    await page.emulateMedia({ colorScheme });
    const code = ["const a = `b ${1}`; // c\nfunction d(e: string): void {}", "x ".repeat(300)].join("\n");
    await show(
      {
        kind: "markdown",
        text: [
          "### A\n\ntext *b* **c** ~~d~~ `e` [f](http://g.hh) ![i](http://j.kk) <b>l</b>\n\n# B\n\n#### C",
          `> quoted [f](http://g.hh)\n\n1. a\n2. b\n   - c\n\n- [x] d\n- [ ] e\n\n---\n\n\`\`\`ts\n${code}\n\`\`\``,
          `${"| column ".repeat(30)}|\n${"|-:".repeat(30)}|\n| c | d |\n\n    code\n\n<div>html</div>`,
          "```python\ndef a(): # b\n```\n\n```diff\n-a\n+b\n```\n\n[](http://a.bb) \u202e",
        ].join("\n\n"),
        streaming: false,
      },
      { kind: "markdown", text: "_a_".repeat(100), streaming: true },
      {
        kind: "output",
        text: `${[0, 1, 2, 7, 31, 32, 33, 34, 35, 36, 90, 41, 42, 43, 44, 45, 46, 100].map((code) => `${ESC}[${code}mtext${ESC}[0m`).join(" ")}\n${lines(300)}`,
      },
      { kind: "output", text: "error\u0000", stream: "stderr" },
      { kind: "diff", diff: diffOf(`${lines(100)}a\nb`, `x\n${lines(100)}\u202e\n`) },
      { kind: "diff", diff: { ...diffOf("a\n", "b\n"), path: "/work/b.ts", diff: "", truncated: true } },
      { kind: "json", value: { a: "x".repeat(2000), b: "\u202e" } },
    );
    await expect.poll(() => page.locator(".tx-comment").count()).toBe(2);
    await expect.poll(() => page.locator(".md-table[tabindex], pre[tabindex]").count()).toBe(2);
    expect(await axeFindings(page)).toEqual([]);
    expect(
      await page.locator("h2, h3, h4, h5, h6").evaluateAll((all) => all.map(({ tagName }) => tagName)),
    ).toEqual([...["H2", "H2", "H3"]]);
  });
});
