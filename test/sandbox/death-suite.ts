/**
 * Owns: the tests of REQ-BED-005: whatever a command started, and for whatever reason it has to die, none of its
 * processes is left when its result is known. The tests find processes by a mark in their environment, which they
 * cannot shed by leaving their parents. Not here: how long it takes (bench/sandbox.ts).
 */
import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { describe, expect, onTestFinished, test } from "vitest";
import { runCommand, type CommandResult } from "../../sandbox/command.ts";
import { disableControlGroups } from "../../sandbox/control-groups.ts";
import { confine } from "../../sandbox/host.ts";
import { hostSandbox } from "../support/host-sandbox.ts";
import { survivors } from "../support/processes.ts";
import {
  ANCESTORS,
  ancestorsIn,
  KEEPER,
  LAUNCHER,
  startWorker,
  stopping,
  tracing,
  type Groups,
  type Mode,
} from "./doomed.ts";

/** Without control groups it matters what each kind did. With them the kernel kills all kinds alike. */
type Kinds = "each kind by itself" | "all kinds together";

/** Each script says "up" when it runs. Afterwards the command waits or ends, as the reason demands. */
const CHILDREN: Readonly<Record<string, string>> = {
  "a background job": "sleep 300 & echo up",
  "a nohup": "nohup sleep 300 > /dev/null 2>&1 & echo up",
  "a session of its own": "setsid sleep 300 & echo up",
  "a re-parented daemon": "(setsid sleep 300 &); echo up",
  "a double fork": "( ( setsid bash -c 'sleep 300 & wait' & ) & ); echo up",
  "one that traps signals": `(trap "" TERM INT HUP; while :; do sleep 0.05; done) & echo up`,
  "one that holds the pipe":
    "exec 3>&1; read -r _ < <(setsid bash -c 'echo up >&3; echo ready; exec sleep 300')",
  "a stopped one": "sleep 300 & kill -STOP $!; echo up",
  "one that closed everything": "(setsid bash -c 'exec sleep 300' <&- >&- 2>&- &); echo up",
  "a spinner": "(while :; do :; done) & echo up",
  "a deep tree": "f() { [ $1 = 0 ] && exec sleep 300; (f $(($1 - 1))) & wait; }; (f 12) & sleep 0.1; echo up",
  "one that stops its supervisor": "kill -STOP $PPID; echo up",
  "one that forks without end": `sleep 0.05 & (while :; do sleep 300 & done) & wait %1; echo up`,
};
const { "one that forks without end": BOMB, "a spinner": _spinner, ...CALM } = CHILDREN;
const CALM_TREE = Object.values(CALM).join("\n");

const STOP_LOOPS = stopping("$PPID");

/** Milliseconds: on a busy machine a tree takes more than one second to start. */
const TIME_MS = 2_500;

const REASONS = ["its command ends", "a cancel", "the time is over"] as const;

/** Runs a script under a mark of its own. Where the reason is a cancel, it comes when the script has said "up". */
async function runUntil(
  reason: (typeof REASONS)[number],
  { script, ...options }: { readonly script: string; readonly mode: Mode; readonly timeoutMs: number },
) {
  const mark = randomUUID();
  const controller = new AbortController();
  const result = await run(mark, script, {
    ...options,
    signal: controller.signal,
    onOutput: (text) => {
      if (reason === "a cancel" && text.includes("up")) controller.abort();
    },
  });
  return { mark, result };
}

/** Defines the tests, for the user of this process. */
export async function deathSuite(groups: Groups, kinds: Kinds): Promise<void> {
  if (groups === "without control groups") disableControlGroups();
  const { available, reason: missing } = await hostSandbox();
  if (!available) console.warn(`SKIPPED, deaths in Restricted mode: ${missing ?? ""}`);
  const modes: readonly Mode[] = available ? ["unrestricted", "restricted"] : ["unrestricted"];
  const worker = (script: string, mode: Mode) => startWorker(script, mode, { groups });

  const single = kinds === "each kind by itself" ? Object.entries(CHILDREN) : [];
  describe.each(modes.flatMap((mode) => single.map(([kind, child]) => [mode, kind, child] as const)))(
    "%s: %s",
    (mode, _kind, child) => {
      test.each(REASONS)("dies after %s", async (reason) => {
        const { mark, result } = await runUntil(reason, {
          mode,
          script: reason === "its command ends" ? child : `${child}; sleep 300`,
          timeoutMs: reason === "the time is over" ? TIME_MS : 60_000,
        });
        expect(survivors(mark)).toEqual([]);
        expect(result.output).toContain("up");
        // A fork bomb whose user has other programs gets their places, too, and may be out of memory before its time.
        const byMemory = child === BOMB && result.outOfMemory;
        expect(result).toMatchObject({
          aborted: reason === "a cancel",
          timedOut: reason === "the time is over" && !byMemory,
        });
      });

      test("dies after the worker is killed", async () => {
        const doomed = await worker(`${child}; sleep 300`, mode);
        doomed.kill();
        await doomed.isGone();
      });
    },
  );

  describe.each(
    modes.flatMap((mode) =>
      Object.entries({
        "all that leave their parents": CALM_TREE,
        "four that stop their supervisor again and again": STOP_LOOPS,
        "one that holds its supervisor by tracing it": tracing("$PPID"),
      }).map(([kind, child]) => [mode, kind, child] as const),
    ),
  )("%s: %s", (mode, _kind, child) => {
    test.each(REASONS)("no process is left when the result is known: %s", async (reason) => {
      const { mark, result } = await runUntil(reason, {
        mode,
        script: reason === "its command ends" ? `(${child}) & sleep 0.1` : `${child}; sleep 300`,
        timeoutMs: reason === "a cancel" ? 60_000 : TIME_MS,
      });
      expect(survivors(mark)).toEqual([]);
      // A command that ends so soon, or that has stopped its supervisor and is ended for it, may not have said it.
      if (reason !== "its command ends" && child === CALM_TREE) expect(result.output).toContain("up");
    });

    test.each(["supervisor", "launcher", "keeper"] as const)(
      "no process is left when the result is known: its %s is killed",
      async (victim) => {
        const mark = randomUUID();
        const result = await run(mark, `${ANCESTORS}; sleep 0.05; ${child}; sleep 300`, {
          mode,
          onOutput: (text) => {
            const ancestors = ancestorsIn(text);
            if (ancestors !== null) process.kill(ancestors[victim], "SIGKILL");
          },
        });
        expect(survivors(mark)).toEqual([]);
        // A supervisor belongs to its command alone, which may have killed it.
        expect(result).toMatchObject({ exitCode: null, aborted: victim !== "supervisor" });
      },
    );

    test("no process is left, nor supervisor, launcher and keeper: the worker is killed", async () => {
      const doomed = await worker(`${child}; sleep 300`, mode);
      doomed.kill();
      await doomed.isGone();
    });
  });

  test("a command dies with its worker although it has stopped its supervisor, launcher and keeper", async () => {
    const doomed = await worker(`kill -STOP ${KEEPER} ${LAUNCHER} $PPID; echo up; sleep 300`, "unrestricted");
    doomed.kill();
    await doomed.isGone();
  });

  test.each([
    ["the launcher", LAUNCHER],
    ["launcher and supervisor", `"${LAUNCHER} $PPID"`],
  ])("a command that stops %s again and again is ended", async (_whom, ancestors) => {
    const mark = randomUUID();
    const result = await run(mark, `${stopping(ancestors)}; sleep 300`, {});
    expect(survivors(mark)).toEqual([]);
    expect(result).toMatchObject({ exitCode: null, timedOut: false });
    expect(await run(mark, "echo here", {})).toMatchObject({ exitCode: 0, output: "here\n" });
  });

  test.each([
    ["launcher", LAUNCHER],
    ["keeper", KEEPER],
  ])(
    "commands whose %s was killed are interrupted, and the next command gets a new one",
    async (_whom, ancestor) => {
      const mark = randomUUID();
      const others = ["sleep 300", "setsid sleep 300 & sleep 300"].map((script) => run(mark, script, {}));
      expect(await run(mark, `kill -KILL ${ancestor}; sleep 300`, {})).toMatchObject({ signal: "SIGKILL" });
      for (const other of others) expect(await other).toMatchObject({ signal: "SIGKILL", aborted: true });
      expect(survivors(mark)).toEqual([]);
      expect(await run(mark, "echo here", {})).toMatchObject({ exitCode: 0, output: "here\n" });
    },
  );

  test("a launcher that a command has stopped goes on with the next command", async () => {
    const mark = randomUUID();
    await run(mark, "cut -d ' ' -f 4 /proc/$PPID/stat", {
      onOutput: (launcher) => process.kill(Number.parseInt(launcher, 10), "SIGSTOP"),
    });
    expect(await run(mark, "echo here", {})).toMatchObject({ exitCode: 0, output: "here\n" });
  });

  test.each(["SIGKILL", "SIGSTOP"] as const)(
    "a supervisor that gets a %s from outside loses no process",
    async (signal) => {
      const mark = randomUUID();
      const controller = new AbortController();
      const result = await run(
        mark,
        "(setsid sleep 300 &); (setsid bash -c 'sleep 300 & wait' &); echo $PPID up; sleep 300",
        {
          signal: controller.signal,
          onOutput: (text) => {
            process.kill(Number.parseInt(text, 10), signal);
            if (signal === "SIGSTOP") controller.abort();
          },
        },
      );
      expect(result).toMatchObject({ exitCode: null, aborted: signal === "SIGSTOP" });
      expect(survivors(mark)).toEqual([]);
    },
  );

  test("a command that kills its supervisor ends with all that it started", async () => {
    const mark = randomUUID();
    const script =
      "(setsid sleep 300 &); (setsid bash -c 'sleep 300 & wait' &); echo up; kill -9 $PPID; sleep 300";
    expect(await run(mark, script, {})).toMatchObject({ output: "up\n", signal: "SIGKILL" });
    expect(survivors(mark)).toEqual([]);
  });

  test("twenty commands that stop their supervisor die with their workers on a busy machine", async () => {
    const load = Array.from({ length: 4 }, () => spawn("bash", ["-c", "while :; do :; done"]));
    onTestFinished(() => load.forEach((spinner) => spinner.kill("SIGKILL")));
    const doom = async (script: string): Promise<void> => {
      const doomed = await worker(`${script}; sleep 300`, "unrestricted");
      doomed.kill();
      await doomed.isGone();
    };
    const once = "kill -STOP $PPID; echo up";
    for (let n = 0; n < 5; n++) await Promise.all([once, once, once, STOP_LOOPS].map(doom));
  });

  test("a hundred trees, four at a time, leave no survivor", { timeout: 120_000 }, async () => {
    const doom = async (): Promise<void> => {
      const mark = randomUUID();
      const controller = new AbortController();
      await run(mark, `${CALM_TREE}\necho all; sleep 300`, {
        signal: controller.signal,
        onOutput: (text) => {
          if (text.includes("all")) controller.abort();
        },
      });
      expect(survivors(mark)).toEqual([]);
    };
    for (let n = 0; n < 25; n++) await Promise.all([doom(), doom(), doom(), doom()]);
  });
}

type Changes = {
  readonly mode?: Mode;
  readonly signal?: AbortSignal;
  readonly timeoutMs?: number;
  readonly onOutput?: (text: string) => void;
};

async function run(mark: string, script: string, changes: Changes): Promise<CommandResult> {
  const { mode, signal = new AbortController().signal, timeoutMs = 60_000, onOutput } = changes;
  const confinement = mode === "restricted" ? await confine() : null;
  if (typeof confinement === "string") throw new Error(confinement);
  return runCommand({
    argv: ["bash", "-c", script],
    cwd: "/",
    env: { PATH: process.env["PATH"] ?? "", MARK: mark },
    confinement,
    signal,
    timeoutMs,
    limitBytes: 1_000,
    onOutput: (_stream, text) => onOutput?.(text),
  });
}
