/**
 * REQ-BASH-008, REQ-BED-014: the same attacks where the worker is not root: its commands run as its own user, beside
 * its own processes, and the limit on processes counts those too. This process gives up being root for it.
 */
import { accessSync, constants } from "node:fs";
import { join } from "node:path";
import { test } from "vitest";
import { attackSuite } from "./attack-suite.ts";

const NOBODY = 65_534;
const LAUNCHER = join(import.meta.dirname, "..", "..", "sandbox", "launcher.pl");

if (process.getuid?.() === 0) {
  process.setgroups?.([]);
  process.setgid?.(NOBODY);
  process.setuid?.(NOBODY);
}

if (canRead(LAUNCHER)) await attackSuite();
else {
  console.warn(`SKIPPED, the attacks as another user than root: nobody may read ${LAUNCHER}.`);
  test.skip("as another user than root");
}

function canRead(path: string): boolean {
  try {
    accessSync(path, constants.R_OK);
    return true;
  } catch {
    return false;
  }
}
