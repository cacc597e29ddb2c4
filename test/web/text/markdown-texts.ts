/** Owns: Markdown texts for the tests: as models write it, and as nobody does. */
import fc from "fast-check";
import type { Block, Inline, Item, Row } from "../../../web/text/model.ts";

const word = fc.constantFrom(
  "the",
  "queue",
  "drains",
  "`next()`",
  "**twice**",
  "*when*",
  "both",
  "~~timers~~",
  "fire",
  "ü",
);
const link = fc.constantFrom(
  "[docs](https://example.com/a)",
  "https://example.com/b",
  "![logo](http://example.com/x.png)",
);
const sentence = fc
  .array(fc.oneof({ arbitrary: word, weight: 8 }, { arbitrary: link, weight: 1 }), {
    minLength: 1,
    maxLength: 12,
  })
  .map((words) => `${words.join(" ")}.`);
const codeLine = fc.constantFrom(
  "const a = 1;",
  "",
  "  return a; // `b`",
  "if (a < b) {",
  "}",
  "# heading?",
  "- item?",
);

const block = fc.oneof(
  sentence,
  fc.array(sentence, { minLength: 1, maxLength: 3 }).map((lines) => lines.join("\n")),
  fc.tuple(fc.integer({ min: 1, max: 4 }), sentence).map(([depth, text]) => `${"#".repeat(depth)} ${text}`),
  fc
    .array(sentence, { minLength: 1, maxLength: 5 })
    .map((items) => items.map((item) => `- ${item}`).join("\n")),
  fc
    .array(sentence, { minLength: 1, maxLength: 5 })
    .map((items) => items.map((item, at) => `${at + 1}. ${item}`).join("\n")),
  fc.tuple(sentence, sentence).map(([a, b]) => `- ${a}\n  - ${b}\n  - ${a}\n\n    ${b}\n- ${b}`),
  fc.tuple(sentence, sentence).map(([a, b]) => `- [x] ${a}\n- [ ] ${b}`),
  fc
    .array(sentence, { minLength: 1, maxLength: 3 })
    .map((lines) => lines.map((line) => `> ${line}`).join("\n")),
  fc
    .tuple(
      fc.constantFrom("```", "````", "~~~"),
      fc.constantFrom("", "ts", "python"),
      fc.array(codeLine, { maxLength: 80 }),
    )
    .map(([fence, language, lines]) => [fence + language, ...lines, fence].join("\n")),
  fc
    .array(codeLine, { minLength: 1, maxLength: 4 })
    .map((lines) => `1. ${lines[0] ?? ""}\n\n   \`\`\`ts\n   ${lines.join("\n   ")}\n   \`\`\``),
  fc
    .array(fc.tuple(word, word), { minLength: 1, maxLength: 6 })
    .map((rows) => `| a | b |\n| --- | :-: |\n${rows.map((cells) => `| ${cells.join(" | ")} |`).join("\n")}`),
  fc.constant("---"),
);

/** What a model writes. */
export const answer = fc
  .array(fc.tuple(block, fc.constantFrom("\n\n", "\n\n", "\n\n", "\n")), { minLength: 1, maxLength: 12 })
  .map((blocks) => blocks.flat().join(""));

/** What takes a parser apart. */
export const tangle = fc
  .array(
    fc.constantFrom(
      ...[
        "a",
        "b",
        "word ",
        "*",
        "**",
        "_",
        "`",
        "``",
        "```",
        "```\n",
        "~~~\n",
        "~",
        "\n",
        "\n\n",
        "\n\n\n",
        " ",
      ],
      ...[
        "  ",
        "    ",
        "\t",
        "- ",
        "* ",
        "+ ",
        "-",
        "1. ",
        "2) ",
        "10. ",
        "> ",
        ">",
        "#",
        "# ",
        "---",
        "---\n",
        "===\n",
      ],
      ...[
        "|",
        "|a|b|\n",
        "|-|-|\n",
        "-|-\n",
        "a|b\n",
        "<div>",
        "<div>\n",
        "</div>\n",
        "<!--",
        "-->",
        "<pre>",
        "</pre>",
      ],
      ...[
        "<script>",
        "</script>\n",
        "<a>",
        "<b",
        "[",
        "](",
        "http://a.b",
        ")",
        "![",
        "[x]: http://y\n",
        "\\",
        "&",
      ],
      ...[
        "amp;",
        "- [x] ",
        "- [",
        "***\n",
        "- - -\n",
        "\r",
        "\r\n",
        "<?",
        "?>",
        "<![CDATA[",
        "]]>",
        "<!A",
        ">\n",
      ],
      ...["    code\n", "\tcode\n", "1", "=", "\u00a0", "😀", "\u0000", "ｊ"],
    ),
    { minLength: 1, maxLength: 80 },
  )
  .map((atoms) => atoms.join(""));

/** A text in pieces, cut anywhere. */
export const cut = (text: fc.Arbitrary<string>): fc.Arbitrary<string[]> =>
  text.chain((whole) =>
    fc
      .array(fc.nat(whole.length), { maxLength: 30 })
      .map((ends) => [0, ...ends.sort((a, b) => a - b), whole.length])
      .map((ends) => ends.slice(1).map((end, at) => whole.slice(ends[at], end))),
  );

/** What a person reads of a text: its letters. */
export function lettersOf(nodes: readonly (Block | Item | Row | Inline)[]): string {
  return nodes.map((node) => textOf(node).replace(/\P{L}/gu, "")).join("");
}

function textOf(node: Block | Item | Row | Inline): string {
  if (typeof node === "string") return node;
  switch (node.kind) {
    case "paragraph":
    case "heading":
    case "emphasis":
    case "strong":
    case "deleted":
    case "link":
      return node.children.map(textOf).join("");
    case "quote":
    case "list":
    case "item":
      return node.nodes.map(textOf).join("");
    case "plain":
      return node.nodes.join("");
    case "code":
      return "text" in node ? node.text : node.language + node.nodes.join("");
    case "image":
      return node.text;
    case "table":
      return [...node.head.flat(), ...node.nodes].map(textOf).join("");
    case "row":
      return node.cells.flat().map(textOf).join("");
    case "rule":
    case "break":
      return "";
  }
}
