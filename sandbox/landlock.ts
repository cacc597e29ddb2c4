/**
 * Owns: the Landlock part of Restricted mode, by the version of its ABI (1 to 7): nothing is written, moved, made or
 * removed anywhere, files are read below the given paths only, no TCP, no signals and no abstract sockets out of the
 * domain.
 * Not here: which paths (readable.ts).
 */
import { constants } from "node:fs";
import type { Path } from "./readable.ts";
import type { Syscall } from "./syscall.ts";

/**
 * Rights over files, by the ABI that knows them. Listing folders (8) is left out: a rule for a folder would hold for all
 * below it, and people want to list those on the way to what is hidden. So is executing (1), which begins by reading.
 */
function handledFiles(abi: number): number {
  if (abi >= 5) return 0xfff6;
  if (abi >= 3) return 0x7ff6;
  return abi === 2 ? 0x3ff6 : 0x1ff6;
}

const READ_FILE = 0x4;
/** To write, and with the ABIs that know them truncate and ioctl. */
function writingDevices(abi: number): number {
  if (abi >= 5) return 0xc002;
  return abi >= 3 ? 0x4002 : 0x2;
}

/** No terminal: whichever nobody has would become the command's own by being opened, and `/dev/tty` is that. */
const DEVICES = ["null", "full", "random", "urandom"];
/** Who may write to it may map it shared, which is memory that nobody is charged with (filter.ts). */
const DEVICES_TO_READ = ["zero"];
const BIND_AND_CONNECT = 3n;
const SIGNALS_AND_ABSTRACT_SOCKETS = 3n;
const RULE_PATH_BENEATH = 1;
const O_PATH = 0x20_0000;
/** Else a link to what is hidden would allow it. The number depends on the architecture; this one's is right. */
const NOT_A_LINK = constants.O_NOFOLLOW;
const PR_SET_NO_NEW_PRIVS = 38;

/**
 * For a process that has just forked; it cannot be undone.
 *
 * @param abi 1 or more.
 * @param readable below these files may be read, as they are when the steps are made: what is put in their place later
 *   is another file, and links among them lead nowhere
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
