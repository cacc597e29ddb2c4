/** Titles and slugs that are made from the person's first message. */
import { expect, test } from "vitest";
import { slugFrom, titleFrom } from "../../db/title.ts";
import { toolMessage, userMessage } from "./fixtures.ts";

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
  ["Fix the flaky test", "fix-the-flaky-test"],
  ["  ¿Qué pasó, Zoë?  ", "que-paso-zoe"],
  ["日本語", "conversation"],
  ["", "conversation"],
  [`${"a".repeat(59)} b`, "a".repeat(59)],
])("the slug of %j is %j", (title, slug) => {
  expect(slugFrom(title)).toBe(slug);
});
