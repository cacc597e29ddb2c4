/** A text that comes in pieces: it ends as if it had come whole, and what is finished stays. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { completeBlocksOf, GrowingText } from "../../../web/text/growing-text.ts";
import type { Block } from "../../../web/text/model.ts";
import { applyPatches, type Patch } from "../../../web/text/patch.ts";
import { answer, cut, lettersOf, tangle } from "./markdown-texts.ts";

/** Feeds pieces, and looks at the blocks after each. */
function feed(
  pieces: readonly string[],
  look: (blocks: readonly Block[], patches: readonly Patch[]) => void = () => undefined,
): { readonly growing: GrowingText; readonly blocks: readonly Block[] } {
  const growing = new GrowingText();
  let blocks: readonly Block[] = [];
  for (const piece of pieces) {
    growing.append(piece);
    const patches = growing.update();
    blocks = applyPatches(blocks, patches);
    look(blocks, patches);
  }
  return { growing, blocks };
}

const words = (count: number): string[] => Array.from({ length: count }, (_, at) => `word${at} `);

describe.each([
  ["answers", cut(answer), 300],
  ["tangles", cut(tangle), 1500],
])("property: of %s", (_name, pieces, numRuns) => {
  test("the blocks in the end are those of the whole text", () => {
    fc.assert(
      fc.property(pieces, (parts) => {
        const { growing, blocks } = feed(parts);
        expect(applyPatches(blocks, growing.finish())).toEqual(completeBlocksOf(parts.join("")));
      }),
      { numRuns },
    );
  });

  test("a block that counts as settled is one of the whole text", () => {
    fc.assert(
      fc.property(pieces, (parts) => {
        const { growing } = feed(parts);
        const whole = completeBlocksOf(parts.join(""));
        expect(growing.settled).toEqual(whole.slice(0, growing.settled.length));
      }),
      { numRuns },
    );
  });

  test("a block that counts as settled keeps its identity", () => {
    fc.assert(
      fc.property(pieces, (parts) => {
        let before: readonly Block[] = [];
        const growing = new GrowingText();
        for (const part of parts) {
          const settled = growing.settled.length;
          growing.append(part);
          const after = applyPatches(before, growing.update());
          for (let at = 0; at < settled; at++) expect(after[at]).toBe(before[at]);
          before = after;
        }
      }),
      { numRuns },
    );
  });
});

test("property: the letters of an answer never get fewer while it comes", () => {
  fc.assert(
    fc.property(cut(answer), (parts) => {
      let seen = 0;
      feed(parts, (blocks) => {
        const { length } = lettersOf(blocks);
        expect(length).toBeGreaterThanOrEqual(seen);
        seen = length;
      });
    }),
    { numRuns: 500 },
  );
});

describe("the work of a delta does not grow with the text", () => {
  const sizes = (pieces: readonly string[]): number[] => {
    const result: number[] = [];
    feed(pieces, (_blocks, patches) => result.push(JSON.stringify(patches).length));
    return result;
  };
  const most = (values: readonly number[]): number => Math.max(...values);

  test.each([
    ["paragraphs", words(4000).map((word, at) => (at % 40 === 39 ? `${word}\n\n` : word))],
    ["an open fence", ["```ts\n", ...words(4000).map((word, at) => (at % 8 === 7 ? `${word}\n` : word))]],
    ["a list", words(1500).map((word, at) => (at % 10 === 0 ? `\n- ${word}` : word))],
    [
      "a table",
      ["| a | b |\n|-|-|\n", ...words(1500).map((word, at) => (at % 2 === 0 ? `| ${word}` : `| ${word}|\n`))],
    ],
  ])("%s", (_name, pieces) => {
    const all = sizes(pieces);
    const tenth = Math.floor(all.length / 10);
    expect(most(all.slice(-tenth))).toBeLessThanOrEqual(1.5 * most(all.slice(0, 2 * tenth)));
  });
});

test("an open fence is not lexed again: a fence in its code that would end a shorter one does not matter", () => {
  const code = Array.from({ length: 300 }, (_, at) => (at % 7 === 0 ? "```" : `line ${at}`)).join("\n");
  const { growing, blocks } = feed(["````md\n", ...(code.match(/[\s\S]{1,9}/g) ?? []), "\n````\n", "after"]);
  expect(growing.settled).toHaveLength(1);
  expect(blocks.map(({ kind }) => kind)).toEqual(["code", "paragraph"]);
  expect(blocks[0]?.kind === "code" && blocks[0].nodes.join("")).toBe(code);
});

test.each([
  ["emphasis is closed", "a **b", [{ kind: "strong", children: ["b"] }]],
  ["code is closed", "a `b", [{ kind: "code", text: "b" }]],
])("while a text comes, %s", (_name, text, end) => {
  const { blocks } = feed([text]);
  expect(blocks).toEqual([{ kind: "paragraph", children: ["a ", ...end] }]);
});

test.each([
  ["a heading", "a\n\n", "##"],
  ["a list", "a\n", "-"],
  ["a numbered list", "a\n\n", "12."],
  ["a fence", "a\n\n", "``"],
  ["a table", "| a | b |\n", "|--"],
  ["an underline", "a\n", "--"],
  ["a character reference", "a ", "&am"],
  ["the address of a link", "a [b", "](https://exam"],
])("while a text comes, the marks of %s are not shown", (_name, before, marks) => {
  const { blocks } = feed([before, marks]);
  expect(lettersOf(blocks)).toBe(before.replace(/\P{L}/gu, ""));
  expect(JSON.stringify(blocks)).not.toContain(marks);
  expect(blocks.map(({ kind }) => kind)).toEqual(["paragraph"]);
});

test("line ends of all kinds are the same, also between two pieces", () => {
  const { growing, blocks } = feed(["# a\r", "\nb\r", "c\r\n\r", "\n- d"]);
  expect(applyPatches(blocks, growing.finish())).toEqual(completeBlocksOf("# a\nb\nc\n\n- d"));
});
