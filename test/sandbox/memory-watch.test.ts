/** The memory of a Restricted command that no control group counts: its supervisor adds up what it can see. */
import { spawnSync } from "node:child_process";
import { totalmem } from "node:os";
import { describe, expect, test } from "vitest";
import { runCommand, type CommandResult } from "../../sandbox/command.ts";
import { confinement } from "../../sandbox/confinement.ts";
import { disableControlGroups } from "../../sandbox/control-groups.ts";
import { hostSandbox } from "../support/host-sandbox.ts";
import { LIMITS, type Limits } from "../../sandbox/limits.ts";
import { architecture } from "../../sandbox/system-calls.ts";

disableControlGroups();
const { abi, reason } = await hostSandbox();
const arch = architecture();
if (abi === null) console.warn(`SKIPPED, the watch on memory: ${reason ?? ""}`);
const MIB = 1024 ** 2;
const EXIT = arch === "arm64" ? 93 : 60;
const hasThreads = spawnSync("perl", ["-Mthreads", "-e", "1"]).status === 0;

function run(script: string, limits: Partial<Limits>): Promise<CommandResult> {
  if (abi === null || arch === null) throw new Error(reason ?? "no sandbox");
  return runCommand({
    argv: ["bash", "-c", script],
    cwd: "/",
    env: { PATH: process.env["PATH"] ?? "" },
    confinement: confinement({ arch, abi, limits }),
    signal: new AbortController().signal,
    timeoutMs: 30_000,
    limitBytes: 10_000,
  });
}

describe.skipIf(abi === null)("a command", () => {
  const hog = `perl -e '$x = "x" x (60 << 20); sleep 60'`;
  const pairs = `perl -MSocket -e 'for (1 .. 200) { socketpair(my $a, my $b, AF_UNIX, SOCK_STREAM, 0); push @kept, $a, $b } sleep 60'`;

  test("whose processes take too much together is ended", async () => {
    const result = await run(`${hog} & ${hog} & ${hog} & wait`, { memoryBytes: 150 * MIB });
    expect(result).toMatchObject({ outOfMemory: true, exitCode: null });
  });

  test("that opens so many files that sockets could hold too much is ended", async () => {
    const watch = { ...LIMITS.watch, files: 100 };
    const result = await run(`${pairs} & ${pairs} & wait`, { memoryBytes: 150 * MIB, watch });
    expect(result).toMatchObject({ outOfMemory: true, exitCode: null });
  });

  test.skipIf(!hasThreads)("whose first thread has ended is counted by the others", async () => {
    const script = `perl -Mthreads -e 'threads->create(sub { select undef, undef, undef, 0.3; $x = "x" x ($ARGV[0] << 20); sleep 60 }); syscall(${EXIT}, 0)' 200`;
    const result = await run(script, { memoryBytes: 150 * MIB });
    expect(result).toMatchObject({ outOfMemory: true, exitCode: null });
  });

  test("is ended when the machine has too little left, whoever took it", async () => {
    const watch = { ...LIMITS.watch, availableBytes: 2 * totalmem() };
    expect(await run("sleep 60", { watch })).toMatchObject({ outOfMemory: true, exitCode: null });
  });

  test("that stays within its share of memory and files ends by itself", async () => {
    const modest = `perl -e '$x = "x" x (30 << 20); select undef, undef, undef, 0.3'`;
    const result = await run(`${modest} & ${modest} & wait; echo done`, { memoryBytes: 150 * MIB });
    expect(result).toMatchObject({ outOfMemory: false, exitCode: 0, output: "done\n" });
  });

  test("is the first to be killed when the machine runs out of memory", async () => {
    expect(await run("cat /proc/self/oom_score_adj", {})).toMatchObject({ output: "1000\n" });
  });
});
