import fc from "fast-check";
import { expect, test } from "vitest";
import type { Delta } from "../../llm/accumulate.ts";
import { createDeltaBatcher } from "../../llm/deltas.ts";

const text = (words: string, index = 0): Delta => ({ kind: "text", index, text: words });

test("tokens of one block become one notification, blocks stay apart and in order", async () => {
  const published: Delta[] = [];
  const batcher = createDeltaBatcher({ publish: (delta) => void published.push(delta) });
  batcher.push({ kind: "thinking", index: 0, text: "h" });
  batcher.push({ kind: "thinking", index: 0, text: "m" });
  batcher.push(text("Hel", 1));
  batcher.push(text("lo", 1));
  batcher.push(text("again", 2));
  await batcher.close();
  expect(published).toEqual([{ kind: "thinking", index: 0, text: "hm" }, text("Hello", 1), text("again", 2)]);
});

test("what was pushed is published without being asked for", async () => {
  const published = new Promise<Delta>((resolve) => {
    createDeltaBatcher({ publish: resolve, intervalMs: 5 }).push(text("soon"));
  });
  expect(await published).toEqual(text("soon"));
});

test("property: nothing is lost, no notification is too large, no character is split", async () => {
  const token = fc.oneof(
    fc.string({ unit: "binary", maxLength: 60 }),
    fc.constantFrom("\n".repeat(40), '"\\'.repeat(30), "🙂".repeat(20), "\ud83d", "\ude42"),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(token, { maxLength: 40 }), async (tokens) => {
      const published: string[] = [];
      const batcher = createDeltaBatcher({
        publish: (delta) => void published.push(delta.text),
        intervalMs: 0,
        maxBytes: 100,
      });
      for (const [index, part] of tokens.entries()) {
        batcher.push(text(part));
        if (index % 7 === 0) await new Promise((resolve) => setTimeout(resolve, 1));
      }
      await batcher.close();
      const whole = tokens.join("");
      expect(published.join("")).toBe(whole);
      for (const part of published) {
        expect(Buffer.byteLength(JSON.stringify(part)) - 2).toBeLessThanOrEqual(100);
        if (!/\p{Surrogate}/u.test(whole)) expect(part).not.toMatch(/\p{Surrogate}/u);
      }
    }),
    { numRuns: 60 },
  );
});

test("a slow publisher gets one at a time and larger batches; a failing one loses only its notification", async () => {
  const published: string[] = [];
  let running = 0;
  const batcher = createDeltaBatcher({
    intervalMs: 1,
    publish: async (delta) => {
      expect(++running).toBe(1);
      await new Promise((resolve) => setTimeout(resolve, 20));
      running--;
      if (published.push(delta.text) === 1) throw new Error("gone");
    },
  });
  const words = Array.from({ length: 40 }, (_, n) => `${n} `);
  for (const word of words) {
    batcher.push(text(word));
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  await batcher.close();
  expect(published.join("")).toBe(words.join(""));
  expect(published.length).toBeLessThan(10);
});
