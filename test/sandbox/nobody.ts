/** Owns: how a test does what it does as a user that has no rights. */
import { accessSync, constants } from "node:fs";
import { join } from "node:path";

const NOBODY = 65_534;
export const LAUNCHER = join(import.meta.dirname, "..", "..", "sandbox", "launcher.pl");

/** From now on, if this process is root. There is no way back. */
export function becomeNobody(): void {
  if (process.getuid?.() !== 0) return;
  process.setgroups?.([]);
  process.setgid?.(NOBODY);
  process.setuid?.(NOBODY);
}

/** A checkout below a home of root's cannot be. */
export function canRead(path: string): boolean {
  try {
    accessSync(path, constants.R_OK);
    return true;
  } catch {
    return false;
  }
}
