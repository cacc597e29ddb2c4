/**
 * Owns: what a command of Restricted mode may read: everything but the server's own folders, and devices. A Landlock
 * rule can only allow, and a rule for a folder allows everything below it. So, to hide something, every other entry of
 * each folder on the way to it gets a rule.
 */
import { readdirSync } from "node:fs";

/**
 * Hidden, because opening a device has effects: it uses up one of the terminals, starts a watchdog, or shows on a disk
 * what is hidden in its files. The few devices that are only read have a rule of their own (landlock.ts).
 */
const DEVICES = "/dev";
/**
 * Its files stay hidden, because programs share memory through them. Its folders are readable, because some people work
 * in them.
 */
const SHARED_MEMORY = "/dev/shm";
/** Kernel logs that are consumed by reading, and back doors of drivers: for root alone. */
const DEBUGGING = ["/sys/kernel/debug", "/sys/kernel/tracing"];

/** A path as bytes, because names need not be UTF-8. */
export type Path = Buffer;

/**
 * The paths that together hold what may be read, as they are now. An entry that appears later in a folder on the way to
 * a hidden one is not among them.
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

/** Empty, because a slash and a name are added to it as to any other folder. */
const ROOT = "";
/** One character for each byte, so that paths can be compared and joined. */
const CODING = "latin1";
const encoded = (path: string): string => Buffer.from(path).toString(CODING);

function foldersAbove(path: string): string[] {
  const names = path.split("/").slice(0, -1);
  return names.map((_, n) => names.slice(0, n + 1).join("/"));
}

/** Empty if the folder does not exist or we may not list it. */
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
