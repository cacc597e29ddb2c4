/**
 * Owns: the key by which the processes of one installation recognise each other's payloads
 * (protocol/payload-signature.ts), as far as `npm start` makes it. A process that has it can give orders in the user's
 * name, approvals among them. So it is new at each start, and no file has it; a file under DATA_DIR has its digest.
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

/** Whether what was signed here before may have been signed with another key: it is not valid any more. */
export function isNewPayloadKey(dataDir: string, key: Uint8Array): boolean {
  const used = usedKey(dataDir);
  return used !== null && used !== digestOf(key);
}

/** From now on the key is not new: no conversation depends on what an earlier key has signed. */
export function rememberPayloadKey(dataDir: string, key: Uint8Array): void {
  if (usedKey(dataDir) !== digestOf(key)) write(usedIn(dataDir), digestOf(key));
}

/** The digest of the key of the last start; null: nothing is known of it. */
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
