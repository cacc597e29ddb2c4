/** Owns: helpers for the tests of local/: temporary folders, small programs, waiting for a condition. */
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { onTestFinished } from "vitest";

/** An empty folder that is removed when the test is over. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "bedrock-local-"));
  // Other accounts have to enter it: as root, Postgres runs under another one.
  chmodSync(folder, 0o755);
  onTestFinished(() => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }));
  return folder;
}

/** Writes an executable shell script. */
export function script(file: string, body: string): string {
  writeFileSync(file, `#!/bin/sh\n${body}\n`);
  chmodSync(file, 0o755);
  return file;
}

/** Asks until the answer is neither null nor false. */
export async function eventually<T>(
  what: string,
  ask: () => T | null | false | Promise<T | null | false>,
  within = 10_000,
): Promise<T> {
  const deadline = performance.now() + within;
  for (;;) {
    const answer = await ask();
    if (answer !== null && answer !== false) return answer;
    if (performance.now() > deadline) throw new Error(`Waited in vain: ${what}`);
    await pause(10);
  }
}
