/**
 * Owns: one digest of source files. What is made from them (the compiled programs, the page) is made anew when it
 * changes. Plain JavaScript: it runs before anything is compiled.
 */
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

export const ROOT = join(dirname(fileURLToPath(import.meta.url)), "..");

/**
 * @typedef {{ folders: readonly string[], files: readonly string[], pattern: RegExp, beside?: string }} Sources
 *   Folders are read with all that is below them, as far as the name matches the pattern. The lock of the packages
 *   counts in any case. `beside` is what else the result depends on.
 */

/**
 * @param {Sources} sources
 * @returns {string} 16 hexadecimal digits
 */
export function digestOf({ beside = "", ...sources }) {
  const hash = createHash("sha256").update(`${beside}\n`);
  for (const name of namesOf(sources)) hash.update(`${name}\n`).update(readFileSync(join(ROOT, name)));
  return hash.digest("hex").slice(0, 16);
}

/** Milliseconds. Two changes of a file that are closer may have the same time. */
const RESOLUTION = 1000;

/**
 * What the file system says of the same files without opening them. It differs whenever the digest does, and takes a
 * third of the time.
 *
 * @param {Sources} sources
 * @returns {string | null} 16 hexadecimal digits; null: a file has just changed, and may change again unseen
 */
export function stateOf({ beside = "", ...sources }) {
  const hash = createHash("sha256").update(`${beside}\n`);
  const settled = Date.now() - RESOLUTION;
  for (const name of namesOf(sources)) {
    const { ino, size, mtimeMs, ctimeMs } = statSync(join(ROOT, name));
    if (ctimeMs > settled) return null;
    hash.update(`${name} ${ino} ${size} ${mtimeMs} ${ctimeMs}\n`);
  }
  return hash.digest("hex").slice(0, 16);
}

function namesOf({ folders, files, pattern }) {
  const below = folders.filter((folder) => existsSync(join(ROOT, folder))).flatMap(filesBelow);
  return ["package-lock.json", ...files, ...below.filter((name) => pattern.test(name)).sort()];
}

const filesBelow = (folder) =>
  readdirSync(join(ROOT, folder), { withFileTypes: true }).flatMap((entry) => {
    const name = join(folder, entry.name);
    if (entry.isDirectory()) return filesBelow(name);
    return entry.isFile() ? [name] : [];
  });
