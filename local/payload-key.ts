/**
 * Owns: the key by which the processes of one installation recognise each other's payloads
 * (protocol/payload-signature.ts), in a file under DATA_DIR. A process that can read it can give orders in the user's
 * name.
 */
import { createHash, randomBytes } from "node:crypto";
import { closeSync, fchmodSync, fsyncSync, openSync, readFileSync, renameSync, writeSync } from "node:fs";
import { join } from "node:path";
import { payloadKeyOf } from "../config.ts";
import { dataFolders } from "./data-dir.ts";

/** The key of this folder, made where there is none. The folder must exist, and no other process may use it meanwhile. */
export function keepPayloadKey(dataDir: string): Uint8Array {
  const kept = readPayloadKey(dataDir);
  if (kept !== null) return kept;
  const key = randomBytes(32);
  write(fileIn(dataDir), key.toString("base64"));
  return key;
}

/** The last start has finished with another key, or there was none: what it has signed is not valid any more. */
export function isNewPayloadKey(dataDir: string, key: Uint8Array): boolean {
  try {
    return readFileSync(usedIn(dataDir), "utf8") !== digestOf(key);
  } catch {
    return true;
  }
}

/** From now on the key is not new: no conversation depends on what an earlier key has signed. */
export const rememberPayloadKey = (dataDir: string, key: Uint8Array): void =>
  write(usedIn(dataDir), digestOf(key));

/** null: there is no usable key. */
export function readPayloadKey(dataDir: string): Uint8Array | null {
  try {
    return payloadKeyOf(readFileSync(fileIn(dataDir), "utf8").trim());
  } catch {
    return null;
  }
}

function write(file: string, text: string): void {
  const temporary = `${file}.new`;
  const fd = openSync(temporary, "w", 0o600);
  fchmodSync(fd, 0o600);
  writeSync(fd, text);
  fsyncSync(fd);
  closeSync(fd);
  renameSync(temporary, file);
}

const digestOf = (key: Uint8Array): string => createHash("sha256").update(key).digest("hex");

const usedIn = (dataDir: string): string => `${fileIn(dataDir)}.used`;
const fileIn = (dataDir: string): string => join(dataFolders(dataDir).runDir, "payload.key");
