/**
 * Owns: the key by which the processes of one installation recognise each other's payloads
 * (protocol/payload-signature.ts), in a file under DATA_DIR. A process that can read it can give orders in the user's
 * name.
 */
import { randomBytes } from "node:crypto";
import { closeSync, fchmodSync, fsyncSync, openSync, readFileSync, renameSync, writeSync } from "node:fs";
import { join } from "node:path";
import { payloadKeyOf } from "../config.ts";
import { dataFolders } from "./data-dir.ts";

export type KeptKey = {
  readonly key: Uint8Array;
  /** There was no usable key before: payloads that were signed with an earlier one are no longer valid. */
  readonly isNew: boolean;
};

/** The folder for it must exist, and no other process may use it meanwhile. */
export function keepPayloadKey(dataDir: string): KeptKey {
  const kept = readPayloadKey(dataDir);
  if (kept !== null) return { key: kept, isNew: false };
  const key = randomBytes(32);
  const file = fileIn(dataDir);
  const temporary = `${file}.new`;
  const fd = openSync(temporary, "w", 0o600);
  fchmodSync(fd, 0o600);
  writeSync(fd, key.toString("base64"));
  fsyncSync(fd);
  closeSync(fd);
  renameSync(temporary, file);
  return { key, isNew: true };
}

/** null: there is no usable key. */
export function readPayloadKey(dataDir: string): Uint8Array | null {
  try {
    return payloadKeyOf(readFileSync(fileIn(dataDir), "utf8").trim());
  } catch {
    return null;
  }
}

const fileIn = (dataDir: string): string => join(dataFolders(dataDir).runDir, "payload.key");
