/** A text is readable at once, and when it cannot be formatted. */
import { afterEach, describe, expect, test } from "vitest";
import type { Harness } from "./harness/harness.ts";
import { buildPage, hasNoBrowser, openPage, type TestPage } from "./harness/open.ts";

declare const harness: Harness;

/** The lexer would need minutes. */
const SLOW = "_a_".repeat(66_000);

describe.skipIf(hasNoBrowser)("a text that is not formatted", () => {
  let opened: TestPage | undefined;
  afterEach(async () => opened?.close());

  test("yet, is there in the first frame, with its paragraphs", async () => {
    opened = await openPage(await buildPage());
    const html = await opened.page.evaluate(() => {
      harness.show([{ kind: "markdown", text: "# a\n\n**b**\n  c", streaming: true }]);
      return harness.html();
    });
    expect(html).toBe(
      '<div class="md md-unformatted"><p class="md-plain"># a</p><p class="md-plain">**b**\n  c</p></div>',
    );
    expect(opened.problems).toEqual([]);
  });

  test.each([
    ["because the worker is missing", "/nowhere.js"],
    ["because the worker is from elsewhere", "https://example.invalid/worker.js"],
    ["because the worker is no program", "/style.css"],
  ])("%s, can be read", async (_why, worker) => {
    opened = await openPage(await buildPage({ worker }));
    const { page } = opened;
    await page.evaluate(() => harness.stream(["# a", "\n\n**b", "**", "\n\n```ts\nc\n```"]));
    await expect(page.locator(".md").textContent()).resolves.toBe("# a**b**```ts\nc\n```");
    await page.evaluate(() =>
      harness.show([{ kind: "markdown", text: "x".repeat(100_000), streaming: false }]),
    );
    await expect(page.locator(".md").textContent()).resolves.toBe("x".repeat(100_000));
    expect(await page.locator(".md-unformatted").count()).toBe(1);
  });

  test("in its time, stays plain; the others go on, in a new worker", async () => {
    opened = await openPage(await buildPage());
    const { page } = opened;
    await page.evaluate(
      ([slow, other]) => {
        harness.show([
          { kind: "markdown", text: slow, streaming: false },
          { kind: "markdown", text: other, streaming: true },
          { kind: "markdown", text: other, streaming: false },
        ]);
      },
      [SLOW, "**a**"] as const,
    );
    await expect.poll(() => page.locator("strong").count()).toBe(2);
    await page.evaluate(
      ([slow, other]) => {
        harness.show([
          { kind: "markdown", text: slow, streaming: false },
          { kind: "markdown", text: `${other} and **b**`, streaming: true },
          { kind: "markdown", text: other, streaming: false },
        ]);
      },
      [SLOW, "**a**"] as const,
    );
    await expect.poll(() => page.locator("strong").count()).toBe(3);
    expect(await page.locator(".md-unformatted").count()).toBe(1);
    await expect(page.locator(".md-unformatted").textContent()).resolves.toBe(SLOW);
    // It is not tried again, so nobody waits for it again.
    await page.evaluate((slow) => harness.show([{ kind: "markdown", text: slow, streaming: false }]), SLOW);
    await page.evaluate(
      (slow) =>
        harness.show([
          { kind: "markdown", text: slow, streaming: false },
          { kind: "markdown", text: "**c**", streaming: false },
        ]),
      SLOW,
    );
    await expect.poll(() => page.locator("strong").count()).toBe(1);
    expect(opened.problems).toEqual([]);
  });

  test("because it is too long, is whole", async () => {
    opened = await openPage(await buildPage());
    const { page } = opened;
    const text = "**word**\n".repeat(120_000);
    await page.evaluate((all) => harness.show([{ kind: "markdown", text: all, streaming: false }]), text);
    await expect(page.locator(".md").textContent()).resolves.toBe(text);
    expect(page.workers()).toEqual([]);
  });
});
