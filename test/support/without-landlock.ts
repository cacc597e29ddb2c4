/**
 * Owns: the simulation of a host without Landlock. As in a container, a system-call filter applies to a process and its
 * descendants.
 */
import { filterStep } from "../../sandbox/filter.ts";
import { architecture, numberOf, type SystemCall } from "../../sandbox/system-calls.ts";

const arch = architecture() ?? "x64";
const number = (call: SystemCall): number => numberOf(arch, call) ?? 0;

/** The calls of Landlock end with this error. */
const ENOSYS = 38;
const NO_NEW_PRIVS = 38;

/** A command that puts itself under the filter and then executes the command that follows. */
export function withoutLandlock(): readonly string[] {
  const { args } = filterStep(arch, [{ number: number("landlock_create_ruleset"), errno: ENOSYS }]);
  const program = args.find((arg) => typeof arg === "object" && "program" in arg);
  if (program === undefined) throw new Error("the filter has no program");
  const script = `
    my $program = pack("H*", shift);
    my $filter = pack("S x6 P", length($program) / 8, $program);
    syscall(${number("prctl")}, ${NO_NEW_PRIVS}, 1, 0, 0, 0) == 0 or die "no_new_privs: $!";
    syscall(${number("seccomp")}, 1, 0, $filter) == 0 or die "seccomp: $!";
    exec @ARGV or die "exec: $!";`;
  return ["perl", "-e", script, Buffer.from(program.program).toString("hex")];
}
