/** Owns: the definition of an attack, how it is written, and how its success is seen from outside. */
import { architecture, numberOf, type SystemCall } from "../../sandbox/system-calls.ts";
import type { Arena } from "./arena.ts";

export type Attack = {
  readonly name: string;
  readonly script: string;
  /** The check of success; by default, the script says SUCCESS. */
  readonly succeeded?: (arena: Arena) => boolean;
  /** Needs a program that not every machine has. */
  readonly needs?: string;
  /** Only root can do it, even in Unrestricted mode. */
  readonly onlyRoot?: true;
  /** The attack is skipped where this command fails in Unrestricted mode. */
  readonly onlyIf?: string;
  /** Kernels and machines may lack what it needs. It is skipped where it fails in Unrestricted mode itself. */
  readonly mayBeMissing?: true;
};

export type Group = { readonly changesFiles: boolean; readonly attacks: readonly Attack[] };
export type Groups = Readonly<Record<string, Group>>;

const arch = architecture() ?? "x64";
/** Calls that the filter leaves alone. */
const OTHERS = {
  ptrace: { x64: 101, arm64: 117 },
  process_vm_readv: { x64: 310, arm64: 270 },
  read: { x64: 0, arm64: 63 },
  write: { x64: 1, arm64: 64 },
  munmap: { x64: 11, arm64: 215 },
  madvise: { x64: 28, arm64: 233 },
  timer_create: { x64: 222, arm64: 107 },
} as const;

/** The number of a call, to be used in a script. */
export const nr = (call: SystemCall | keyof typeof OTHERS): number =>
  call in OTHERS ? OTHERS[call as keyof typeof OTHERS][arch] : (numberOf(arch, call as SystemCall) ?? -1);

/** A program in Perl, which makes system calls by their numbers; it must not hold an apostrophe. */
export const perl = (program: string): string => `perl -MSocket -e '${program}' && echo SUCCESS`;

/** True if the directory has changed. */
const changes =
  (before: string) =>
  (arena: Arena): boolean =>
    arena.snapshot() !== before;

/** True if the attack has succeeded. */
export const hasSucceeded = (
  attack: Attack,
  group: Group,
  arena: Arena,
  before: string,
  output: string,
): boolean => {
  if (attack.succeeded !== undefined) return attack.succeeded(arena);
  const says = /^SUCCESS$/m.test(output);
  return group.changesFiles && !attack.script.includes("SUCCESS") ? changes(before)(arena) : says;
};
