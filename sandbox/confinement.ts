/**
 * Owns: the whole confinement of a command of Restricted mode (REQ-BED-014, REQ-BASH-008): its user, its limits,
 * Landlock, no descriptors but its own, and the filter of system calls. It is data: the launcher only makes the calls.
 */
import { readdirSync, readFileSync } from "node:fs";
import { freemem } from "node:os";
import { nextUser, userSteps } from "./credentials.ts";
import { filterRules, filterStep } from "./filter.ts";
import { landlockSteps } from "./landlock.ts";
import { firstToDieSteps, LIMITS, limitSteps, type Limits } from "./limits.ts";
import { readablePaths } from "./readable.ts";
import type { Syscall } from "./syscall.ts";
import type { Architecture } from "./system-calls.ts";

export type Confinement = {
  readonly steps: readonly Syscall[];
  /** The limits that hold for all its processes together (control-groups.ts, supervisor.pl). */
  readonly limits: Limits;
  /** Added to its environment. */
  readonly env: Readonly<Record<string, string>>;
};

export type ConfinementOptions = {
  readonly arch: Architecture;
  /** Landlock's, 1 or more. */
  readonly abi: number;
  readonly limits?: Partial<Limits>;
  /** Folders of the server's own, absolute and without links: no file in them can be read. */
  readonly hidden?: readonly string[];
  /** Leaves the filter out, for tests that show what it is for. */
  readonly withoutFilter?: true;
};

const CLOSE_RANGE_CLOEXEC = 4;
const FIRST_DESCRIPTOR = 3;
const LAST_DESCRIPTOR = 0xffff_ffff;

/** The confinement of one command only. It contains the command's user, and the processes and files that exist now. */
export function confinement({
  arch,
  abi,
  limits,
  hidden = [],
  withoutFilter,
}: ConfinementOptions): Confinement {
  const isRoot = process.getuid?.() === 0;
  // On a machine that is short of memory already, a command may not take half of the rest.
  const availableBytes = Math.min(LIMITS.watch.availableBytes, freemem() / 2);
  const wanted = { ...LIMITS, watch: { ...LIMITS.watch, availableBytes }, ...limits };
  // For root, the command has a user of its own, without other processes. Otherwise its user is ours, which has some.
  const others = isRoot ? [] : tasksOfUser(process.getuid?.() ?? 0);
  const processes = wanted.processes + (isRoot ? 0 : others.length + wanted.neighbours);
  return {
    steps: [
      ...firstToDieSteps(),
      ...limitSteps({ ...wanted, processes }),
      ...(isRoot ? userSteps(nextUser()) : []),
      ...landlockSteps(abi, readablePaths(hidden)),
      { call: "close_range", args: [FIRST_DESCRIPTOR, LAST_DESCRIPTOR, CLOSE_RANGE_CLOEXEC] },
      ...(withoutFilter === true ? [] : [filterStep(arch, filterRules({ arch, abi, outside: others }))]),
    ],
    limits: wanted,
    env: { ...GIT, ...(isRoot ? ANY_OWNER : {}) },
  };
}

/** Otherwise git would also refresh its index. */
const GIT = { GIT_OPTIONAL_LOCKS: "0" };
/** Nothing belongs to the user that the command runs as. */
const ANY_OWNER = { GIT_CONFIG_COUNT: "1", GIT_CONFIG_KEY_0: "safe.directory", GIT_CONFIG_VALUE_0: "*" };

/** The processes of a user, their threads and their groups. A process that ends meanwhile is left out. */
function tasksOfUser(user: number): number[] {
  const tasks = readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .flatMap((pid) => {
      try {
        const [, real] = /^Uid:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
        if (Number(real) !== user) return [];
        // After the name, which may hold anything: state, parent, group.
        const [, group] = /^.*\) \S+ \d+ (\d+)/s.exec(readFileSync(`/proc/${pid}/stat`, "utf8")) ?? [];
        return [...readdirSync(`/proc/${pid}/task`).map(Number), Number(group)];
      } catch {
        return [];
      }
    });
  return [...new Set(tasks)];
}
