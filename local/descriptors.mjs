/**
 * Owns: closing the descriptors that the shell left open when it started this process. Postgres, the workers and every
 * command of an agent would inherit them, and could read from them.
 */
import { closeSync, readdirSync, readFileSync, readlinkSync } from "node:fs";
import inspector from "node:inspector";

const [STANDARD_ERROR, ACCESS_MODE, O_CLOEXEC] = [2, 0o3, 0o2000000];

/**
 * Closes every inherited descriptor above standard error, but for the one by which secrets come. When a program begins, Node's own descriptors are only event
 * queues, pipes to itself, and the sockets of a debugger or of the parent that forked it.
 */
export function closeInherited(kept = null) {
  const open = descriptors().filter(({ fd }) => fd > STANDARD_ERROR && fd !== kept);
  // Node marks inherited descriptors like its own, but stops at the first gap. So the mark alone proves nothing.
  const isPipeToItself = ({ target }) => {
    const ends = open.filter((other) => other.target === target).map(({ access }) => access);
    return target.startsWith("pipe:") && ends.length === 2 && ends.includes(0) && ends.includes(1);
  };
  const talks = process.channel !== undefined || inspector.url() !== undefined;
  const isNodes = (one) =>
    one.closedOnExec &&
    (one.target.startsWith("anon_inode:") ||
      isPipeToItself(one) ||
      (talks && one.target.startsWith("socket:")));
  for (const one of open) if (!isNodes(one)) closeSync(one.fd);
}

/** The descriptors of this process; none where there is no /proc. */
function descriptors() {
  try {
    return readdirSync("/proc/self/fd").flatMap(describe);
  } catch {
    return [];
  }
}

function describe(fd) {
  try {
    const [, octal = "0"] = /^flags:\s*(\d+)$/m.exec(readFileSync(`/proc/self/fdinfo/${fd}`, "utf8")) ?? [];
    const flags = Number.parseInt(octal, 8);
    const target = readlinkSync(`/proc/self/fd/${fd}`);
    return [{ fd: Number(fd), target, access: flags & ACCESS_MODE, closedOnExec: (flags & O_CLOEXEC) !== 0 }];
  } catch {
    // This descriptor was open only to read the folder.
    return [];
  }
}
