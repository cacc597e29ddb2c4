/** Property: however pieces are lost, repeated and told again, a client puts together the text, or sees the gap. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { LiveProgress } from "../../api/events/live-progress.ts";
import type { LivePiece } from "../../db/live.ts";
import type { State } from "../../machine/conversation.ts";

const requesting = (requestId: string): State => ({
  kind: "llm_requesting",
  attempt: 1,
  lost: 0,
  requestId,
  retry: null,
});

const piece = (
  text: string,
  offset: number,
  { after = offset, again = false, index = 0, requestId = "r" } = {},
): LivePiece => ({
  event: { name: "text.delta", data: { requestId, index, offset, text } },
  after,
  again,
});

test("property: a client has every character once and in order, whatever is lost on the way", () => {
  const TEXT = "The quick brown fox jumps over the lazy dog.";
  const cuts = fc.uniqueArray(fc.nat({ max: TEXT.length }), { maxLength: 8 });
  fc.assert(
    fc.property(cuts, fc.infiniteStream(fc.boolean()), (places, lost) => {
      const ends = [...new Set([...places, TEXT.length])].filter((end) => end > 0).sort((a, b) => a - b);
      const progress = new LiveProgress();
      let shown = "";
      const take = (each: LivePiece): boolean => {
        const result = progress.take(requesting("r"), each);
        if (result.kind === "new") {
          expect(result.event.data.offset).toBe(shown.length);
          shown += result.event.data.text;
        }
        return result.kind === "missed";
      };
      let from = 0;
      for (const to of ends) {
        const isLost = lost.next().value === true;
        if (!isLost && take(piece(TEXT.slice(from, to), from))) {
          // The worker tells it again, perhaps in two pieces, the second of them twice.
          const middle = to >> 1;
          take(piece(TEXT.slice(0, middle), 0, { again: true }));
          for (let n = 0; n < 2; n++) take(piece(TEXT.slice(middle, to), middle, { again: true }));
          expect(shown).toBe(TEXT.slice(0, to));
        }
        from = to;
      }
      expect(TEXT.startsWith(shown)).toBe(true);
    }),
  );
});

test("a gap that the worker made is shown, and asks for nothing", () => {
  const progress = new LiveProgress();
  expect(progress.take(requesting("r"), piece("begin", 0))).toMatchObject({ kind: "new" });
  const jump = progress.take(requesting("r"), piece("end", 900, { after: 5 }));
  expect(jump).toMatchObject({ kind: "new", event: { data: { offset: 900, text: "end" } } });
});

test("what was told again from later than the beginning is shown with its gap", () => {
  const progress = new LiveProgress();
  const kept = piece("the end", 4_000, { again: true });
  expect(progress.take(requesting("r"), kept)).toMatchObject({
    kind: "new",
    event: { data: { offset: 4_000 } },
  });
});

test("each block counts on its own, and a new request begins anew", () => {
  const progress = new LiveProgress();
  expect(progress.take(requesting("r"), piece("one", 0)).kind).toBe("new");
  expect(progress.take(requesting("r"), piece("two", 0, { index: 1 })).kind).toBe("new");
  expect(progress.take(requesting("r"), piece("one", 0)).kind).toBe("old");
  expect(progress.take(requesting("s"), piece("late", 3)).kind).toBe("old");
  expect(progress.take(requesting("s"), piece("one", 0, { requestId: "s" })).kind).toBe("new");
});

test("text of a request that waits for its retry, or of a call that has ended, is old", () => {
  const progress = new LiveProgress();
  const retry = { at: "2026-01-01T00:00:00.000Z", errorKind: "network", message: "reset" } as const;
  const waiting: State = { kind: "llm_requesting", attempt: 2, lost: 0, requestId: "r", retry };
  expect(progress.take(waiting, piece("one", 0)).kind).toBe("old");
  expect(progress.take({ kind: "idle" }, piece("one", 0)).kind).toBe("old");
});
