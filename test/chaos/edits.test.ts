/** The chaos run changes the product's sources. Each change must still find its place in them. */
import { expect, test } from "vitest";
import { DEFECTS } from "../../chaos/defects.ts";
import { NEXT_RELEASE } from "../../chaos/release.ts";
import { changed, type Edit } from "../../chaos/sources.ts";
import { sourceOf } from "../support/rooms.ts";

const changes: readonly (readonly [string, readonly Edit[]])[] = [
  ["the next release", NEXT_RELEASE],
  ...DEFECTS.map(({ name, edits }) => [`the defect "${name}"`, edits] as const),
];

test.each(changes)("%s applies to the sources as they are", (_, edits) => {
  const texts = new Map<string, string>();
  for (const edit of edits) {
    const before = texts.get(edit.file) ?? sourceOf(edit.file);
    const after = changed(before, edit);
    expect(after).not.toBe(before);
    texts.set(edit.file, after);
  }
});
