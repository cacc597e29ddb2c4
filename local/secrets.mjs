/**
 * Owns: which settings are secrets, how a process gets them, and removing them from its environment. A command with the
 * user's rights can read the environment of each of the user's processes in /proc, as it was when the process began.
 * Plain JavaScript: it runs before anything is compiled (run.mjs).
 */
import { closeSync, fstatSync, openSync, readFileSync, writeSync } from "node:fs";

/** For each, `NAME_FILE` may instead name a file of its own, or a pipe. */
export const SECRETS = [
  "ANTHROPIC_API_KEY",
  "API_TOKEN",
  "DATABASE_URL",
  "OTEL_EXPORTER_OTLP_HEADERS",
  "PAYLOAD_KEY",
];

/** A secret cannot be read; the message says what to do. */
export class SecretError extends Error {}

/**
 * The secrets that the parent hands over as a JSON object. It waits for a byte: only then is this process closed to
 * others (closed-memory.mjs).
 *
 * @param fd the descriptor of a socket
 * @throws SecretError
 */
export function receiveSecrets(fd) {
  try {
    writeSync(fd, "\n");
    const text = readFileSync(fd, "utf8");
    closeSync(fd);
    return JSON.parse(text);
  } catch {
    throw new SecretError(`Descriptor ${fd} did not bring the secrets: the parent died, or is none of ours.`);
  }
}

/**
 * Returns the secrets in the environment of this process, and takes them out of it, for good.
 *
 * @throws SecretError
 */
export function takeSecrets() {
  const secrets = {};
  for (const name of SECRETS) {
    const { [name]: value = "", [`${name}_FILE`]: file = "" } = process.env;
    delete process.env[name];
    delete process.env[`${name}_FILE`];
    if (value.trim() !== "" && file !== "") throw new SecretError(`Set ${name} or ${name}_FILE, not both.`);
    if (value.trim() !== "") secrets[name] = value;
    if (file !== "") secrets[name] = readSecret(`${name}_FILE`, file);
  }
  blankOut();
  return secrets;
}

function readSecret(setting, file) {
  try {
    const fd = openSync(file, "r");
    const { mode, uid } = fstatSync(fd);
    // Where the owner is somebody else, as of a secret that Kubernetes mounts, we read it by its group.
    const isPrivate = (mode & (uid === process.getuid() ? 0o077 : 0o037)) === 0;
    const text = readFileSync(fd, "utf8").trim();
    closeSync(fd);
    if (isPrivate) return text;
  } catch (error) {
    throw new SecretError(`${setting}: ${file} cannot be read (${error.code}).`);
  }
  throw new SecretError(`${setting}: others than its owner can open ${file}. Run: chmod 600 ${file}`);
}

/** Indexes in /proc/self/stat, counted from the field after the program's name. */
const [ENV_START, ENV_END] = [47, 48];

/** /proc shows the memory in which the process was given its environment, so only writing to that memory changes it. */
function blankOut() {
  try {
    const stat = readFileSync("/proc/self/stat", "latin1");
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    const [start, end] = [Number(fields[ENV_START]), Number(fields[ENV_END])];
    // One character for each byte, so that lengths are those of the memory.
    const block = readFileSync("/proc/self/environ", "latin1");
    if (block.length !== end - start) return;
    const memory = openSync("/proc/self/mem", "r+");
    let at = start;
    for (const entry of block.split("\0")) {
      const name = entry.slice(0, entry.indexOf("="));
      const value = entry.length - name.length - 1;
      if (SECRETS.includes(name)) writeSync(memory, Buffer.alloc(value), 0, value, at + name.length + 1);
      at += entry.length + 1;
    }
    closeSync(memory);
  } catch {
    // Not Linux, or a kernel that forbids it. docs/security.md says what to do then.
  }
}
