/** REQ-BED-013: which images of a conversation go into a request. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { MAX_IMAGES_BYTES, imagesIn, withinLimits } from "../../llm/images.ts";
import type { Message, MessageBody } from "../../machine/message.ts";
import * as m from "./messages.ts";

const turn = (...hashes: readonly string[]): MessageBody =>
  ({
    ...m.user("look"),
    content: [m.text("look"), ...hashes.map(m.image)],
  }) as MessageBody;
const none: ReadonlyMap<string, number> = new Map();
const named = (count: number): string[] => Array.from({ length: count }, (_, n) => `p${n}`);

describe("the images of a request", () => {
  test("are those of messages and of results, each as often as it occurs", () => {
    const messages = m.stored(
      turn("a", "b"),
      m.agent([m.call("t")]),
      m.tool("t", [m.image("a")]),
      m.note("x"),
    );
    expect(imagesIn(messages)).toEqual(["a", "b", "a"]);
    expect(withinLimits(messages, none, 3)).toBe(messages);
  });

  test("beyond the number limit, the oldest are left out until half of it is free, and the model reads so", () => {
    const messages = m.stored(...named(5).map((hash) => turn(hash)));
    const sent = withinLimits(messages, none, 4);
    expect(imagesIn(sent)).toEqual(["p3", "p4"]);
    expect(JSON.stringify(sent[0])).toContain("left out");
    expect(sent[4]).toBe(messages[4]);
    // The stored messages are not changed.
    expect(imagesIn(messages)).toEqual(named(5));
  });

  test("beyond the byte limit, the oldest are left out, too; the newest is sent however large", () => {
    const messages = m.stored(turn("a"), turn("b"), turn("c"));
    const sizes = (bytes: number) => new Map(["a", "b", "c"].map((hash) => [hash, bytes]));
    expect(imagesIn(withinLimits(messages, sizes(MAX_IMAGES_BYTES / 3), 100))).toEqual(["a", "b", "c"]);
    expect(imagesIn(withinLimits(messages, sizes(MAX_IMAGES_BYTES / 3 + 1), 100))).toEqual(["c"]);
    expect(imagesIn(withinLimits(messages, sizes(MAX_IMAGES_BYTES * 2), 100))).toEqual(["c"]);
  });

  test("are replaced by a text for a model without vision", () => {
    const sent = withinLimits(
      m.stored(turn("a"), m.agent([m.call("t")]), m.tool("t", [m.image("b")])),
      none,
      0,
    );
    expect(imagesIn(sent)).toEqual([]);
    expect(JSON.stringify(sent)).toMatch(/cannot see images.*cannot see images/);
  });

  test("property: the newest are sent in order within the limits, and a dropped one never comes back", () => {
    const size = fc.integer({ min: 1, max: 4_000_000 });
    const turns = fc.array(fc.array(size, { maxLength: 4 }), { minLength: 1, maxLength: 40 });
    fc.assert(
      fc.property(turns, fc.integer({ min: 1, max: 20 }), (turnSizes, maxImages) => {
        const sizes = new Map<string, number>();
        const messages: Message[] = m.stored(
          ...turnSizes.map((bytes, t) =>
            turn(...bytes.map((each, n) => (sizes.set(`${t}-${n}`, each), `${t}-${n}`))),
          ),
        );
        const all = imagesIn(messages);
        const sent = imagesIn(withinLimits(messages, sizes, maxImages));
        expect(sent).toEqual(all.slice(all.length - sent.length));
        expect(sent.length).toBeLessThanOrEqual(maxImages);
        expect(sent.length > 0 || all.length === 0).toBe(true);
        const bytes = sent.reduce((sum, hash) => sum + (sizes.get(hash) ?? 0), 0);
        expect(bytes <= MAX_IMAGES_BYTES || sent.length === 1).toBe(true);
        const before = imagesIn(withinLimits(messages.slice(0, -1), sizes, maxImages));
        const dropped = all.slice(
          0,
          all.length - (messages.length > 1 ? imagesIn(messages.slice(-1)).length : 0),
        );
        const left = dropped.slice(0, dropped.length - before.length);
        if (messages.length > 1) expect(sent.filter((hash) => left.includes(hash))).toEqual([]);
      }),
    );
  });
});
