/** Live text on its way to clients: few notifications, nothing lost at a model's pace, and a bound beyond it. */
import fc from "fast-check";
import { expect, onTestFinished, test, vi } from "vitest";
import { createLiveText, GAP, RATE, type LiveTextOptions } from "../../activities/live-text.ts";
import { deferred } from "../support/waiting.ts";

type Published = [source: string, text: string];

function collecting(options: Partial<LiveTextOptions<string>> = {}) {
  const published: Published[] = [];
  const live = createLiveText<string>({
    isSame: (a, b) => a === b,
    publish: (source, text) => {
      published.push([source, text]);
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

const joined = (published: readonly Published[]): string => published.map(([, text]) => text).join("");

test("tokens of one block become one notification, and blocks stay separate and in order", async () => {
  const { live, published } = collecting();
  live.push("thinking 0", "h");
  live.push("thinking 0", "m");
  live.push("text 1", "Hel");
  live.push("text 1", "lo");
  live.push("text 2", "again");
  await live.close();
  expect(published).toEqual([
    ["thinking 0", "hm"],
    ["text 1", "Hello"],
    ["text 2", "again"],
  ]);
});

test("pushed text is published by itself after the interval", async () => {
  const { promise, resolve } = deferred<Published>();
  const publish = (...published: Published) => {
    resolve(published);
    return Promise.resolve();
  };
  collecting({ publish, intervalMs: 5 }).live.push("text", "soon");
  expect(await promise).toEqual(["text", "soon"]);
});

test("property: no text is lost and no character is split", async () => {
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
      if (/\p{Surrogate}/u.test(whole)) return;
      for (const [, part] of published) expect(part).not.toMatch(/\p{Surrogate}/u);
    }),
    { numRuns: 60 },
  );
});

test("a slow publisher gets larger notifications one at a time; a failed one loses only its own text", async () => {
  const published: string[] = [];
  let running = 0;
  const { live } = collecting({
    intervalMs: 1,
    publish: async (_, text) => {
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

test("a flood is cut to the limit per second, and the gap is marked once", async () => {
  stopClock();
  const { live, published } = collecting();
  for (let n = 0; n < 1_000; n++) live.push("stdout", "x".repeat(1_000));
  await live.close();
  expect(joined(published)).toBe("x".repeat(RATE) + GAP);
});

test("a flood of pieces that cannot be joined becomes a few notifications", async () => {
  stopClock();
  const { live, published } = collecting();
  for (let n = 0; n < 10_000; n++) live.push(n % 2 === 0 ? "stdout" : "stderr", "x");
  await live.close();
  expect(published.length).toBeLessThan(100);
  expect(joined(published).endsWith(GAP)).toBe(true);
});

test("while a publisher hangs, at most one second's limit of text waits for it", async () => {
  stopClock();
  const { promise: released, resolve: release } = deferred<undefined>();
  const published: string[] = [];
  const { live } = collecting({
    publish: async (_, text) => {
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
  expect(published).toHaveLength(2);
  expect(published[1]?.length).toBeLessThan(RATE + 20 * GAP.length);
});
