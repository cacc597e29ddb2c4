/**
 * Owns: the signature by which API, launcher and worker recognise each other's payloads. Any client that reaches
 * Temporal's port can send payloads. A payload that is not signed with the key that these three share is replaced by a
 * marker, and our processes do not act on the marker.
 * Data and metadata stay readable for Temporal's Web UI and command line: a signature is one more entry of the
 * metadata.
 */
import { createHmac, timingSafeEqual } from "node:crypto";
import type { DataConverter, Payload, PayloadCodec, SerializationContext } from "@temporalio/common";
import { UNSIGNED } from "./unsigned.ts";

const KEY_BYTES = 32;

/** The name of the metadata entry. */
const SIGNATURE = "signature";
/** Part of what is signed; another form of signature would have another domain. */
const DOMAIN = "bedrock payload 1";

/** For clients and workers. @param key null: nothing is signed, and every payload is accepted. */
export function dataConverterOf(key: Uint8Array | null): DataConverter {
  return { payloadCodecs: key === null ? [] : [new PayloadSignature(key)] };
}

/**
 * A codec that never throws: in a workflow, an error would block the conversation for as long as its history exists.
 */
export class PayloadSignature implements PayloadCodec {
  readonly #key: Uint8Array;

  /** @param key of 32 bytes */
  constructor(key: Uint8Array) {
    if (key.length !== KEY_BYTES) throw new Error(`A key has ${KEY_BYTES} bytes.`);
    this.#key = key;
  }

  encode(payloads: Payload[], context?: SerializationContext): Promise<Payload[]> {
    return Promise.resolve(payloads.map((payload) => this.#sign(payload, context)));
  }

  decode(payloads: Payload[], context?: SerializationContext): Promise<Payload[]> {
    return Promise.resolve(
      payloads.map((payload) => (this.#holds(payload, context) ? withoutSignature(payload) : marker())),
    );
  }

  #sign(payload: Payload, context: SerializationContext | undefined): Payload {
    const plain = withoutSignature(payload);
    return { ...plain, metadata: { ...plain.metadata, [SIGNATURE]: this.#signatureOf(plain, context) } };
  }

  #holds(payload: Payload, context: SerializationContext | undefined): boolean {
    const given = payload.metadata?.[SIGNATURE];
    if (given === undefined) return false;
    const expected = this.#signatureOf(withoutSignature(payload), context);
    return given.length === expected.length && timingSafeEqual(given, expected);
  }

  #signatureOf({ metadata, data }: Payload, context: SerializationContext | undefined): Uint8Array {
    const hmac = createHmac("sha256", this.#key);
    const add = (part: string | Uint8Array): void => {
      const bytes = typeof part === "string" ? Buffer.from(part) : part;
      const length = Buffer.alloc(4);
      length.writeUInt32BE(bytes.length);
      hmac.update(length).update(bytes);
    };
    for (const part of [DOMAIN, ...placeOf(context)]) add(part);
    add(data ?? new Uint8Array());
    for (const [name, value] of Object.entries(metadata ?? {}).sort(([a], [b]) => (a < b ? -1 : 1))) {
      add(name);
      add(value);
    }
    return hmac.digest();
  }
}

/** The payload without its signature, which is not checked: for display. */
export function withoutSignature(payload: Payload): Payload {
  const { [SIGNATURE]: signature, ...metadata } = payload.metadata ?? {};
  return signature === undefined ? payload : { ...payload, metadata };
}

/**
 * The place that a payload belongs to: sender and receiver derive the same. A copy in another place has no valid
 * signature.
 */
function placeOf(context: SerializationContext | undefined): readonly string[] {
  if (context === undefined) return [];
  const { type, namespace, workflowId = "" } = context;
  return [type, namespace, workflowId, type === "activity" ? (context.activityId ?? "") : ""];
}

const marker = (): Payload => ({
  metadata: { encoding: Buffer.from("json/plain") },
  data: Buffer.from(JSON.stringify(UNSIGNED)),
});
