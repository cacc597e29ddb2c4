/**
 * Owns: the key with which the processes of one installation encrypt payloads (protocol/payload-encryption.ts), in a
 * file under DATA_DIR. A process that can read it can read what Temporal has, and give orders in the user's name.
 */
import { createHash, randomBytes } from "node:crypto";
import { closeSync, fchmodSync, fsyncSync, openSync, readFileSync, renameSync, writeSync } from "node:fs";
import { join } from "node:path";
import { payloadKeysOf } from "../config.ts";
import { dataFolders } from "./data-dir.ts";

/** The keys of this folder, made where there is none. The folder must exist, and no other process may use it meanwhile. */
export function keepPayloadKeys(dataDir: string): readonly Uint8Array[] {
  const kept = readPayloadKeys(dataDir);
  if (kept.length > 0) return kept;
  const key = randomBytes(32);
  // Whatever was encrypted before was encrypted with another key.
  write(usedIn(dataDir), "");
  write(fileIn(dataDir), key.toString("base64"));
  return [key];
}

/** Whether the last start here encrypted with a key that is not among these: nobody can read any more what it wrote. */
export function areNewPayloadKeys(dataDir: string, keys: readonly Uint8Array[]): boolean {
  const used = usedKey(dataDir);
  return keys.length > 0 && used !== null && !keys.some((key) => digestOf(key) === used);
}

/** From now on these keys are not new: the first of them encrypts. */
export function rememberPayloadKey(dataDir: string, [key]: readonly Uint8Array[]): void {
  if (key !== undefined && usedKey(dataDir) !== digestOf(key)) write(usedIn(dataDir), digestOf(key));
}

/** None: there is no usable key. */
export const readPayloadKeys = (dataDir: string): readonly Uint8Array[] =>
  attempt(() => payloadKeysOf(readFileSync(fileIn(dataDir), "utf8").trim())) ?? [];

/** The digest of the key that the last start encrypted with; null: nothing is known of it. */
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
