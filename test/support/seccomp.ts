/** Owns: a process under a filter of system calls, as a container has one. It holds for its descendants, too. */
import { filterStep } from "../../sandbox/filter.ts";
import { architecture, numberOf, type SystemCall } from "../../sandbox/system-calls.ts";

const arch = architecture() ?? "x64";
const number = (call: SystemCall): number => numberOf(arch, call) ?? 0;

const NO_NEW_PRIVS = 38;

/**
 * A command that puts itself under the filter and then executes the command that follows.
 *
 * @param denied each call with the number of the error that it ends with
 */
export function underFilter(
  denied: readonly (readonly [call: SystemCall, errno: number])[],
): readonly string[] {
  // A call that this architecture does not have needs no rule.
  const rules = denied.flatMap(([call, errno]) => {
    const known = numberOf(arch, call);
    return known === undefined ? [] : [{ number: known, errno }];
  });
  const { args } = filterStep(arch, rules);
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
