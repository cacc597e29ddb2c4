/** Titles that are made from the person's first message, and how a title looks in Temporal's lists. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { plainTitle, shownTitle, titleFrom } from "../../protocol/title.ts";
import { toolMessage, userMessage } from "../db/fixtures.ts";

test("a title is the first line with text of the first user message that has one", () => {
  expect(titleFrom([toolMessage(1, "t"), userMessage(2, " \r\n\t one \nmore"), userMessage(3, "two")])).toBe(
    "one",
  );
  expect(titleFrom([userMessage(1, ""), userMessage(2, "two")])).toBe("two");
  expect(titleFrom([userMessage(1, "  \n ")])).toBeNull();
  expect(titleFrom([])).toBeNull();
});

test("a title has at most 80 characters and splits none of them", () => {
  expect(titleFrom([userMessage(1, "x".repeat(80))])).toBe("x".repeat(80));
  expect(titleFrom([userMessage(1, "x".repeat(81))])).toBe(`${"x".repeat(79)}…`);
  expect(titleFrom([userMessage(1, "😀".repeat(500))])).toBe(`${"😀".repeat(79)}…`);
});

test.each([
  ["  Fix\tthe \r\n test  ", "Fix the test"],
  ["\u001b[2J\u001b]0;owned\u0007red", "[2J ]0;owned red"],
  ["a\0b\u0085c\u2028d\u2029e\u007f", "a b c d e"],
  ["invoice \u202efdp.exe\u2066", "invoice fdp.exe"],
  ["half \ud83d a \ude00 smile", "half a smile"],
  ["👨‍👩‍👧 family", "👨‍👩‍👧 family"],
  [`"quoted" 'and' \\ % ; --`, `"quoted" 'and' \\ % ; --`],
  ["x".repeat(500), `${"x".repeat(79)}…`],
  ["😀".repeat(500), `${"😀".repeat(79)}…`],
  ["\u0007\u202e ", null],
  [null, null],
])("the title %j is shown to operators as %j", (title, shown) => {
  expect(plainTitle(title)).toBe(shown);
  expect(shownTitle(title)).toBe(shown ?? "New conversation");
});

test("whatever a title has, it is shown in one line that any terminal and any database takes", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary", maxLength: 500 }), (title) => {
      const shown = shownTitle(title);
      expect(shown).not.toMatch(/[\p{Cc}\p{Zl}\p{Zp}\p{Surrogate}\p{Bidi_Control}]/u);
      expect(Array.from(shown).length).toBeLessThanOrEqual(80);
      expect(shown.trim()).toBe(shown);
      expect(shown).not.toBe("");
      // Shown once more, it stays as it is: a workflow hands it to the next run.
      expect(shownTitle(shown)).toBe(shown);
    }),
  );
});
