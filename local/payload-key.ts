/**
 * Owns: the key with which the processes of one installation encrypt payloads (protocol/payload-encryption.ts), as far
 * as `npm start` makes it. A process that has it can read what Temporal has, and give orders in the user's name, approvals
 * among them. So it is new at each start, and no file has it; a file under DATA_DIR has its digest.
 */
import { createHash, randomBytes } from "node:crypto";
import {
  closeSync,
  fchmodSync,
  fsyncSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { dataFolders } from "./data-dir.ts";

/** A key that was never used. Earlier versions kept theirs in a file, which tools could read. */
export function newPayloadKey(dataDir: string): Uint8Array {
  rmSync(join(dataFolders(dataDir).runDir, "payload.key"), { force: true });
  return randomBytes(32);
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

/** The digest of the key that the last start encrypted with; null: nothing is known of it. */
function usedKey(dataDir: string): string | null {
  try {
    return readFileSync(usedIn(dataDir), "utf8");
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

const usedIn = (dataDir: string): string => join(dataFolders(dataDir).runDir, "payload.key.used");
