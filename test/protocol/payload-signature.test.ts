import type { Payload, SerializationContext } from "@temporalio/common";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { PayloadSignature, withoutSignature } from "../../protocol/payload-signature.ts";
import { isUnsigned, UNSIGNED } from "../../protocol/unsigned.ts";

const codec = new PayloadSignature(new Uint8Array(32).fill(7));

const bytes = fc.uint8Array({ maxLength: 200 });
const payloads: fc.Arbitrary<Payload> = fc.record({
  metadata: fc.dictionary(
    fc.string({ maxLength: 12 }).filter((name) => name !== "signature"),
    fc.uint8Array({ maxLength: 20 }),
    { maxKeys: 4, noNullPrototype: true },
  ),
  data: bytes,
});
const names = fc.string({ maxLength: 8 });
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

async function encoded(payload: Payload, context?: SerializationContext): Promise<Payload> {
  const [signed = {}] = await codec.encode([payload], context);
  return sent(signed);
}

async function isRefused(payload: Payload, context?: SerializationContext): Promise<boolean> {
  const [decoded = {}] = await codec.decode([payload], context);
  return Buffer.from(decoded.data ?? []).toString() === JSON.stringify(UNSIGNED);
}

const flipped = (given: Uint8Array, at: number): Uint8Array =>
  given.map((byte, n) => (n === at % given.length ? byte ^ 1 : byte));

test("an encoded payload decodes to the original", async () => {
  const roundTrip = fc.asyncProperty(fc.array(payloads), contexts, async (given, context) => {
    const wire = (await codec.encode(given, context)).map(sent);
    expect(await codec.decode(wire, context)).toEqual(given);
    expect(wire.map(withoutSignature)).toEqual(given);
  });
  await fc.assert(roundTrip);
});

test("encoding twice signs once, so that an operator's signed payload can be signed for its new place", async () => {
  const payload = { metadata: {}, data: Buffer.from("{}") };
  expect(await encoded(await encoded(payload))).toEqual(await encoded(payload));
});

describe("decoding refuses", () => {
  test("any change of the data, of the metadata, or of the signature", async () => {
    const change = fc.asyncProperty(payloads, contexts, fc.nat(), async (payload, context, at) => {
      const wire = await encoded(payload, context);
      const metadata = wire.metadata ?? {};
      const data = wire.data ?? new Uint8Array();
      const changed: Payload[] = [
        { metadata, data: Buffer.concat([data, Buffer.of(0)]) },
        { metadata: { ...metadata, more: new Uint8Array() }, data },
        ...(data.length > 0 ? [{ metadata, data: flipped(data, at) }] : []),
        ...Object.entries(metadata).flatMap(([name, value]) => {
          const { [name]: _, ...without } = metadata;
          const other = { ...metadata, [name]: flipped(value, at) };
          return [{ metadata: without, data }, ...(value.length > 0 ? [{ metadata: other, data }] : [])];
        }),
      ];
      for (const each of changed) expect(await isRefused(each, context)).toBe(true);
    });
    await fc.assert(change);
  });

  test("the same payload in any other place", async () => {
    const elsewhere = fc.asyncProperty(payloads, contexts, contexts, async (payload, here, there) => {
      const { isLocal: _, ...a } = { isLocal: false, ...here };
      const { isLocal: __, ...b } = { isLocal: false, ...there };
      fc.pre(JSON.stringify(a) !== JSON.stringify(b));
      expect(await isRefused(await encoded(payload, here), there)).toBe(true);
    });
    await fc.assert(elsewhere);
  });

  test("bytes that move from one part to the next", async () => {
    const payload = (name: string, value: string, data: string): Payload => ({
      metadata: { [name]: Buffer.from(value) },
      data: Buffer.from(data),
    });
    const { metadata } = await encoded(payload("ab", "cd", "ef"));
    const signature = metadata?.["signature"] ?? new Uint8Array();
    for (const [name, value, data] of [
      ["abc", "d", "ef"],
      ["ab", "c", "def"],
      ["a", "bcd", "ef"],
    ] as const) {
      const { metadata: moved, data: rest = null } = payload(name, value, data);
      expect(await isRefused({ metadata: { ...moved, signature }, data: rest })).toBe(true);
    }
  });

  test("a payload signed with another key, and one without a signature", async () => {
    const other = new PayloadSignature(new Uint8Array(32).fill(8));
    const plain = { metadata: { encoding: Buffer.from("json/plain") }, data: Buffer.from("{}") };
    expect(await isRefused((await other.encode([plain]))[0] ?? {})).toBe(true);
    for (const each of [plain, {}, { data: null }, { metadata: { signature: new Uint8Array() } }])
      expect(await isRefused(each)).toBe(true);
  });
});

test("the marker of an unsigned payload is recognized, and nothing else is", () => {
  expect(isUnsigned(JSON.parse(JSON.stringify(UNSIGNED)))).toBe(true);
  for (const value of [undefined, null, "unsigned", {}, { unsigned: false }])
    expect(isUnsigned(value)).toBe(false);
});
