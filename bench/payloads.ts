/** Owns: what it costs to encrypt and to decrypt a payload. */
import { randomBytes } from "node:crypto";
import type { Payload } from "@temporalio/common";
import { PayloadEncryption } from "../protocol/payload-encryption.ts";

const ROUNDS = 4_000;

/** Milliseconds for each payload of this many bytes, there and back. */
export async function payloadTimes(
  bytes: number,
): Promise<{ readonly encrypt: readonly number[]; readonly decrypt: readonly number[] }> {
  const codec = new PayloadEncryption([randomBytes(32)]);
  const payload: Payload = { metadata: { encoding: Buffer.from("json/plain") }, data: randomBytes(bytes) };
  const [encrypt, decrypt]: [number[], number[]] = [[], []];
  for (let n = 0; n < ROUNDS; n++) {
    const context = { type: "workflow", namespace: "default", workflowId: `conversation ${n % 50}` } as const;
    const began = performance.now();
    const encrypted = await codec.encode([payload], context);
    const between = performance.now();
    await codec.decode(encrypted, context);
    encrypt.push(between - began);
    decrypt.push(performance.now() - between);
  }
  return { encrypt, decrypt };
}
