/** What blocks a Markdown text has. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { completeBlocksOf } from "../../../web/text/growing-text.ts";
import type { Block } from "../../../web/text/model.ts";
import { lettersOf, tangle } from "./markdown-texts.ts";

const only = (text: string): Block | undefined => {
  const blocks = completeBlocksOf(text);
  expect(blocks).toHaveLength(1);
  return blocks[0];
};
const inlines = (text: string): unknown => {
  const block = only(text);
  return block?.kind === "paragraph" ? block.children : block;
};

test("inline parts", () => {
  expect(inlines("*a* **b** ~~c~~ `d  e` \\* f  \ng\nh")).toEqual([
    ...[{ kind: "emphasis", children: ["a"] }, " ", { kind: "strong", children: ["b"] }, " "],
    ...[{ kind: "deleted", children: ["c"] }, " ", { kind: "code", text: "d  e" }],
    ...[" * f", { kind: "break" }, "g\nh"],
  ]);
});

test("links and images keep their address as it was meant", () => {
  expect(inlines("[a *b*](http://x/?a=1&amp;b) ![c](d) <http://e> www.f.gg h@i.jj")).toEqual([
    { kind: "link", address: "http://x/?a=1&b", children: ["a ", { kind: "emphasis", children: ["b"] }] },
    ...[" ", { kind: "image", address: "d", text: "c" }],
    ...[" ", { kind: "link", address: "http://e", children: ["http://e"] }],
    ...[" ", { kind: "link", address: "http://www.f.gg", children: ["www.f.gg"] }],
    ...[" ", { kind: "link", address: "mailto:h@i.jj", children: ["h@i.jj"] }],
  ]);
});

test("character references are decoded once, and not in code; unknown ones stay", () => {
  expect(inlines("&lt;b&gt; &#65;&#x42; &amp;lt; &nope; &#0; `&lt;`")).toEqual([
    "<b> AB &lt; &nope; \ufffd ",
    { kind: "code", text: "&lt;" },
  ]);
});

test("HTML is text, and has no effect on what follows", () => {
  expect(inlines("a <b onclick=x>c</b> <a href=y> http://z.zz")).toEqual([
    "a <b onclick=x>c</b> <a href=y> ",
    { kind: "link", address: "http://z.zz", children: ["http://z.zz"] },
  ]);
  expect(only("<div>\n*a*\n</div>")).toEqual({ kind: "plain", nodes: ["<div>\n*a*\n</div>"] });
});

test("a definition of a reference is shown, and changes no link", () => {
  expect(completeBlocksOf("[a][x] [x]\n\n[x]: http://y")).toEqual([
    { kind: "paragraph", children: ["[a][x] [x]"] },
    { kind: "paragraph", children: ["[x]: ", { kind: "link", address: "http://y", children: ["http://y"] }] },
  ]);
});

test("the levels of headings have no gaps, whatever the model counts from", () => {
  const levels = completeBlocksOf("### a\n# b\n#### c\n## d\n### e\n\n- # f\n").map((block) =>
    block.kind === "heading" ? block.level : block.kind,
  );
  expect(levels).toEqual([1, 1, 2, 2, 3, "list"]);
  expect(completeBlocksOf("> # a")).toEqual([
    { kind: "quote", nodes: [{ kind: "heading", level: null, children: ["a"] }] },
  ]);
});

test("code keeps every line, and nothing else", () => {
  expect(only("```ts x=1\n\n a\n\n```")).toEqual({ kind: "code", language: "ts x=1", nodes: ["\n a\n"] });
  expect(only("```\n```")).toEqual({ kind: "code", language: "", nodes: [] });
  expect(only("    a\n    b")).toEqual({ kind: "code", language: "", nodes: ["a\nb"] });
});

test("lists, tasks and tables", () => {
  const text = (content: string): Block => ({ kind: "paragraph", children: [content] });
  expect(only("3. a\n4. b\n\n   c")).toEqual({
    kind: "list",
    start: 3,
    nodes: [
      { kind: "item", checked: null, nodes: [text("a")] },
      { kind: "item", checked: null, nodes: [text("b"), text("c")] },
    ],
  });
  expect(only("- [x] a\n- [ ] b")).toEqual({
    kind: "list",
    start: null,
    nodes: [
      { kind: "item", checked: true, nodes: [text("a")] },
      { kind: "item", checked: false, nodes: [text("b")] },
    ],
  });
  expect(only("|a|b|\n|-|-:|\n|`c`|d|")).toEqual({
    kind: "table",
    align: [null, "right"],
    head: [["a"], ["b"]],
    nodes: [{ kind: "row", cells: [[{ kind: "code", text: "c" }], ["d"]] }],
  });
});

describe("what is too much for a page is shown as it is written", () => {
  test.each([
    ["too long a run", "a".repeat(20_000)],
    ["too many parts", "*a* ".repeat(5000)],
    ["too deep", `${"> ".repeat(60)}a`],
    ["too deep for the lexer", ">".repeat(20_000)],
    ["what the lexer cannot read", "- a***\n    > 2) a</div>\naa"],
  ])("%s", (_name, text) => {
    const block = only(text);
    expect(block?.kind).toBe("plain");
    expect(block?.kind === "plain" && block.nodes.join("")).toBe(text);
  });

  test("the blocks around it are formatted", () => {
    expect(completeBlocksOf(`# a\n\n${"b".repeat(20_000)}\n\n- c`).map(({ kind }) => kind)).toEqual([
      ...["heading", "plain", "list"],
    ]);
  });
});

test("property: no letter of a text gets lost, but for tasks, references, and cells beyond the head of a table", () => {
  fc.assert(
    fc.property(tangle, (text) => {
      fc.pre(!/\]\(|&|\[x|\|/.test(text));
      const letters = text.replace(/\P{L}/gu, "");
      expect(lettersOf(completeBlocksOf(text))).toBe(letters);
    }),
    { numRuns: 500 },
  );
});
