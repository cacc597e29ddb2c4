/**
 * Owns: the corrections of packages that their makers have not published yet (`patches/`, each with its reason in
 * docs/dependencies.md). local/setup.mjs makes them once the packages are installed, and the Dockerfile does by
 * `node local/patches.mjs`.
 */
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { applyPatch, parsePatch, reversePatch } from "diff";

/** Throws when a file is neither as its package has it nor corrected. */
export function patchPackages(root) {
  const folder = join(root, "patches");
  for (const name of readdirSync(folder)) {
    for (const patch of parsePatch(readFileSync(join(folder, name), "utf8"))) {
      const file = join(root, patch.newFileName);
      const text = readFileSync(file, "utf8");
      const patched = applyPatch(text, patch);
      if (patched !== false) writeFileSync(file, patched);
      else if (applyPatch(text, reversePatch(patch)) === false) {
        throw new Error(
          `patches/${name} does not fit the installed package. Remove node_modules and start again.`,
        );
      }
    }
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url))
  patchPackages(join(dirname(fileURLToPath(import.meta.url)), ".."));
