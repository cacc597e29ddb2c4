/**
 * Owns: the form in which the launcher gets a confinement: system calls with their arguments. The process that becomes
 * the command makes them in order. The launcher only makes them; this file and its importers decide what they mean.
 */
import { numberOf, type Architecture, type SystemCall } from "./system-calls.ts";

/**
 * In a filter program, stands for the process id of the parent of the process that makes the call. It is larger than
 * any id. Its negative stands for the negative of that id.
 */
export const PARENT = 0x7fff_fffe;

type Argument =
  | number
  /** The address of these bytes. */
  | { readonly bytes: Uint8Array }
  /** What an earlier step returned. */
  | { readonly result: string }
  /** The address of these bytes, followed by what an earlier step returned (s32). */
  | { readonly bytes: Uint8Array; readonly result: string }
  /**
   * The address of these bytes, followed by the descriptor (s32) of a file that is opened with `flags`. The call is
   * made once for each of the paths that can be opened, and no result is kept. A step has one such argument at most.
   */
  | { readonly bytes: Uint8Array; readonly paths: readonly Uint8Array[]; readonly flags: number }
  /** The address of a `struct sock_fprog` of these instructions. */
  | { readonly program: Uint8Array };

export type Syscall = {
  readonly call: SystemCall;
  readonly args: readonly Argument[];
  /** The name under which later steps find what it returns. */
  readonly keep?: string;
  /**
   * The call may fail; then steps that need its result are left out. A failure of any other step keeps the command from
   * running.
   */
  readonly optional?: true;
};

/** A step as one line, for launcher.pl. */
export function encodeSyscall(step: Syscall, arch: Architecture): string {
  const number = numberOf(arch, step.call);
  if (number === undefined) throw new Error(`There is no ${step.call} on ${arch}.`);
  const name = `${step.optional === true ? "?" : ""}${step.call}`;
  return [name, number, step.keep ?? "-", ...step.args.map(encodeArgument)].join(" ");
}

function encodeArgument(argument: Argument): string {
  if (typeof argument === "number") return `i${argument}`;
  if ("program" in argument) return `f${hex(argument.program)}`;
  if (!("bytes" in argument)) return `=${argument.result}`;
  if ("paths" in argument)
    return `p${hex(argument.bytes)}=${argument.flags}=${argument.paths.map(hex).join("=")}`;
  return "result" in argument ? `x${hex(argument.bytes)}=${argument.result}` : `x${hex(argument.bytes)}`;
}

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString("hex");
