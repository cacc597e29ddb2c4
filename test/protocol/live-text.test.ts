/** Live text by offsets: docs/http.md, "Live text". */
import fc from "fast-check";
import { expect, test } from "vitest";
import { addToAnswer, addToOutput, type LiveAnswer, type LiveOutput } from "../../protocol/live-text.ts";

/** Pieces of a text, some of them twice or from further back, as after a reconnect; none is left out. */
const told = fc
  .tuple(
    fc.string({ unit: "grapheme", maxLength: 60 }),
    fc.array(fc.record({ length: fc.integer({ min: 1, max: 9 }), back: fc.nat(12) }), { maxLength: 40 }),
  )
  .map(([text, steps]) => {
    const pieces: { offset: number; text: string }[] = [];
    let end = 0;
    for (const { length, back } of steps) {
      const offset = Math.max(0, end - back);
      pieces.push({ offset, text: text.slice(offset, end + length) });
      end = Math.min(text.length, end + length);
    }
    return { pieces, text: text.slice(0, end) };
  });

test("pieces that come twice, overlap or begin anew make the same text, and it never shrinks", () => {
  fc.assert(
    fc.property(told, ({ pieces, text }) => {
      let answer: LiveAnswer | null = null;
      let output: LiveOutput | null = null;
      let shown = "";
      for (const piece of pieces) {
        answer = addToAnswer(answer, "text", { requestId: "r", index: 1, ...piece });
        output = addToOutput(output, { toolCallId: "t", stream: "stdout", ...piece });
        const now = answer.blocks[0]?.text ?? "";
        expect(now.startsWith(shown)).toBe(true);
        shown = now;
      }
      expect(shown).toBe(text);
      expect(output?.parts.map((part) => part.text).join("") ?? "").toBe(text);
      expect(answer?.blocks.some((block) => block.hasGap) ?? false).toBe(false);
    }),
  );
});

test("a piece beyond what is there leaves a gap that is told", () => {
  const first = addToAnswer(null, "text", { requestId: "r", index: 0, offset: 0, text: "abc" });
  const second = addToAnswer(first, "text", { requestId: "r", index: 0, offset: 10, text: "xyz" });
  expect(second.blocks).toEqual([{ kind: "text", index: 0, text: "abcxyz", end: 13, hasGap: true }]);
});

test("a new request drops the text of the one before; blocks stand in their order", () => {
  const old = addToAnswer(null, "text", { requestId: "r1", index: 0, offset: 0, text: "old" });
  const second = addToAnswer(old, "text", { requestId: "r2", index: 1, offset: 0, text: "two" });
  const both = addToAnswer(second, "thinking", { requestId: "r2", index: 0, offset: 0, text: "one" });
  expect(both.blocks.map(({ kind, text }) => [kind, text])).toEqual([
    ["thinking", "one"],
    ["text", "two"],
  ]);
});

test("what adds nothing changes nothing: the value is the same object", () => {
  const piece = { requestId: "r", index: 0, offset: 0, text: "abc" };
  const answer = addToAnswer(null, "text", piece);
  expect(addToAnswer(answer, "text", piece)).toBe(answer);
  const printed = { toolCallId: "t", stream: "stderr", offset: 0, text: "abc" } as const;
  const output = addToOutput(null, printed);
  expect(addToOutput(output, printed)).toBe(output);
});

test("both streams of a command stand in the order in which they came, and only the last 256 Ki are kept", () => {
  const of = (stream: "stdout" | "stderr", offset: number, text: string) => ({
    toolCallId: "t",
    stream,
    offset,
    text,
  });
  let output = addToOutput(null, of("stdout", 0, "a\n"));
  output = addToOutput(output, of("stderr", 0, "b\n"));
  output = addToOutput(output, of("stdout", 2, "c\n"));
  expect(output.parts.map(({ text }) => text)).toEqual(["a\n", "b\n", "c\n"]);
  const block = "x".repeat(64 * 1024);
  for (let n = 0; n < 20; n++) output = addToOutput(output, of("stdout", 4 + n * block.length, block));
  const size = output.parts.reduce((sum, { text }) => sum + text.length, 0);
  expect(size).toBeGreaterThanOrEqual(256 * 1024);
  expect(size).toBeLessThanOrEqual(384 * 1024);
  expect(output.parts.at(-1)?.text.endsWith("x")).toBe(true);
});
