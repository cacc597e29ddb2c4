/** What a terminal would show of a tool's output. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { EMPTY_TERMINAL, readTerminal, type TerminalText } from "../../../web/text/terminal.ts";

const ESC = "\u001b";
const read = (...parts: string[]): TerminalText => {
  let text = "";
  return parts.reduce((terminal, part) => readTerminal(terminal, (text += part)), EMPTY_TERMINAL);
};
const textOf = ({ lines }: TerminalText): string =>
  lines
    .map(({ spans, end }) => spans.map(({ text }) => text).join("") + (end === "newline" ? "\n" : ""))
    .join("");
const spansOf = (terminal: TerminalText): (readonly [string, string])[] =>
  terminal.lines.flatMap(({ spans }) => spans.map(({ text, className }) => [text, className] as const));

describe("styles", () => {
  test.each([
    [
      `${ESC}[31ma${ESC}[0mb`,
      [
        ["a", "tx-red"],
        ["b", ""],
      ],
    ],
    [
      `${ESC}[1;4;32ma${ESC}[22;24;39mb`,
      [
        ["a", "tx-green tx-bold tx-underline"],
        ["b", ""],
      ],
    ],
    [
      `${ESC}[41;37ma${ESC}[49mb`,
      [
        ["a", "tx-on-red"],
        ["b", ""],
      ],
    ],
    [
      `${ESC}[7ma${ESC}[27mb`,
      [
        ["a", "tx-inverse"],
        ["b", ""],
      ],
    ],
    [
      `${ESC}[2ma${ESC}[34mb`,
      [
        ["a", "tx-gray"],
        ["b", "tx-blue"],
      ],
    ],
    [
      `${ESC}[90ma${ESC}[97mb${ESC}[30mc`,
      [
        ["a", "tx-gray"],
        ["bc", ""],
      ],
    ],
    [
      `${ESC}[38;5;196ma${ESC}[38;5;12mb`,
      [
        ["a", "tx-red"],
        ["b", "tx-blue"],
      ],
    ],
    [
      `${ESC}[38;2;0;200;0ma${ESC}[38:2::200:200:0mb`,
      [
        ["a", "tx-green"],
        ["b", "tx-yellow"],
      ],
    ],
    [`${ESC}[38;5;244;1ma`, [["a", "tx-gray tx-bold"]]],
    [
      `${ESC}[ma${ESC}[;31mb`,
      [
        ["a", ""],
        ["b", "tx-red"],
      ],
    ],
  ])("%j", (text, spans) => expect(spansOf(read(text))).toEqual(spans));

  test("text that should be hidden is shown", () => {
    expect(spansOf(read(`${ESC}[8mhidden`))).toEqual([["hidden", ""]]);
    expect(spansOf(read(`${ESC}[30;40mhidden`))).toEqual([["hidden", ""]]);
  });
});

describe("what is no style is left out", () => {
  test.each([
    [`a${ESC}]0;title\u0007b`, "ab"],
    [`a${ESC}]8;;http://x${ESC}\\b${ESC}]8;;${ESC}\\c`, "abc"],
    ["a\u009d0;title\u009cb\u009b31mc", "abc"],
    [`a${ESC}Pq#0${ESC}\\b`, "ab"],
    [`a${ESC}[2J${ESC}[H${ESC}[3Ab${ESC}[?25l${ESC}(Bc${ESC}=d`, "abcd"],
    ["a\u0000\u0007\u007fb", "ab"],
  ])("%j", (text, shown) => expect(textOf(read(text))).toBe(shown));

  test("a title without an end hides nothing but its first characters", () => {
    expect(textOf(read(`a${ESC}]0;b\nc`))).toBe("a0;b\nc");
  });
});

describe("lines that are written again", () => {
  test.each([
    ["10 %\r20 %\r30 %\n", "30 %\n"],
    ["a\r\nb\r\n", "a\nb\n"],
    ["abc\r", "abc"],
    ["abc\r\r\n", "abc\n"],
    [`⠋ a${ESC}[2K\r⠙ b${ESC}[1G${ESC}[Kdone\n`, "done\n"],
    [`abc${ESC}[K`, "abc"],
    ["a|\b/\b-\b😀\bx", "ax"],
    ["a\b\b\b\nb", "\nb"],
    [`${"x".repeat(9000)}\ry`, "y"],
  ])("%j", (text, shown) => expect(textOf(read(text))).toBe(shown));
});

const atom = fc.constantFrom(
  ...[
    "a",
    "text ",
    "\n",
    "\r",
    "\r\n",
    "\b",
    "\t",
    "\u0007",
    "\u0000",
    ESC,
    "[",
    "]",
    "0;",
    "8;;x",
    "31m",
    "m",
    "\\",
    "K",
  ],
  ...[
    `${ESC}[31m`,
    `${ESC}[0m`,
    `${ESC}[2K`,
    `${ESC}]0;t\u0007`,
    "\u009b",
    "\u009d",
    "\u009c",
    "38;5;",
    "2",
    "x".repeat(1500),
  ],
);
const pieces = fc.array(fc.array(atom, { maxLength: 6 }).map((atoms) => atoms.join("")));

describe("property: output", () => {
  test("does not depend on how it came", () => {
    fc.assert(
      fc.property(pieces, (parts) => {
        const { lines } = read(...parts);
        expect(lines).toEqual(read(parts.join("")).lines);
      }),
      { numRuns: 1000 },
    );
  });

  test("has no control characters, and no line without bounds", () => {
    fc.assert(
      fc.property(pieces, (parts) => {
        for (const { spans } of read(...parts).lines) {
          expect(spans.length).toBeLessThanOrEqual(40);
          const text = spans.map((span) => span.text).join("");
          expect(text.length).toBeLessThanOrEqual(2000);
          expect(text).not.toMatch(/[\0-\x08\n\x0b-\x1f\x7f-\x9f]/);
          for (const { className } of spans) expect(className).toMatch(/^(tx-[a-z-]+( |$))*$/);
        }
      }),
      { numRuns: 500 },
    );
  });

  test("of an old line stays the same object when more is read", () => {
    const before = read("a\nb\nc");
    const after = readTerminal(before, "a\nb\nc\nd");
    expect(after.lines[0]).toBe(before.lines[0]);
    expect(after.lines[1]).toBe(before.lines[1]);
  });

  test("that does not begin like what was read is read from its beginning", () => {
    expect(textOf(readTerminal(read("abc\n"), "xyz"))).toBe("xyz");
  });
});

test.each([
  ["styles", `${ESC}[1ma`],
  ["titles without an end", `${ESC}]0;`],
  ["titles without an end in eight bits", "\u009d"],
  ["returns", "a\r"],
  ["steps back", "a\b"],
  ["escapes", ESC],
])("200 kB of %s are read", (_name, part) => {
  expect(read(part.repeat(200_000 / part.length)).lines.length).toBeGreaterThan(0);
});
