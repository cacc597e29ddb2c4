/**
 * Owns: the Landlock part of Restricted mode, by the version of its ABI (1 to 7): nothing is written, moved, made or
 * removed anywhere, no TCP, no signals and no abstract sockets out of the domain. Reading and running programs are
 * left alone, so that no path has to be listed.
 */
import type { Step } from "./step.ts";

/** Rights over files, by the ABI that knows them; reading and executing (1, 4, 8) are left out on purpose. */
function handledFiles(abi: number): number {
  if (abi >= 5) return 0xfff2;
  if (abi >= 3) return 0x7ff2;
  return abi === 2 ? 0x3ff2 : 0x1ff2;
}

/** On the devices that any program may write to: write, and with the ABIs that know them truncate and ioctl. */
function deviceRights(abi: number): number {
  if (abi >= 5) return 0xc002;
  return abi >= 3 ? 0x4002 : 0x2;
}

/** No terminal: whichever nobody has would become the command's own by being opened, and `/dev/tty` is that. */
const DEVICES = ["null", "zero", "full", "random", "urandom"] as const;
const BIND_AND_CONNECT = 3n;
const SIGNALS_AND_ABSTRACT_SOCKETS = 3n;
const RULE_PATH_BENEATH = 1;
const AT_FDCWD = -100;
const O_PATH = 0x20_0000;
const PR_SET_NO_NEW_PRIVS = 38;

/** For a process that has just forked; it cannot be undone. @param abi 1 or more. */
export function landlockSteps(abi: number): readonly Step[] {
  const ruleset = attributes(abi);
  const rights = words(BigInt(deviceRights(abi)));
  return [
    { call: "prctl", args: [PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0] },
    { call: "landlock_create_ruleset", args: [{ bytes: ruleset }, ruleset.length, 0], keep: "ruleset" },
    ...DEVICES.flatMap((name): Step[] => [
      // A container may have fewer.
      {
        call: "openat",
        args: [AT_FDCWD, { bytes: text(`/dev/${name}`) }, O_PATH, 0],
        keep: name,
        optional: true,
      },
      {
        call: "landlock_add_rule",
        args: [{ result: "ruleset" }, RULE_PATH_BENEATH, { bytes: rights, result: name }, 0],
      },
    ]),
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

const text = (value: string): Uint8Array => Buffer.from(`${value}\0`);
