/** Owns: the layout of DATA_DIR, and the lock that lets one `npm start` at a time use it. */
import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { holderOf, tryLock, type Lock } from "./lock.ts";
import type { ProcessIdentity } from "./process-identity.ts";
import type { Report } from "./progress.ts";
import { sentenceOf, StartError } from "./start-error.ts";

export type DataFolders = {
  readonly dataDir: string;
  readonly runDir: string;
  readonly logDir: string;
  readonly temporalDir: string;
};

/** The folders under DATA_DIR; Postgres has a folder of its own beside them. */
export function dataFolders(dataDir: string): DataFolders {
  return {
    dataDir,
    runDir: join(dataDir, "run"),
    logDir: join(dataDir, "logs"),
    temporalDir: join(dataDir, "temporal"),
  };
}

/** @throws StartError when they cannot be made or written. */
export function makeFolders({ dataDir, ...own }: DataFolders): void {
  try {
    // Other users may enter it: if this process is root, Postgres runs under another account.
    mkdirSync(dataDir, { recursive: true, mode: 0o755 });
    for (const folder of Object.values(own)) {
      mkdirSync(folder, { recursive: true });
      chmodSync(folder, 0o700);
    }
  } catch (error) {
    throw new StartError(`DATA_DIR ${dataDir} cannot be used: ${sentenceOf(error)}. Set another one.`);
  }
}

const lockIn = ({ runDir }: DataFolders): string => join(runDir, "launcher.lock");

/** The `npm start` that uses them; null: none does. */
export const holderOfData = (folders: DataFolders): ProcessIdentity | null => holderOf(lockIn(folders));

const urlIn = ({ runDir }: DataFolders): string => join(runDir, "url");

/** Says where the `npm start` that has the lock answers requests; null: nowhere yet. */
export function announceUrl(folders: DataFolders, url: string | null): void {
  if (url === null) rmSync(urlIn(folders), { force: true });
  else writeFileSync(urlIn(folders), url);
}

/** What the `npm start` that has the lock has announced last. */
export function announcedUrl(folders: DataFolders): string | null {
  const file = urlIn(folders);
  return existsSync(file) ? readFileSync(file, "utf8") : null;
}

/** Milliseconds: a little more than a stop takes at most (main.ts). */
const STOPS_WITHIN = 15_000;

/**
 * Waits for another `npm start` that is stopping.
 *
 * @throws StartError when another one has the lock and does not stop.
 */
export async function takeDataLock(
  folders: DataFolders,
  options: { readonly report: Report; readonly signal?: AbortSignal; readonly within?: number },
): Promise<Lock> {
  const { report, signal, within = STOPS_WITHIN } = options;
  const { dataDir } = folders;
  const deadline = performance.now() + within;
  for (;;) {
    signal?.throwIfAborted();
    const result = tryLock(lockIn(folders));
    if (result.held) return result;
    const other = `Another start (process ${result.holder.pid})`;
    if (!result.isReleasedSoon)
      throw new StartError(
        `${other} uses ${dataDir} already. Stop it first, or set another DATA_DIR and another PORT.`,
      );
    if (performance.now() > deadline)
      throw new StartError(
        `${other} is stopping, but has not ended. End it (kill -9 ${result.holder.pid}) and start again.`,
      );
    report(`process ${result.holder.pid} is stopping`);
    await pause(50);
  }
}
