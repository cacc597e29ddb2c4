/** Text that Postgres cannot hold is replaced; all other text is stored as it is. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { cleanText, encodeJson } from "../../db/json.ts";
import { openClient } from "../../db/connect.ts";
import { freshDatabase } from "../support/database.ts";

test("NUL and lone surrogates become U+FFFD, in keys too, and nothing else changes", () => {
  const value = { "a\0b": ["\ud800", "x\udfffy", "\u{1f600}", "\\u0000", "\\\0", "\n\t\u0001"] };
  expect(JSON.parse(encodeJson(value))).toEqual({
    "a\ufffdb": ["\ufffd", "x\ufffdy", "\u{1f600}", "\\u0000", "\\\ufffd", "\n\t\u0001"],
  });
});

test("a string outside of JSON is cleaned in the same way", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary" }), (text) => {
      expect(cleanText(text)).toBe(JSON.parse(encodeJson(text)));
    }),
  );
  expect(cleanText("\0\ud83d\u{1f600}")).toBe("\ufffd\ufffd\u{1f600}");
});

test("Postgres stores any encoded value and returns it unchanged", async () => {
  const client = openClient(await freshDatabase(), "test");
  const text = fc.oneof(
    fc.string({ unit: "binary" }),
    fc
      .array(fc.constantFrom("\0", "\\", "u0000", "\ud800", "\udc00", '"', "\\u0000", "ud83d"), {
        maxLength: 6,
      })
      .map((parts) => parts.join("")),
  );
  await fc.assert(
    fc.asyncProperty(fc.jsonValue({ stringUnit: "binary" }), text, async (any, odd) => {
      const json = encodeJson([any, odd, { [odd]: odd }]);
      const [row] = await client`select ${json}::text::jsonb as value`;
      expect(row?.["value"]).toEqual(JSON.parse(json));
    }),
    { numRuns: 200 },
  );
  await client.end();
});
