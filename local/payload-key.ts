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
  // Whatever was signed before was signed with another key.
  write(usedIn(dataDir), "");
  write(fileIn(dataDir), key.toString("base64"));
  return key;
}

/** Whether the last start here used another key: what that key has signed is not valid any more. */
export function isNewPayloadKey(dataDir: string, key: Uint8Array): boolean {
  const used = usedKey(dataDir);
  return used !== null && used !== digestOf(key);
}

/** From now on the key is not new: no conversation depends on what an earlier key has signed. */
export function rememberPayloadKey(dataDir: string, key: Uint8Array): void {
  if (usedKey(dataDir) !== digestOf(key)) write(usedIn(dataDir), digestOf(key));
}

/** null: there is no usable key. */
export const readPayloadKey = (dataDir: string): Uint8Array | null =>
  attempt(() => payloadKeyOf(readFileSync(fileIn(dataDir), "utf8").trim()));

/** The digest of the key of the last start; null: nothing is known of it. */
const usedKey = (dataDir: string): string | null => attempt(() => readFileSync(usedIn(dataDir), "utf8"));

function attempt<T>(read: () => T): T | null {
  try {
    return read();
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
