/**
 * Owns: what a command of Restricted mode may read: everything but folders of the server's own, and devices. Landlock
 * only allows, and with a folder all that is below it. So what is hidden is spared by naming, in every folder on the way
 * to it, each of the other entries.
 */
import { readdirSync } from "node:fs";

/**
 * Opening a device does things: a terminal is taken from those that are left, a watchdog begins to run, a disk shows
 * what is hidden in its files. The few that are only read have a rule of their own (landlock.ts).
 */
const DEVICES = "/dev";
/** Programs share memory by its files; some people work in its folders. */
const SHARED_MEMORY = "/dev/shm";
/** Logs of the kernel that are gone when they are read, and its drivers' back doors: for root, and for it alone. */
const DEBUGGING = ["/sys/kernel/debug", "/sys/kernel/tracing"];

/** Bytes of a path, for names need not be UTF-8. */
export type Path = Buffer;

/**
 * The paths that together hold what may be read, as they are now: an entry that appears later in a folder on the way
 * is not among them.
 *
 * @param hidden absolute and without links; they need not exist
 */
export function readablePaths(hidden: readonly string[]): readonly Path[] {
  const spared = new Set([DEVICES, ...DEBUGGING, ...hidden].map(encoded));
  const onTheWay = new Set([...spared].flatMap(foldersAbove));
  const within = (path: string): string[] => {
    if (spared.has(path)) return [];
    return onTheWay.has(path) ? entriesOf(path).flatMap((name) => within(`${path}/${name}`)) : [path];
  };
  return [...within(ROOT), ...foldersIn(SHARED_MEMORY)].map((path) => Buffer.from(path, CODING));
}

/** To which a slash and a name are added, as to any other folder. */
const ROOT = "";
/** A character a byte, so that paths can be compared and joined. */
const CODING = "latin1";
const encoded = (path: string): string => Buffer.from(path).toString(CODING);

function foldersAbove(path: string): string[] {
  const names = path.split("/").slice(0, -1);
  return names.map((_, n) => names.slice(0, n + 1).join("/"));
}

/** None where we may not look, or nothing is. */
function entriesOf(folder: string): readonly string[] {
  try {
    return readdirSync(Buffer.from(`${folder}/`, CODING), CODING);
  } catch {
    return [];
  }
}

function foldersIn(folder: string): readonly string[] {
  try {
    const entries = readdirSync(folder, { encoding: CODING, withFileTypes: true });
    return entries.filter((entry) => entry.isDirectory()).map(({ name }) => `${folder}/${name}`);
  } catch {
    return [];
  }
}
