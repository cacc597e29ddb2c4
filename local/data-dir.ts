/** Owns: the layout of DATA_DIR, and the lock that lets one `npm start` at a time use it. */
import { chmodSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { tryLock, type Lock } from "./lock.ts";
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

/** @throws StartError when another `npm start` has the lock. */
export function takeDataLock({ runDir, dataDir }: DataFolders): Lock {
  const result = tryLock(join(runDir, "launcher.lock"));
  if (result.held) return result;
  throw new StartError(
    `Another start (process ${result.holder.pid}) uses ${dataDir} already. Stop it first, or set another DATA_DIR and another PORT.`,
  );
}
