/**
 * Owns: one digest of source files. What is made from them (the compiled programs, the page) is made anew when it
 * changes. Plain JavaScript: it runs before anything is compiled.
 */
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";

export const ROOT = join(dirname(fileURLToPath(import.meta.url)), "..");

/**
 * Folders are read with all that is below them, as far as the name matches the pattern. The lock of the packages counts
 * in any case.
 *
 * @param {{ folders: readonly string[], files: readonly string[], pattern: RegExp, beside?: string }} sources `beside`
 *   is what else the result depends on
 * @returns {string} 16 hexadecimal digits
 */
export function digestOf({ folders, files, pattern, beside = "" }) {
  const below = folders
    .filter((folder) => existsSync(join(ROOT, folder)))
    .flatMap((folder) => filesBelow(folder));
  const hash = createHash("sha256").update(`${beside}\n`);
  for (const name of ["package-lock.json", ...files, ...below.filter((name) => pattern.test(name)).sort()]) {
    hash.update(`${name}\n`).update(readFileSync(join(ROOT, name)));
  }
  return hash.digest("hex").slice(0, 16);
}

const filesBelow = (folder) =>
  readdirSync(join(ROOT, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(ROOT, join(entry.parentPath, entry.name)));
