/**
 * Owns: the tests of the attacks that Restricted mode blocks, and of the commands that work in it. Each attack is made
 * for real, on every version of Landlock that this kernel can play, and once in Unrestricted mode, where it succeeds.
 */
import { spawnSync } from "node:child_process";
import { readdirSync, readlinkSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test, type TestContext } from "vitest";
import { confinement, type Confinement } from "../../sandbox/confinement.ts";
import { filterStep } from "../../sandbox/filter.ts";
import { hostSandbox } from "../support/host-sandbox.ts";
import type { Syscall } from "../../sandbox/syscall.ts";
import { architecture, numberOf } from "../../sandbox/system-calls.ts";
import { until } from "../support/waiting.ts";
import { Arena } from "./arena.ts";
import { hasSucceeded, type Attack, type Groups } from "./attack.ts";
import { ATTACKS } from "./attacks.ts";
import { ATTACKS_ON_MEMORY } from "./attacks-on-memory.ts";
import { ATTACKS_ON_NEIGHBOURS } from "./attacks-on-neighbours.ts";

const arch = architecture() ?? "x64";

const has = (program: string): boolean => spawnSync("which", [program]).status === 0;

const GROUPS: Groups = { ...ATTACKS, ...ATTACKS_ON_NEIGHBOURS, ...ATTACKS_ON_MEMORY };

const ROOT = join(import.meta.dirname, "..", "..");
/** Beside bash itself. */
const MOST_PROCESSES = 248;
const AT_FDCWD = -100;
const O_WRONLY = 1;

/** Processes that run in this directory. */
function processesIn(dir: string): string[] {
  return readdirSync("/proc").filter((pid) => {
    try {
      return /^\d+$/.test(pid) && readlinkSync(`/proc/${pid}/cwd`) === dir;
    } catch {
      return false;
    }
  });
}

/** Steps under which Landlock fails with this error, as in a container that filters the calls. */
function withoutLandlock(errno: number): Syscall[] {
  const number = numberOf(arch, "landlock_create_ruleset") ?? 0;
  return [{ call: "prctl", args: [38, 1, 0, 0, 0] }, filterStep(arch, [{ number, errno }])];
}

/** Why the attack cannot be made here in any mode, so that its failure in Restricted mode would show nothing; or null. */
async function whatIsMissing({
  script,
  needs,
  onlyRoot,
  onlyIf,
  mayBeMissing,
}: Attack): Promise<string | null> {
  if (needs !== undefined && !has(needs)) return `there is no ${needs}`;
  if (onlyRoot === true && process.getuid?.() !== 0) return "only root can do it";
  const probe = mayBeMissing === true ? script : onlyIf;
  if (probe === undefined) return null;
  const { exitCode, output } = await (await Arena.open()).run(probe, null);
  return exitCode === 0
    ? null
    : `it fails in Unrestricted mode, too: ${output.trim().split("\n").at(-1) ?? ""}`;
}

/** Skips the test and prints why. */
function skipped({ task, skip }: TestContext, why: string): never {
  console.warn(`SKIPPED, ${task.name}: ${why}`);
  return skip(why);
}

/** Defines the tests, for the user of this process. Call it where tests are defined. */
export async function attackSuite(): Promise<void> {
  const { available, abi, reason } = await hostSandbox();
  if (!available) console.warn(`SKIPPED, all attacks on Restricted mode: ${reason ?? ""}`);
  const newest = abi ?? 0;
  const versions = Array.from({ length: newest }, (_, n) => newest - n);
  const confined = (arena: Arena, version = newest): Confinement =>
    confinement({ arch, abi: version, hidden: [arena.own] });

  describe.skipIf(!available)("Restricted mode", () => {
    for (const [name, group] of Object.entries(GROUPS)) {
      describe(name, () => {
        const attacks = group.attacks.map((attack) => [attack.name, attack] as const);
        test.for(attacks)("%s", async ([, attack], context) => {
          const missing = await whatIsMissing(attack);
          if (missing !== null) skipped(context, missing);
          const arena = await Arena.open();
          const before = arena.snapshot();
          for (const version of versions) {
            const { output, spawnError } = await arena.run(attack.script, confined(arena, version));
            const came = hasSucceeded(attack, group, arena, before, output);
            expect({
              version,
              came,
              spawnError,
              changed: arena.snapshot() !== before,
              heard: arena.heard,
            }).toEqual({
              version,
              came: false,
              spawnError: null,
              changed: false,
              heard: 0,
            });
            expect(arena.victimIsAlive).toBe(true);
          }
          const { output } = await arena.run(attack.script, null);
          expect({ output, came: hasSucceeded(attack, group, arena, before, output) }).toMatchObject({
            came: true,
          });
        });
      });
    }

    test.each([
      ...["2. attributes", "3. network and sockets", "5. other namespaces"],
      ...["11. locks", "14. scarce resources", "15. memory that no process owns"],
    ])("without the filter at least one attack succeeds: %s", async (name) => {
      const group = GROUPS[name];
      if (group === undefined) throw new Error(`no group ${name}`);
      const through: string[] = [];
      for (const attack of group.attacks) {
        const arena = await Arena.open();
        const before = arena.snapshot();
        const { output } = await arena.run(
          attack.script,
          confinement({ arch, abi: newest, withoutFilter: true }),
        );
        if (hasSucceeded(attack, group, arena, before, output)) through.push(attack.name);
      }
      expect(through).not.toEqual([]);
    });

    test("5. a descriptor that was left open for the command is closed", async () => {
      const arena = await Arena.open();
      const before = arena.snapshot();
      const { steps, ...rest } = confined(arena);
      const file = Buffer.from(`${join(arena.dir, "one")}\0`);
      const leak: Syscall = { call: "openat", args: [AT_FDCWD, { bytes: file }, O_WRONLY, 0] };
      // The number of the descriptor is not known, because the launcher has some of its own.
      const script = "for n in {3..20}; do echo x >&$n; done; echo ran";
      const { output } = await arena.run(script, { ...rest, steps: [leak, ...steps] });
      expect(output).toMatch(/Bad file descriptor/);
      expect(output).toMatch(/^ran$/m);
      expect(arena.snapshot()).toBe(before);
      // Without the steps that close it, the descriptor is a way to write.
      const open = steps.filter(({ call }) => call !== "close_range" && call !== "prlimit64");
      await arena.run(script, { ...rest, steps: [leak, ...open] });
      expect(arena.snapshot()).not.toBe(before);
    });

    describe("6. resource limits", () => {
      test("a fork bomb ends at the limit on processes", async () => {
        const arena = await Arena.open();
        const limits = { processes: 64, neighbours: 0 };
        const bomb = "bomb() { bomb | bomb & }; bomb; sleep 2";
        const { output } = await arena.run(bomb, confinement({ arch, abi: newest, limits }), {
          timeoutMs: 4_000,
        });
        expect(output).toContain("Resource temporarily unavailable");
        expect(processesIn(arena.dir)).toEqual([]);
      });

      test("commands at once do not take each other's processes", async () => {
        const script = "for n in $(seq 200); do sleep 1 & done; wait; echo done";
        const arenas = await Promise.all(Array.from({ length: 3 }, () => Arena.open()));
        const results = await Promise.all(arenas.map((arena) => arena.run(script, confined(arena))));
        expect(results.map(({ output }) => output)).toEqual(["done\n", "done\n", "done\n"]);
      });

      test("several processes that take memory together are ended together", async () => {
        const arena = await Arena.open();
        const limits = { memoryBytes: 300_000_000 };
        const hog = `perl -e '$x = "x" x 100_000_000; sleep 60'`;
        const result = await arena.run(
          `${hog} & ${hog} & ${hog} & ${hog} & wait`,
          confinement({ arch, abi: newest, limits }),
        );
        expect(result).toMatchObject({ outOfMemory: true, exitCode: null });
        expect(processesIn(arena.dir)).toEqual([]);
      });

      test("one process that takes too much memory is refused it", async () => {
        const arena = await Arena.open();
        const limits = { dataBytes: 200_000_000 };
        const { output } = await arena.run(
          `perl -e '$x = "x" x 400_000_000; print "SUCCESS"'`,
          confinement({ arch, abi: newest, limits }),
        );
        expect(output).toMatch(/Out of memory/);
      });

      test("a spinner dies at its limit on CPU time", async () => {
        const arena = await Arena.open();
        const limits = { cpuSeconds: 1 };
        const result = await arena.run("while :; do :; done", confinement({ arch, abi: newest, limits }));
        expect(result).toMatchObject({ exitCode: null, timedOut: false });
        expect(["SIGXCPU", "SIGKILL"]).toContain(result.signal);
      });
    });

    test("7. a Stop leaves no process, whatever the command did", async () => {
      const arena = await Arena.open();
      const tree = `sleep 1000 & (trap "" TERM; while :; do sleep 0.1; done) & setsid sleep 1000 & nohup yes > /dev/null & (setsid sleep 1000 &); kill -9 $PPID; wait`;
      const controller = new AbortController();
      const running = arena.run(tree, confined(arena), { signal: controller.signal });
      await until(() => processesIn(arena.dir).length >= 6);
      controller.abort();
      expect(await running).toMatchObject({ aborted: true });
      expect(processesIn(arena.dir)).toEqual([]);
    });

    test.each([
      [
        "as many processes as it may have",
        `for n in $(seq ${MOST_PROCESSES}); do sleep 1000 & done; echo up; wait`,
      ],
      ["one that forks while it is killed", "(while :; do sleep 1000 & done 2> /dev/null) & echo up; wait"],
      [
        "one that closes its pipes and lives on",
        "echo up; exec >&- 2>&-; (setsid sleep 1000 &); exec sleep 1000",
      ],
    ])("7. a Stop leaves no process: %s", async (_kind, script) => {
      const arena = await Arena.open();
      const controller = new AbortController();
      const running = arena.run(script, confined(arena), {
        signal: controller.signal,
        onOutput: () => controller.abort(),
      });
      expect(await running).toMatchObject({ aborted: true, output: "up\n" });
      expect(processesIn(arena.dir)).toEqual([]);
    });

    test("7. a flood of 10 GB is ended, in flat memory", async () => {
      const arena = await Arena.open();
      const before = process.memoryUsage().rss;
      let most = before;
      const result = await arena.run("yes 'a line of output' | head -c 10G", confined(arena), {
        timeoutMs: 60_000,
        onOutput: () => (most = Math.max(most, process.memoryUsage().rss)),
      });
      expect(result).toMatchObject({ flooded: true, truncated: true });
      expect(most - before).toBeLessThan(100_000_000);
      expect(processesIn(arena.dir)).toEqual([]);
    });

    test("8. a process in the background ends with its command", async () => {
      const arena = await Arena.open();
      expect(await arena.run("sleep 999 & echo x", confined(arena))).toMatchObject({
        output: "x\n",
        exitCode: 0,
      });
      expect(processesIn(arena.dir)).toEqual([]);
    });

    test.each([1, 38])("9. where Landlock cannot be applied (errno %i), bash never runs", async (errno) => {
      const arena = await Arena.open();
      const { steps, ...rest } = confined(arena);
      const result = await arena.run("echo ran", { ...rest, steps: [...withoutLandlock(errno), ...steps] });
      expect(result.spawnError).toMatch(/The sandbox cannot be applied \(landlock_create_ruleset/);
      expect(result).toMatchObject({ exitCode: null, output: "" });
    });

    test.for([
      ["git status --short", undefined],
      ["git log --oneline -3", undefined],
      ["git diff --stat", undefined],
      ["rg -c confinement sandbox", "rg"],
      ["node -e 'console.log(1)'", undefined],
      ["npm ls --depth=0", undefined],
      ["python3 -c 'print(1)'", "python3"],
      ["ps -e", "ps"],
      ["seq 8 | xargs -P4 -n1 echo", undefined],
      ["sleep 0.05 & wait %1; diff <(echo a) <(echo a) && cat <<< x", undefined],
      ["timeout 5 true && head -c 3 /dev/urandom > /dev/null", undefined],
      ["ls / .. $OWN $OWN/.. > /dev/null && cat $OWN/../one $OWN/../folder/../two", undefined],
      ["echo x > /dev/stderr && echo y | tee /dev/stdout | cat", undefined],
      ["timeout 0.3 tail -n 1 -f package.json; [ $? = 124 ]", undefined],
      [
        `node -e 'require("child_process").spawn("node", ["-e", "process.send(1)"], { stdio: [0, 1, 2, "ipc"] }).once("message", console.log)' | grep 1`,
        undefined,
      ],
    ] as const)("10. works in Restricted mode: %s", async ([command, needs], context) => {
      if (needs !== undefined && !has(needs)) skipped(context, `there is no ${needs}`);
      const arena = await Arena.open();
      for (const version of versions) {
        const result = await arena.run(`cd ${ROOT} && ${command}`, confined(arena, version));
        expect({ version, ...result }).toMatchObject({ version, exitCode: 0 });
      }
    });
  });
}
