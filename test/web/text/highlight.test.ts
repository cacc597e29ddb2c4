/** The colours of code: they never change it, and do not depend on how it came. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { colorClass, COLOR_NAMES } from "../../../web/text/colors.ts";
import { loadLanguage, type Runs } from "../../../web/text/highlight.ts";
import { languageOf, type Language } from "../../../web/text/languages.ts";
import { piecesOf } from "../../../web/text/pieces.ts";

const lengthOf = (runs: Runs): number =>
  runs.reduce((sum, value, at) => (at % 2 === 0 ? sum + value : sum), 0);
const colorsOf = (text: string, runs: Runs): Record<string, string> => {
  const result: Record<string, string> = {};
  let end = 0;
  for (let at = 0; at < runs.length; at += 2) {
    const length = runs[at] ?? 0;
    result[text.slice(end, end + length).trim()] = COLOR_NAMES[runs[at + 1] ?? 0] ?? "";
    end += length;
  }
  return result;
};

const EXAMPLES: { readonly [language in Language]: readonly [code: string, part: string, color: string] } = {
  bash: ['for i in 1 2; do echo "$i"; done', "for", "keyword"],
  c: ["int main(void) { return 0; }", "return", "keyword"],
  csharp: ['class A { string b = "c"; }', "class", "keyword"],
  css: [".a { color: red; } /* b */", "/* b */", "comment"],
  diff: ["-a\n+b", "-a", "deleted"],
  docker: ["FROM node:24", "FROM", "keyword"],
  go: ["func main() { return }", "return", "keyword"],
  html: ['<!-- a --><b class="c">d</b>', "<!-- a -->", "comment"],
  ini: ["; a\nb=c", "; a", "comment"],
  java: ["class A { int b = 1; }", "class", "keyword"],
  json: ['{"a": true}', "true", "constant"],
  make: ["# a\nb: c\n\techo d", "# a", "comment"],
  python: ["def a():\n  return None", "return", "keyword"],
  rust: ["fn main() { let a = 1; }", "let", "keyword"],
  sql: ["select a from b -- c", "-- c", "comment"],
  toml: ['a = "b" # c', "# c", "comment"],
  tsx: ["const a = <b>c</b>; // d", "// d", "comment"],
  typescript: ["const a: string = 'b'; // d", "// d", "comment"],
  xml: ["<!-- a --><b/>", "<!-- a -->", "comment"],
  yaml: ["a: b # c", "# c", "comment"],
};

test.each(Object.entries(EXAMPLES) as [Language, readonly [string, string, string]][])(
  "%s",
  async (language, [code, part, color]) => {
    const reading = (await loadLanguage(language))();
    const runs = reading.read(code);
    expect(lengthOf(runs)).toBe(code.length);
    expect(colorsOf(code, runs)).toMatchObject({ [part]: color });
  },
);

const line = fc.constantFrom(
  "const a = 1;",
  "/* open",
  "close */",
  "`open ${a",
  "}`",
  "'x'",
  "",
  "function f() {",
  "}",
  "x".repeat(1200),
);
const code = fc.array(line, { maxLength: 120 }).map((lines) => lines.join("\n"));

describe("property: the colours of code", () => {
  test("cover it, piece by piece", async () => {
    const start = await loadLanguage("typescript");
    fc.assert(
      fc.property(code, (text) => {
        const reading = start();
        for (const piece of piecesOf(text)) expect(lengthOf(reading.read(piece))).toBe(piece.length);
      }),
      { numRuns: 20 },
    );
  });

  test("are the same after a piece was read in an earlier form", async () => {
    const start = await loadLanguage("typescript");
    fc.assert(
      fc.property(code, fc.nat(), (text, at) => {
        const pieces = piecesOf(text);
        const whole = start();
        const expected = pieces.map((piece) => whole.read(piece));
        const reading = start();
        const actual = pieces.map((piece, index) => {
          reading.read(piece.slice(0, at % (piece.length + 1)));
          reading.rewind(index);
          return reading.read(piece);
        });
        expect(actual).toEqual(expected);
      }),
      { numRuns: 20 },
    );
  });
});

test.each([
  ["ts", "typescript", "TypeScript"],
  ["TypeScript title=a.ts", "typescript", "TypeScript"],
  ["js", "tsx", "JavaScript"],
  ["sh", "bash", "Shell"],
  ["bash", "bash", "Shell"],
  ["python,ignore", "python", "Python"],
  ["", null, ""],
  ["mermaid", null, "mermaid"],
  ["__proto__", null, "__proto__"],
  ["constructor", null, "constructor"],
])("after a fence, %j means %s and is called %s", (info, language, title) => {
  expect(languageOf(info)).toEqual({ language, title });
});

test("a colour is a class of ours, or none", () => {
  expect(colorClass(0)).toBeUndefined();
  expect(colorClass(1)).toBe("tx-keyword");
  expect(colorClass(99)).toBeUndefined();
  expect(colorClass(-1)).toBeUndefined();
});
