/**
 * Live text on its way to clients: few notifications, nothing lost at a model's pace, a bound beyond it, and a second
 * telling for those who have missed it.
 */
import fc from "fast-check";
import { expect, onTestFinished, test, vi } from "vitest";
import { KEPT_LIVE_CHARS } from "../../protocol/formats.ts";
import { LiveText, RATE, type LiveTextOptions } from "../../activities/live-text.ts";
import { LiveTexts } from "../../activities/live-texts.ts";
import { deferred } from "../support/waiting.ts";

type Published = { source: string; offset: number; text: string; after: number; again: boolean };

function collecting(options: Partial<LiveTextOptions<string>> = {}) {
  const published: Published[] = [];
  const live = new LiveText<string>({
    keyOf: (source) => source,
    publish: (piece, after, again) => {
      published.push({ ...piece, after, again });
      return Promise.resolve();
    },
    ...options,
  });
  return { live, published };
}

/** Stops the clock; only the test advances it. */
function stopClock(): void {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
}

const joined = (published: readonly Published[]): string => published.map(({ text }) => text).join("");

test("tokens of one block become one notification; blocks stay separate, in order, and count on their own", async () => {
  const { live, published } = collecting();
  for (const [source, text] of [
    ["thinking 0", "h"],
    ["thinking 0", "m"],
    ["text 1", "Hel"],
    ["text 1", "lo"],
    ["thinking 0", "?"],
  ] as const)
    live.push(source, text);
  await live.close();
  expect(published).toEqual([
    { source: "thinking 0", offset: 0, text: "hm", after: 0, again: false },
    { source: "text 1", offset: 0, text: "Hello", after: 0, again: false },
    { source: "thinking 0", offset: 2, text: "?", after: 2, again: false },
  ]);
});

test("pushed text is published by itself after the interval", async () => {
  const { promise, resolve } = deferred<string>();
  const publish: LiveTextOptions<string>["publish"] = ({ text }) => {
    resolve(text);
    return Promise.resolve();
  };
  collecting({ publish, intervalMs: 5 }).live.push("text", "soon");
  expect(await promise).toBe("soon");
});

test("property: no text is lost, no character is split, each piece follows the one before", async () => {
  const token = fc.oneof(
    fc.string({ unit: "binary", maxLength: 60 }),
    fc.constantFrom("\n".repeat(40), '"\\'.repeat(30), "🙂".repeat(20), "\ud83d", "\ude42"),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(token, { maxLength: 40 }), async (tokens) => {
      const { live, published } = collecting({ intervalMs: 0 });
      for (const [index, part] of tokens.entries()) {
        live.push("text", part);
        if (index % 7 === 0) await new Promise((resolve) => setTimeout(resolve, 1));
      }
      await live.close();
      const whole = tokens.join("");
      expect(joined(published)).toBe(whole);
      let end = 0;
      for (const { offset, after, text } of published) {
        expect([offset, after]).toEqual([end, end]);
        end += text.length;
      }
      if (/\p{Surrogate}/u.test(whole)) return;
      for (const { text } of published) expect(text).not.toMatch(/\p{Surrogate}/u);
    }),
    { numRuns: 60 },
  );
});

test("a slow publisher gets larger notifications one at a time; a failed one loses only its own text", async () => {
  const published: string[] = [];
  let running = 0;
  const { live } = collecting({
    intervalMs: 1,
    publish: async ({ text }) => {
      expect(++running).toBe(1);
      await new Promise((resolve) => setTimeout(resolve, 20));
      running--;
      if (published.push(text) === 1) throw new Error("gone");
    },
  });
  const words = Array.from({ length: 40 }, (_, n) => `${n} `);
  for (const word of words) {
    live.push("text", word);
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  await live.close();
  expect(published.join("")).toBe(words.join(""));
  expect(published.length).toBeLessThan(10);
});

test("a flood is cut to the limit per second; what follows says by its offset how much is missing", async () => {
  stopClock();
  const { live, published } = collecting();
  for (let n = 0; n < 1_000; n++) live.push("stdout", "x".repeat(1_000));
  vi.advanceTimersByTime(1_000);
  live.push("stdout", "the end");
  await live.close();
  expect(published).toEqual([
    { source: "stdout", offset: 0, text: "x".repeat(RATE), after: 0, again: false },
    { source: "stdout", offset: 1_000_000, text: "the end", after: RATE, again: false },
  ]);
});

test("a flood of pieces that cannot be joined becomes a few notifications", async () => {
  stopClock();
  const { live, published } = collecting();
  for (let n = 0; n < 10_000; n++) live.push(n % 2 === 0 ? "stdout" : "stderr", "x");
  await live.close();
  expect(published.length).toBeLessThan(100);
});

test("while a publisher hangs, at most one second's limit of text waits for it", async () => {
  stopClock();
  const { promise: released, resolve: release } = deferred<undefined>();
  const published: string[] = [];
  const { live } = collecting({
    publish: async ({ text }) => {
      await released;
      published.push(text);
    },
  });
  for (let n = 0; n < 1_000; n++) {
    live.push("stdout", "x".repeat(1_000));
    vi.advanceTimersByTime(20);
  }
  release(undefined);
  await live.close();
  expect(published.length).toBeLessThan(20);
  expect(published.slice(1).join("").length).toBeLessThanOrEqual(RATE);
});

test("told again, it comes from the beginning, in its place among what is new", async () => {
  const { live, published } = collecting();
  live.push("thinking 0", "hm");
  live.push("text 1", "Hel");
  live.tellAgain();
  live.push("text 1", "lo");
  await live.close();
  expect(published.map(({ source, offset, text, again }) => [source, offset, text, again])).toEqual([
    ["thinking 0", 0, "hm", false],
    ["text 1", 0, "Hel", false],
    ["thinking 0", 0, "hm", true],
    ["text 1", 0, "Hel", true],
    ["text 1", 3, "lo", false],
  ]);
});

test("the newest part of a long text is kept; its offset says what is not", async () => {
  stopClock();
  const { live, published } = collecting();
  const second = "0123456789abcdef".repeat(RATE / 16);
  for (let n = 0; n < 6; n++) {
    live.push("stdout", second);
    await vi.advanceTimersByTimeAsync(1_000);
  }
  published.length = 0;
  live.tellAgain();
  await live.close();
  const [first] = published;
  expect(first).toMatchObject({ offset: 6 * RATE - KEPT_LIVE_CHARS, again: true });
  expect(joined(published)).toBe(second.repeat(6).slice(-KEPT_LIVE_CHARS));
});

test("what runs is told again by conversation; what has ended is not", async () => {
  const texts = new LiveTexts();
  const published: string[] = [];
  const options: LiveTextOptions<string> = {
    keyOf: (source) => source,
    publish: ({ text }, _after, again) => {
      if (again) published.push(text);
      return Promise.resolve();
    },
  };
  const { promise: finished, resolve: finish } = deferred<undefined>();
  const works = ["one", "two"].map((id) =>
    texts.during(id, options, async (text) => {
      text.push("text", id);
      await finished;
    }),
  );
  texts.tellAgain("one");
  texts.tellAgain("three");
  await expect.poll(() => published).toEqual(["one"]);
  texts.tellAllAgain();
  await expect.poll(() => published).toEqual(["one", "one", "two"]);
  finish(undefined);
  await Promise.all(works);
  texts.tellAllAgain();
  expect(published).toHaveLength(3);
});
