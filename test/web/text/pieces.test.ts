/** Pieces of long texts, and caches of them. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { BoundedCache } from "../../../web/text/bounded-cache.ts";
import { appendToPieces, piecesOf } from "../../../web/text/pieces.ts";

const part = fc.oneof(
  fc.constantFrom("\n", "\n\n", "a\n", "line of text\n", "x", "😀"),
  fc.nat(9000).map((length) => "y".repeat(length)),
  fc.nat(100).map((lines) => "z\n".repeat(lines)),
  fc.nat(4500).map((length) => "😀".repeat(length)),
);

describe("property: pieces", () => {
  test("are the text, are bounded, and break no character", () => {
    fc.assert(
      fc.property(fc.array(part), (parts) => {
        const text = parts.join("");
        const pieces = piecesOf(text);
        expect(pieces.join("")).toBe(text);
        for (const piece of pieces) {
          expect(piece.length).toBeGreaterThan(0);
          expect(piece.length).toBeLessThanOrEqual(2000);
          expect(piece.split("\n").length).toBeLessThanOrEqual(17);
          expect(piece.isWellFormed()).toBe(true);
        }
      }),
    );
  });

  test("do not depend on how the text came, and all but the last stay as they are", () => {
    fc.assert(
      fc.property(fc.array(part), (parts) => {
        let pieces: readonly string[] = [];
        for (const text of parts) {
          const next = appendToPieces(pieces, text);
          expect(next.slice(0, Math.max(0, pieces.length - 1))).toEqual(pieces.slice(0, -1));
          pieces = next;
        }
        expect(pieces).toEqual(piecesOf(parts.join("")));
      }),
    );
  });
});

describe("a bounded cache", () => {
  test("forgets what was not used for longest", () => {
    const cache = new BoundedCache<number>(10);
    cache.set("aaaa", 1);
    cache.set("bbbb", 2);
    expect(cache.get("aaaa")).toBe(1);
    cache.set("cccc", 3);
    expect([cache.get("aaaa"), cache.get("bbbb"), cache.get("cccc")]).toEqual([1, undefined, 3]);
    cache.set("cccc", 4);
    expect([cache.get("aaaa"), cache.get("cccc")]).toEqual([1, 4]);
  });

  test("does not keep what is larger than itself", () => {
    const cache = new BoundedCache<number>(10);
    cache.set("a".repeat(11), 1);
    expect(cache.get("a".repeat(11))).toBeUndefined();
  });
});
