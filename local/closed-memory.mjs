/**
 * Owns: closing the memory of this process to other programs of the same user, who could otherwise read secrets there.
 * Plain JavaScript: it runs before anything is compiled (run.mjs).
 * Not here: what a process shows in its environment (secrets.mjs). Root reads everything all the same.
 */
import inspector from "node:inspector";

const PR_SET_DUMPABLE = 4;
/** Options of Node by which other programs can get at the memory of a process. */
const OPENING = /(^| )--(inspect|heapsnapshot-signal|heap-prof)\S*/g;

/**
 * Closes Node's debugger, which runs any code that a local program sends. SIGUSR1 opens it, and every program of the
 * user can send that: a listener of our own takes the place of Node's. The processes that this one starts inherit no
 * option that opens it. Must come before the secrets.
 */
export function closeDebugger() {
  process.on("SIGUSR1", () => undefined);
  const { NODE_OPTIONS: options = "" } = process.env;
  if (options !== "") process.env["NODE_OPTIONS"] = options.replaceAll(OPENING, "");
  if (inspector.url() === undefined) return;
  console.error("Warning: Node's debugger is closed, because every local program could read secrets by it.");
  inspector.close();
}

/**
 * Makes this process not dumpable: /proc shows neither its memory, its environment nor its open files to others, nobody
 * can trace it, and it leaves no core dump. From here on the process itself cannot write to /proc/self either. What it
 * starts is not affected.
 */
export async function closeMemory() {
  try {
    const { default: koffi } = await import("koffi");
    const prctl = koffi.load(null).func("int prctl(int, ulong, ulong, ulong, ulong)");
    if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) === 0) return;
    console.error(`${WARNING} The system refuses it.`);
  } catch (error) {
    console.error(`${WARNING} ${error instanceof Error ? error.message.split("\n")[0] : String(error)}`);
  }
}

const WARNING = "Warning: other programs of this user can read this process's memory, secrets included.";
