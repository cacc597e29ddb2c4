import type { Payload, SerializationContext } from "@temporalio/common";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { PayloadEncryption } from "../../protocol/payload-encryption.ts";
import { isUnauthenticated, UNAUTHENTICATED } from "../../protocol/unauthenticated.ts";

const [FIRST, SECOND] = [new Uint8Array(32).fill(7), new Uint8Array(32).fill(8)] as const;
const codec = new PayloadEncryption([FIRST]);

const bytes = fc.uint8Array({ maxLength: 200 });
const payloads: fc.Arbitrary<Payload> = fc.record({
  metadata: fc.dictionary(fc.string({ maxLength: 12, unit: "binary" }), fc.uint8Array({ maxLength: 20 }), {
    maxKeys: 4,
    noNullPrototype: true,
  }),
  data: bytes,
});
const names = fc.string({ maxLength: 8, unit: "binary" });
const contexts: fc.Arbitrary<SerializationContext | undefined> = fc.oneof(
  fc.constant(undefined),
  fc.record({ type: fc.constant("workflow" as const), namespace: names, workflowId: names }),
  fc.record({
    type: fc.constant("activity" as const),
    namespace: names,
    workflowId: names,
    activityId: names,
    isLocal: fc.boolean(),
  }),
);

/** The payload as it comes from the wire: the same bytes in other objects. */
const sent = (payload: Payload): Payload => structuredClone(payload);

async function encoded(payload: Payload, context?: SerializationContext, by = codec): Promise<Payload> {
  const [hidden = {}] = await by.encode([payload], context);
  return sent(hidden);
}

async function isRefused(payload: Payload, context?: SerializationContext, by = codec): Promise<boolean> {
  const [decoded = {}] = await by.decode([payload], context);
  return Buffer.from(decoded.data ?? []).toString() === JSON.stringify(UNAUTHENTICATED);
}

const flipped = (given: Uint8Array, at: number): Uint8Array =>
  given.map((byte, n) => (n === at % given.length ? byte ^ 1 : byte));

const plain = ({ metadata, data }: Payload) => ({
  metadata: Object.entries(metadata ?? {}).map(([name, value]) => [name, [...value]]),
  data: [...(data ?? [])],
});

test("an encoded payload decodes to the original in its place, and is revealed without one", async () => {
  const roundTrip = fc.asyncProperty(fc.array(payloads), contexts, async (given, context) => {
    const wire = (await codec.encode(given, context)).map(sent);
    expect((await codec.decode(wire, context)).map(plain)).toEqual(given.map(plain));
    expect(wire.map((each) => plain(codec.reveal(each)))).toEqual(given.map(plain));
  });
  await fc.assert(roundTrip);
});

test("an encoded payload shows its place, its key's id and its size, and nothing of what it has", async () => {
  const secret = "what a person has written";
  const metadata = { encoding: Buffer.from("json/plain"), more: Buffer.from(secret) };
  const context = {
    type: "activity",
    namespace: "n",
    workflowId: "w",
    activityId: "a",
    isLocal: false,
  } as const;
  const wire = await encoded({ metadata, data: Buffer.from(secret) }, context);
  expect(
    Object.fromEntries(Object.entries(wire.metadata ?? {}).map(([k, v]) => [k, String(Buffer.from(v))])),
  ).toEqual({
    encoding: "binary/encrypted",
    "encryption-key-id": expect.stringMatching(/^[0-9a-f]{16}$/) as unknown,
    place: '["activity","n","w","a"]',
  });
  expect(Buffer.from(wire.data ?? []).toString("latin1")).not.toContain("person");
});

test("the same payload never encodes to the same bytes", async () => {
  const payload = { metadata: {}, data: Buffer.from("{}") };
  const all = await Promise.all(Array.from({ length: 1_000 }, () => encoded(payload)));
  expect(new Set(all.map(({ data }) => Buffer.from(data ?? []).toString("hex"))).size).toBe(1_000);
});

describe("decoding refuses", () => {
  test("any change of the data, of the place or of the key's id", async () => {
    const change = fc.asyncProperty(payloads, contexts, fc.nat(), async (payload, context, at) => {
      const wire = await encoded(payload, context);
      const metadata = wire.metadata ?? {};
      const data = wire.data ?? new Uint8Array();
      const changed: Payload[] = [
        { metadata, data: Buffer.concat([data, Buffer.of(0)]) },
        { metadata, data: flipped(data, at) },
        { metadata, data: data.subarray(0, at % data.length) },
        ...Object.entries(metadata).flatMap(([name, value]) => {
          const { [name]: _, ...without } = metadata;
          return [
            { metadata: without, data },
            { metadata: { ...metadata, [name]: flipped(value, at) }, data },
          ];
        }),
      ];
      for (const each of changed) {
        expect(await isRefused(each, context)).toBe(true);
        expect(codec.reveal(each)).toBe(each);
      }
    });
    await fc.assert(change);
  });

  test("the same payload in any other place, also with that place written over its own", async () => {
    const elsewhere = fc.asyncProperty(payloads, contexts, contexts, async (payload, here, there) => {
      const { isLocal: _, ...a } = { isLocal: false, ...here };
      const { isLocal: __, ...b } = { isLocal: false, ...there };
      fc.pre(JSON.stringify(a) !== JSON.stringify(b));
      const wire = await encoded(payload, here);
      expect(await isRefused(wire, there)).toBe(true);
      const { metadata } = await encoded(payload, there);
      expect(await isRefused({ ...wire, metadata: metadata ?? {} }, there)).toBe(true);
    });
    await fc.assert(elsewhere);
  });

  test("a payload of another key, and one that is not encrypted", async () => {
    const other = new PayloadEncryption([SECOND]);
    const open = { metadata: { encoding: Buffer.from("json/plain") }, data: Buffer.from("{}") };
    expect(await isRefused(await encoded(open, undefined, other))).toBe(true);
    const { metadata } = await encoded(open);
    const place = { ...metadata, place: Buffer.from("[1]") };
    for (const each of [
      open,
      {},
      { data: null },
      { metadata: metadata ?? {} },
      { metadata: place, data: Buffer.alloc(40) },
    ])
      expect(await isRefused(each)).toBe(true);
  });
});

test("with several keys the first encrypts and all decrypt, so that a key can be replaced without a stop", async () => {
  const payload = { metadata: {}, data: Buffer.from("{}") };
  const [before, added, turned, after] = [[FIRST], [FIRST, SECOND], [SECOND, FIRST], [SECOND]].map(
    (keys) => new PayloadEncryption(keys),
  ) as [PayloadEncryption, PayloadEncryption, PayloadEncryption, PayloadEncryption];
  // Two processes are never more than a step apart.
  for (const [one, other] of [
    [before, added],
    [added, turned],
    [turned, after],
  ] as const) {
    expect(await isRefused(await encoded(payload, undefined, one), undefined, other)).toBe(false);
    expect(await isRefused(await encoded(payload, undefined, other), undefined, one)).toBe(false);
  }
  expect(await isRefused(await encoded(payload, undefined, before), undefined, after)).toBe(true);
  expect(() => new PayloadEncryption([])).toThrow("There is no key.");
  expect(() => new PayloadEncryption([new Uint8Array(16)])).toThrow("32 bytes");
});

test("the marker of an unauthenticated payload is recognized, and nothing else is", () => {
  expect(isUnauthenticated(JSON.parse(JSON.stringify(UNAUTHENTICATED)))).toBe(true);
  for (const value of [undefined, null, "unauthenticated", {}, { unauthenticated: false }])
    expect(isUnauthenticated(value)).toBe(false);
});
