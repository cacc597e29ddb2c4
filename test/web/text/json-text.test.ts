/** JSON for a person. */
import fc from "fast-check";
import { expect, test } from "vitest";
import type { Json } from "../../../machine/message.ts";
import { jsonText } from "../../../web/text/json-text.ts";

const LIMITS = { length: 4000, string: 600 };

test("property: what is not cut is the value", () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      const { text, isCut } = jsonText(value as Json, { length: 1e6, string: 1e6 });
      expect(isCut).toBe(false);
      expect(JSON.parse(text)).toEqual(JSON.parse(JSON.stringify(value)));
    }),
  );
});

test("it is indented like everybody does it", () => {
  const value = { a: [1, null, "x\n"], b: {}, c: [], d: { "e f": true } };
  expect(jsonText(value, LIMITS).text).toBe(JSON.stringify(value, null, 2));
});

test.each<[string, Json, string]>([
  ["a long string", { a: "x".repeat(10_000) }, "… 9,400 more characters"],
  ["many entries", Array.from({ length: 5000 }, (_, at) => at), "more\n]"],
  ["many keys", Object.fromEntries(Array.from({ length: 5000 }, (_, at) => [`key ${at}`, at])), "more\n}"],
  ["long keys", { ["k".repeat(10_000)]: 1 }, "more characters"],
  ["deep nesting", JSON.parse("[".repeat(2000) + "]".repeat(2000)) as Json, "[ … ]"],
])("%s are cut, and it says so", (_name, value, said) => {
  const { text, isCut } = jsonText(value, LIMITS);
  expect(isCut).toBe(true);
  expect(text).toContain(said);
  expect(text.length).toBeLessThan(2 * LIMITS.length);
});
