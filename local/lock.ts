/**
 * Owns: locks between processes of one machine. A lock is a file that names its holder. If the holder has ended, in
 * whatever way, the lock is free. A holder can say that it will release the lock soon.
 */
import { linkSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import { randomUUID } from "node:crypto";
import { identify, isRunning, parseIdentity, type ProcessIdentity } from "./process-identity.ts";

export type Lock = {
  readonly held: true;
  /** Tells others that it is worth waiting. */
  announceRelease(): void;
  release(): void;
};
export type Refused = {
  readonly held: false;
  readonly holder: ProcessIdentity;
  /** The holder has announced it. */
  readonly isReleasedSoon: boolean;
};

/** Takes the lock, or returns its holder. The file's folder must exist. */
export function tryLock(file: string): Lock | Refused {
  const me = identify(process.pid);
  if (me === null) throw new Error("The start time of this process cannot be read.");
  // The nonce distinguishes two locks of one process.
  const content = { ...me, nonce: randomUUID() };
  const own = `${file}.${randomUUID()}`;
  writeFileSync(own, JSON.stringify(content));
  try {
    for (;;) {
      if (link(own, file)) return lockOf(file, content);
      const found = read(file);
      if (found === null) continue;
      const holder = parseIdentity(found);
      if (holder !== null && isRunning(holder))
        return { held: false, holder, isReleasedSoon: isAnnounced(found) };
      discard(file, found);
    }
  } finally {
    rmSync(own, { force: true });
  }
}

/** The process that has the lock; null: nobody does. */
export function holderOf(file: string): ProcessIdentity | null {
  const found = read(file);
  const holder = found === null ? null : parseIdentity(found);
  return holder !== null && isRunning(holder) ? holder : null;
}

/**
 * Waits for the lock.
 *
 * @param onWait called once, when another process has it.
 */
export async function lock(file: string, onWait: () => void, signal?: AbortSignal): Promise<Lock> {
  for (let attempt = 0; ; attempt++) {
    const result = tryLock(file);
    if (result.held) return result;
    if (attempt === 0) onWait();
    await pause(200, undefined, signal === undefined ? {} : { signal });
  }
}

type Content = ProcessIdentity & { readonly nonce: string; readonly isReleasedSoon?: boolean };

function lockOf(file: string, content: Content): Lock {
  let present = JSON.stringify(content);
  return {
    held: true,
    announceRelease() {
      if (read(file) !== present) return;
      present = JSON.stringify({ ...content, isReleasedSoon: true } satisfies Content);
      const next = `${file}.${randomUUID()}`;
      writeFileSync(next, present);
      renameSync(next, file);
    },
    release() {
      if (read(file) === present) rmSync(file, { force: true });
    },
  };
}

const isAnnounced = (content: string): boolean =>
  (JSON.parse(content) as Partial<Content>).isReleasedSoon === true;

/** Removes a dead holder's file, unless another process has taken the lock in between. */
function discard(file: string, stale: string): void {
  const aside = `${file}.${randomUUID()}`;
  try {
    renameSync(file, aside);
  } catch {
    return;
  }
  if (read(aside) !== stale) link(aside, file);
  rmSync(aside, { force: true });
}

function link(from: string, to: string): boolean {
  try {
    linkSync(from, to);
    return true;
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "EEXIST") return false;
    throw error;
  }
}

function read(file: string): string | null {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return null;
  }
}
