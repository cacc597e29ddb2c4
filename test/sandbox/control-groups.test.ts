/**
 * Control groups, where this host has them for this user. Commands run in groups of their own, which count memory and
 * processes and cannot be left. The groups are removed, also after a worker that could not do it.
 */
import { randomUUID } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { runCommand, type Command, type CommandResult } from "../../sandbox/command.ts";
import { confinement, type Confinement } from "../../sandbox/confinement.ts";
import { openControlGroups } from "../../sandbox/control-groups.ts";
import { confine } from "../../sandbox/host.ts";
import { hostSandbox } from "../support/host-sandbox.ts";
import { LIMITS, type Limits } from "../../sandbox/limits.ts";
import { architecture } from "../../sandbox/system-calls.ts";
import { survivors } from "../support/processes.ts";
import { until } from "../support/waiting.ts";
import { KEEPER, LAUNCHER, startWorker, tracing } from "./doomed.ts";

const MIB = 1024 ** 2;
const [READ, MMAP, MADVISE] = process.arch === "arm64" ? [63, 222, 233] : [0, 9, 28];
const { abi, reason } = await hostSandbox();
const arch = architecture();
const confined = (limits: Partial<Limits> = {}, more: { withoutFilter?: true } = {}): Confinement => {
  if (abi === null || arch === null) throw new Error(reason ?? "no sandbox");
  return confinement({ arch, abi, limits, ...more });
};

/** The control groups that this host offers, opened as a worker does and removed again. */
const had = (() => {
  const groups = openControlGroups();
  const limited = groups.of(LIMITS);
  for (const directory of groups.directories) rmdirSync(directory);
  return {
    kill: groups.of(null).map(({ parent }) => dirname(parent)),
    memory: limited.some(({ events }) => events !== null),
    processes: limited.some(({ settings }) => settings.some((setting) => setting.startsWith("pids."))),
  };
})();
if (had.kill.length === 0) console.warn("SKIPPED, control groups: there are none for this user.");
if (!had.memory) console.warn("SKIPPED, control groups of memory: there are none for this user.");

const run = (
  script: string,
  limits: Confinement | null,
  changes: Partial<Command> = {},
): Promise<CommandResult> =>
  runCommand({
    argv: ["bash", "-c", script],
    cwd: "/",
    env: { PATH: process.env["PATH"] ?? "" },
    confinement: limits,
    signal: new AbortController().signal,
    timeoutMs: 30_000,
    limitBytes: 10_000,
    ...changes,
  });

describe.runIf(had.kill.length > 0)("a command", () => {
  test("runs in a group of its own, in both modes, and leaves none behind", async () => {
    for (const mode of [null, await confine()]) {
      if (typeof mode === "string") continue;
      const { output } = await run("cat /proc/self/cgroup", mode);
      const [, name = ""] = /^0::.*\/(bedrock-[^/]+)\/[^/]+$/m.exec(output) ?? [];
      expect(name).not.toBe("");
    }
    const { output } = await run("grep ^0: /proc/self/cgroup", null);
    await until(() => !existsSync(join("/sys/fs/cgroup", output.slice(3).trim())));
  });

  test("of Restricted mode cannot leave its group", async () => {
    const mode = await confine();
    if (typeof mode === "string") return;
    const files = "/sys/fs/cgroup/cgroup.procs /sys/fs/cgroup/*/cgroup.procs /sys/fs/cgroup/*/tasks";
    const script = `before=$(cat /proc/self/cgroup); for f in ${files}; do echo $$ > $f; echo 0 > $f; done 2> /dev/null
      after=$(cat /proc/self/cgroup); [ "$before" = "$after" ] && echo stayed`;
    expect((await run(script, mode)).output).toBe("stayed\n");
  });

  test("that follows one that was killed in the same group lives", async () => {
    const mode = await confine();
    if (typeof mode === "string") return;
    for (let n = 0; n < 3; n++) {
      const controller = new AbortController();
      const killed = run("echo up; sleep 300", mode, {
        signal: controller.signal,
        onOutput: () => controller.abort(),
      });
      expect(await killed).toMatchObject({ aborted: true });
      expect(await run("echo here", mode)).toMatchObject({ exitCode: 0, output: "here\n" });
    }
  });
});

describe.runIf(had.kill.length > 0)("a command that disables its supervisor, launcher and keeper", () => {
  const all = `${KEEPER} ${LAUNCHER} $PPID`;
  const unrestricted = (script: string, mark: string, changes: Partial<Command>) =>
    run(script, null, { env: { PATH: process.env["PATH"] ?? "", MARK: mark }, ...changes });

  test("by tracing them ends with a Stop", async () => {
    const mark = randomUUID();
    const controller = new AbortController();
    await unrestricted(tracing(all), mark, {
      signal: controller.signal,
      onOutput: () => controller.abort(),
    });
    expect(survivors(mark)).toEqual([]);
  });

  test("by killing them ends with them", async () => {
    const mark = randomUUID();
    const result = await unrestricted(`setsid sleep 300 & sleep 300 & kill -KILL ${all}; wait`, mark, {});
    expect(result).toMatchObject({ exitCode: null, signal: "SIGKILL" });
    await until(() => survivors(mark).length === 0);
    expect(await run("echo here", null)).toMatchObject({ exitCode: 0, output: "here\n" });
  });
});

describe.runIf(had.processes && abi !== null)("processes", () => {
  test("are limited by the group", async () => {
    const { output } = await run(
      "d=$(grep :pids: /proc/self/cgroup | cut -d: -f3); cat /sys/fs/cgroup/pids$d/pids.max || cat /sys/fs/cgroup$(grep ^0: /proc/self/cgroup | cut -d: -f3)/pids.max",
      confined({ processes: 77 }),
    );
    expect(output).toMatch(/^77$/m);
  });
});

describe.runIf(had.memory && abi !== null)("memory", () => {
  const limits = { memoryBytes: 100 * MIB };
  /** Without the filter, which denies some ways: the group has to hold without it, too. */
  const unfiltered = (): Confinement => confined(limits, { withoutFilter: true });

  test("that is in no process is counted: shared pages that were given back", async () => {
    // 400 MiB of anonymous shared memory, touched and given back piece by piece.
    const result = await run(
      `perl -e '
        open(Z, "<", "/dev/zero"); my $p = syscall(${MMAP}, 0, 400 << 20, 3, 0x21, -1, 0);
        for (map { $_ << 20 } 0 .. 399) {
          syscall(${READ}, fileno(Z), $p + $_, 1 << 20); syscall(${MADVISE}, $p + $_, 1 << 20, 4) == 0 or die $!;
        }
        print "HELD"; sleep 60'`,
      unfiltered(),
    );
    expect(result).toMatchObject({ outOfMemory: true, exitCode: null, output: "" });
  });

  test("that is in no process is counted: the buffers of sockets", async () => {
    const attack = `perl -MSocket -MFcntl -e '
      for (1 .. 450) {
        socketpair(my $a, my $b, AF_UNIX, SOCK_STREAM, 0) or last; push @kept, $a, $b;
        for my $s ($a, $b) { setsockopt($s, SOL_SOCKET, SO_SNDBUF, pack("l", 4 << 20)); fcntl($s, F_SETFL, O_NONBLOCK); 1 while syswrite($s, "x" x 65536) }
      }
      print "HELD"; sleep 60'`;
    const result = await run(`exec 2> /dev/null; ${attack} & ${attack} & wait`, unfiltered());
    expect(result).toMatchObject({ outOfMemory: true, exitCode: null, output: "" });
  });

  test("below the limit is granted again and again, whatever was killed in the group before", async () => {
    const hog = (megabytes: number): string =>
      `perl -e '$x = "x" x (${megabytes} << 20); print length($x) >> 20'`;
    expect(await run(hog(200), confined(limits))).toMatchObject({ outOfMemory: true });
    for (let n = 0; n < 3; n++) {
      expect(await run(`${hog(40)}; sleep 300 & kill -9 $!`, confined(limits))).toMatchObject({
        outOfMemory: false,
        exitCode: 0,
        output: "40",
      });
    }
  });

  test("is reported as exhausted although only a child was killed for it and its parent went on", async () => {
    const result = await run(`perl -e '$x = "x" x (200 << 20)'; echo went on`, confined(limits));
    expect(result).toMatchObject({ outOfMemory: true, exitCode: null });
  });
});

describe.runIf(had.kill.length > 0)("a control group that a worker leaves behind", () => {
  const directoriesOf = (worker: number): string[] =>
    had.kill.flatMap((base) =>
      readdirSync(base)
        .filter((name) => name.split("-")[2] === String(worker))
        .map((name) => join(base, name)),
    );

  test("is killed and removed by the next worker; the group of a living worker is left alone", async () => {
    const [dead, alive] = await Promise.all([
      startWorker("setsid sleep 300 & echo up; sleep 300", "unrestricted"),
      startWorker("echo up; sleep 300", "unrestricted"),
    ]);
    // Kills from the command upwards, while the processes above it are stopped and cannot react.
    const { supervisor, launcher, keeper } = dead.ancestors;
    expect(directoriesOf(dead.pid)).not.toEqual([]);
    for (const pid of [dead.pid, keeper, launcher]) process.kill(pid, "SIGSTOP");
    for (const pid of [supervisor, launcher, keeper, dead.pid]) process.kill(pid, "SIGKILL");
    const next = await startWorker("echo up; sleep 300", "unrestricted");
    await until(() => survivors(dead.mark).length === 0 && directoriesOf(dead.pid).length === 0);
    expect(directoriesOf(alive.pid)).toHaveLength(1);
    expect(survivors(alive.mark)).not.toEqual([]);

    alive.kill();
    next.kill();
    await Promise.all([alive.isGone(), next.isGone()]);
    await until(() => [alive, next].every(({ pid }) => directoriesOf(pid).length === 0));
  });
});

describe.runIf(process.getuid?.() === 0 && had.kill.length > 0)("a host without usable groups", () => {
  test("runs and ends commands without them when their file system is read-only", async () => {
    const script = `for d in $(awk '$3 ~ /^cgroup/ {print $2}' /proc/mounts); do mount -o remount,bind,ro $d; done; exec "$@"`;
    const worker = await startWorker("cat /proc/self/cgroup; echo up; sleep 300", "unrestricted", {
      through: ["unshare", "-m", "bash", "-c", script, "bash"],
    });
    expect(worker.output).not.toContain("bedrock-");
    worker.kill();
    await worker.isGone();
  });

  test("runs commands in the worker's group when that was killed once: forks into new groups would die", async () => {
    const [base = ""] = had.kill;
    const group = join(base, `killed-${randomUUID()}`);
    mkdirSync(group);
    onTestFinished(async () => {
      await until(() => readFileSync(join(group, "cgroup.events"), "utf8").includes("populated 0"));
      rmdirSync(group);
    });
    writeFileSync(join(group, "cgroup.kill"), "1");
    const worker = await startWorker("cat /proc/self/cgroup; echo up; sleep 300", "unrestricted", {
      through: ["bash", "-c", `echo $$ > ${group}/cgroup.procs; exec "$@"`, "bash"],
    });
    expect(worker.output).toContain(basename(group));
    worker.kill();
    await worker.isGone();
  });
});
