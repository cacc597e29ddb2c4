/**
 * Owns: the encryption by which API, launcher and worker keep what they send to Temporal to themselves, and recognise
 * each other's payloads. Any client that reaches Temporal's port can read and send payloads. One that was not encrypted
 * with a key that these three share is replaced by a marker, and our processes do not act on the marker.
 * Readable stay the id of the key and the place that the payload belongs to, in the metadata, and its size.
 */
import { createCipheriv, createDecipheriv, createHmac, randomBytes } from "node:crypto";
import { join } from "node:path";
import type { DataConverter, Payload, PayloadCodec, SerializationContext } from "@temporalio/common";
import proto from "@temporalio/proto";
import { LRUCache } from "lru-cache";
import { UNAUTHENTICATED } from "./unauthenticated.ts";

const { Payload: Wire } = proto.temporal.api.common.v1;

const KEY_BYTES = 32;
/** What the metadata's `encoding` says of an encrypted payload: the name that Temporal's own examples use. */
const ENCODING = "binary/encrypted";
const CIPHER = "aes-256-gcm";
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
/** Part of what is authenticated and derived; another form of encryption would have another domain. */
const DOMAIN = "bedrock payload 2";
/** As many as a worker keeps workflows. Deriving a key again takes some microseconds. */
const KEYS_KEPT = 1_000;

/** Turns the messages and stacks of failures into payloads, so that they are encrypted, too. */
export const FAILURE_CONVERTER = join(import.meta.dirname, "failure-converter.mjs");

/**
 * For clients and workers.
 *
 * @param keys the first encrypts, all decrypt; none: nothing is encrypted, and every payload is accepted
 */
export function dataConverterOf(keys: readonly Uint8Array[]): DataConverter {
  return {
    failureConverterPath: FAILURE_CONVERTER,
    payloadCodecs: keys.length === 0 ? [] : [new PayloadEncryption(keys)],
  };
}

/**
 * A codec that never throws: in a workflow, an error would block the conversation for as long as its history exists.
 */
export class PayloadEncryption implements PayloadCodec {
  readonly #first: ConversationKeys;
  readonly #byId: ReadonlyMap<string, ConversationKeys>;

  /** @param keys of 32 bytes each, at least one: the first encrypts, all decrypt */
  constructor(keys: readonly Uint8Array[]) {
    const all = keys.map((key) => new ConversationKeys(key));
    const [first] = all;
    if (first === undefined) throw new Error("There is no key.");
    this.#first = first;
    this.#byId = new Map(all.map((each) => [each.id, each]));
  }

  encode(payloads: Payload[], context?: SerializationContext): Promise<Payload[]> {
    const place = placeOf(context);
    return Promise.resolve(payloads.map((payload) => this.#encrypt(payload, place)));
  }

  decode(payloads: Payload[], context?: SerializationContext): Promise<Payload[]> {
    const place = JSON.stringify(placeOf(context));
    return Promise.resolve(
      payloads.map((payload) => (placeIn(payload) === place ? this.#decrypt(payload) : null) ?? marker()),
    );
  }

  /** For display: the payload decrypted, whatever place it belongs to; as it is, if it cannot be decrypted. */
  reveal(payload: Payload): Payload {
    return this.#decrypt(payload) ?? payload;
  }

  #encrypt(payload: Payload, place: Place): Payload {
    const nonce = randomBytes(NONCE_BYTES);
    const { id } = this.#first;
    const text = JSON.stringify(place);
    const cipher = createCipheriv(CIPHER, this.#first.of(place), nonce).setAAD(authenticated(id, text));
    const hidden = cipher.update(Wire.encode(payload).finish());
    cipher.final();
    return {
      metadata: {
        encoding: Buffer.from(ENCODING),
        "encryption-key-id": Buffer.from(id),
        place: Buffer.from(text),
      },
      data: Buffer.concat([nonce, hidden, cipher.getAuthTag()]),
    };
  }

  /** null: none of our processes has encrypted it so. */
  #decrypt({ metadata, data }: Payload): Payload | null {
    if (textOf(metadata?.["encoding"]) !== ENCODING) return null;
    const id = textOf(metadata?.["encryption-key-id"]);
    const text = textOf(metadata?.["place"]);
    const place = readPlace(text);
    const keys = this.#byId.get(id);
    if (keys === undefined || place === null || !data || data.length < NONCE_BYTES + TAG_BYTES) return null;
    const end = data.length - TAG_BYTES;
    try {
      const cipher = createDecipheriv(CIPHER, keys.of(place), data.subarray(0, NONCE_BYTES))
        .setAAD(authenticated(id, text))
        .setAuthTag(data.subarray(end));
      const shown = cipher.update(data.subarray(NONCE_BYTES, end));
      cipher.final();
      const { metadata: of, data: plain } = Wire.decode(shown);
      return { metadata: of, data: plain };
    } catch {
      return null;
    }
  }
}

/**
 * A key of the installation, and those that are derived from it, one for each conversation. With random nonces a key
 * of GCM may encrypt 2^32 payloads. Fifty conversations at work need as many in some months, but one never does.
 */
class ConversationKeys {
  /** Names the key in payloads, and tells nothing of it. */
  readonly id: string;
  readonly #key: Uint8Array;
  readonly #derived = new LRUCache<string, Uint8Array>({ max: KEYS_KEPT });

  constructor(key: Uint8Array) {
    if (key.length !== KEY_BYTES) throw new Error(`A key has ${KEY_BYTES} bytes.`);
    this.#key = key;
    this.id = this.#derive("id").subarray(0, 8).toString("hex");
  }

  of([, namespace, workflowId]: Place): Uint8Array {
    const name = JSON.stringify([namespace, workflowId]);
    let derived = this.#derived.get(name);
    if (derived === undefined) this.#derived.set(name, (derived = this.#derive(`key of ${name}`)));
    return derived;
  }

  #derive(what: string): Buffer {
    return createHmac("sha256", this.#key).update(`${DOMAIN}\n${what}`).digest();
  }
}

/** Type, namespace, workflow's id, activity's id. */
type Place = readonly [string, string, string, string];

/**
 * The place that a payload belongs to: sender and receiver derive the same. A copy in another place is not taken for
 * what it is.
 */
function placeOf(context: SerializationContext | undefined): Place {
  if (context === undefined) return ["", "", "", ""];
  const { type, namespace, workflowId = "" } = context;
  return [type, namespace, workflowId, type === "activity" ? (context.activityId ?? "") : ""];
}

function readPlace(text: string): Place | null {
  try {
    const parts: unknown = JSON.parse(text);
    return isPlace(parts) ? parts : null;
  } catch {
    return null;
  }
}

const isPlace = (parts: unknown): parts is Place =>
  Array.isArray(parts) && parts.length === 4 && parts.every((part) => typeof part === "string");

const placeIn = ({ metadata }: Payload): string => textOf(metadata?.["place"]);

/** What is authenticated beside the payload. The id has no line break. */
const authenticated = (id: string, place: string): Buffer => Buffer.from(`${DOMAIN}\n${id}\n${place}`);

const textOf = (bytes: Uint8Array | null | undefined): string => Buffer.from(bytes ?? []).toString();

const marker = (): Payload => ({
  metadata: { encoding: Buffer.from("json/plain") },
  data: Buffer.from(JSON.stringify(UNAUTHENTICATED)),
});
