/** Slugs that are made from titles. */
import { expect, test } from "vitest";
import { slugFrom } from "../../db/slug.ts";

test.each([
  ["Fix the flaky test", "fix-the-flaky-test"],
  ["  ¿Qué pasó, Zoë?  ", "que-paso-zoe"],
  ["日本語", "conversation"],
  ["", "conversation"],
  [`${"a".repeat(59)} b`, "a".repeat(59)],
])("the slug of %j is %j", (title, slug) => {
  expect(slugFrom(title)).toBe(slug);
});
