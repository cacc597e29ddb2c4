/**
 * Owns: the user of the commands of Restricted mode, where the worker is root. Root is exempt from the limit on
 * processes and can read every process's environment. So each command runs as a user that no other process has, with
 * one right of root's only: to read files.
 */
import type { Syscall } from "./syscall.ts";

/** The range of ids that systemd gives to transient users: nothing belongs to them. */
const FIRST_USER = 61_184;
const LAST_USER = 65_519;

/** The ids in turn. An id comes again only after more commands than run at a time. */
let last = FIRST_USER - 1;
export const nextUser = (): number => (last = last >= LAST_USER ? FIRST_USER : last + 1);

const PR_CAPBSET_DROP = 24;
const PR_SET_SECUREBITS = 28;
const PR_CAP_AMBIENT = 47;
const PR_CAP_AMBIENT_RAISE = 2;
/**
 * User 0 gets no capabilities, and a change from user 0 to another user keeps those that are set here. Both are locked.
 */
const NO_ROOT_NO_FIXUP = 0xf;
const CAP_DAC_READ_SEARCH = 2;
const LAST_CAPABILITY = 63;
const CAPABILITY_VERSION_3 = 0x2008_0522;

export function userSteps(user: number): readonly Syscall[] {
  const others = Array.from({ length: LAST_CAPABILITY + 1 }, (_, n) => n).filter(
    (n) => n !== CAP_DAC_READ_SEARCH,
  );
  return [
    // The user becomes the owner of the command's output, so that the command can also open it by name (`/dev/stderr`).
    ...[1, 2].map((output): Syscall => ({ call: "fchown", args: [output, user, user] })),
    { call: "prctl", args: [PR_SET_SECUREBITS, NO_ROOT_NO_FIXUP, 0, 0, 0] },
    // Optional, because a kernel knows only about forty of them.
    ...others.map((n): Syscall => ({ call: "prctl", args: [PR_CAPBSET_DROP, n, 0, 0, 0], optional: true })),
    { call: "setgroups", args: [0, 0] },
    { call: "setresgid", args: [user, user, user] },
    { call: "setresuid", args: [user, user, user] },
    { call: "capset", args: [{ bytes: header() }, { bytes: capabilities(1 << CAP_DAC_READ_SEARCH) }] },
    { call: "prctl", args: [PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_DAC_READ_SEARCH, 0, 0] },
  ];
}

function header(): Uint8Array {
  const bytes = Buffer.alloc(8);
  bytes.writeUInt32LE(CAPABILITY_VERSION_3, 0);
  return bytes;
}

/** The effective, permitted and inheritable sets; their upper halves are empty. */
function capabilities(low: number): Uint8Array {
  const bytes = Buffer.alloc(24);
  for (let n = 0; n < 3; n++) bytes.writeUInt32LE(low, 4 * n);
  return bytes;
}
