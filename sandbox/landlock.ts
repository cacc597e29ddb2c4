/**
 * Owns: the Landlock part of Restricted mode, by the version of its ABI (1 to 7). A command writes, moves, makes or
 * removes nothing anywhere, and reads files below the given paths only. It has no TCP, and neither signals nor abstract
 * sockets lead out of the domain.
 * Not here: which paths (readable.ts).
 */
import { constants } from "node:fs";
import type { Path } from "./readable.ts";
import type { Syscall } from "./syscall.ts";

/**
 * Rights over files, by the ABI that knows them. Listing folders (8) is left out: people want to list the folders on
 * the way to what is hidden, and a rule for such a folder would hold for everything below it. Executing (1) is left out
 * because it begins with reading.
 */
function handledFiles(abi: number): number {
  if (abi >= 5) return 0xfff6;
  if (abi >= 3) return 0x7ff6;
  return abi === 2 ? 0x3ff6 : 0x1ff6;
}

const READ_FILE = 0x4;
/** The rights to write and, with the ABIs that know them, to truncate and to use ioctl. */
function writingDevices(abi: number): number {
  if (abi >= 5) return 0xc002;
  return abi >= 3 ? 0x4002 : 0x2;
}

/**
 * No terminal is among them. A command that opens a terminal which nobody has would make it its own, and then
 * `/dev/tty` is that terminal.
 */
const DEVICES = ["null", "full", "random", "urandom"];
/**
 * A process that may write to `/dev/zero` may map it shared, and no process is charged with that memory (filter.ts).
 */
const DEVICES_TO_READ = ["zero"];
const BIND_AND_CONNECT = 3n;
const SIGNALS_AND_ABSTRACT_SOCKETS = 3n;
const RULE_PATH_BENEATH = 1;
const O_PATH = 0x20_0000;
/**
 * Without it, a link to something hidden would allow its target. The number depends on the architecture; Node's
 * constant is that of this one.
 */
const NOT_A_LINK = constants.O_NOFOLLOW;
const PR_SET_NO_NEW_PRIVS = 38;

/**
 * The steps for a process that has just forked. They cannot be undone.
 *
 * @param abi 1 or more.
 * @param readable files below these paths may be read. The paths are resolved when the steps are made: a file that
 *   replaces one of them later is another file, and a link among them allows nothing
 */
export function landlockSteps(abi: number, readable: readonly Path[]): readonly Syscall[] {
  const ruleset = attributes(abi);
  const allow = (rights: number, paths: readonly Path[]): Syscall => {
    const beneath = {
      bytes: words(BigInt(rights)),
      paths: paths.map(terminated),
      flags: O_PATH | NOT_A_LINK,
    };
    return {
      call: "landlock_add_rule",
      args: [{ result: "ruleset" }, RULE_PATH_BENEATH, beneath, 0],
    };
  };
  return [
    { call: "prctl", args: [PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0] },
    { call: "landlock_create_ruleset", args: [{ bytes: ruleset }, ruleset.length, 0], keep: "ruleset" },
    // A container may have fewer devices.
    allow(writingDevices(abi) | READ_FILE, DEVICES.map(device)),
    allow(READ_FILE, [...DEVICES_TO_READ.map(device), ...readable]),
    { call: "landlock_restrict_self", args: [{ result: "ruleset" }, 0] },
  ];
}

/** `struct landlock_ruleset_attr`; older ABIs know only its beginning. */
export function attributes(abi: number): Uint8Array {
  const files = BigInt(handledFiles(abi));
  if (abi >= 6) return words(files, BIND_AND_CONNECT, SIGNALS_AND_ABSTRACT_SOCKETS);
  return abi >= 4 ? words(files, BIND_AND_CONNECT) : words(files);
}

function words(...values: readonly bigint[]): Uint8Array {
  const bytes = Buffer.alloc(8 * values.length);
  values.forEach((value, n) => bytes.writeBigUInt64LE(value, 8 * n));
  return bytes;
}

const device = (name: string): Path => Buffer.from(`/dev/${name}`);
const terminated = (path: Path): Uint8Array => Buffer.concat([path, Buffer.of(0)]);
