/** Owns: how a test runs as a user without rights. */
import { accessSync, constants } from "node:fs";
import { join } from "node:path";

const NOBODY = 65_534;
export const LAUNCHER = join(import.meta.dirname, "..", "..", "sandbox", "launcher.pl");

/** Makes this process run as nobody from now on, if it is root. There is no way back. */
export function becomeNobody(): void {
  if (process.getuid?.() !== 0) return;
  process.setgroups?.([]);
  process.setgid?.(NOBODY);
  process.setuid?.(NOBODY);
}

/** A checkout below root's home cannot be read, for example. */
export function canRead(path: string): boolean {
  try {
    accessSync(path, constants.R_OK);
    return true;
  } catch {
    return false;
  }
}
