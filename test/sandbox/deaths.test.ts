/**
 * REQ-BED-005: whatever a command left behind, and for whatever reason it has to die, nothing of it is left within
 * 100 ms. Processes are found by a mark in their environment, which they cannot shed by leaving their parents.
 */
import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { describe, expect, test } from "vitest";
import { runCommand, type CommandResult } from "../../sandbox/command.ts";
import { confine, sandboxOfHost } from "../../sandbox/host.ts";
import { survivors } from "../support/processes.ts";
import { until } from "../support/waiting.ts";

const { available, reason: missing } = await sandboxOfHost();
if (!available) console.warn(`SKIPPED, deaths in Restricted mode: ${missing ?? ""}`);
type Mode = "restricted" | "unrestricted";
const MODES: readonly Mode[] = available ? ["unrestricted", "restricted"] : ["unrestricted"];

/** Noisy machines: the median must keep the promise, each run this. */
const WITHIN_MS = 1_000;

/** Each says "up" when it is. Afterwards the command waits, or ends, as the reason demands. */
const CHILDREN: Readonly<Record<string, string>> = {
  "a background job": "sleep 300 & echo up",
  "a nohup": "nohup sleep 300 > /dev/null 2>&1 & echo up",
  "a session of its own": "setsid sleep 300 & echo up",
  "a re-parented daemon": "(setsid sleep 300 &); echo up",
  "a double fork": "( ( setsid bash -c 'sleep 300 & wait' & ) & ); echo up",
  "one that traps signals": `(trap "" TERM INT HUP; while :; do sleep 0.05; done) & echo up`,
  "one that holds the pipe": "(setsid bash -c 'echo up; exec sleep 300' &); sleep 0.05",
  "a stopped one": "sleep 300 & kill -STOP $!; echo up",
  "one that closed everything": "(setsid bash -c 'exec sleep 300' <&- >&- 2>&- &); echo up",
  "a spinner": "(while :; do :; done) & echo up",
  "a deep tree": "f() { [ $1 = 0 ] && exec sleep 300; (f $(($1 - 1))) & wait; }; (f 12) & sleep 0.1; echo up",
  "one that stops its supervisor": "kill -STOP $PPID; echo up",
  "one that forks without end": `(while :; do sleep 300 & done) & sleep 0.05; echo up`,
};

describe.each(
  MODES.flatMap((mode) => Object.entries(CHILDREN).map(([kind, child]) => [mode, kind, child] as const)),
)("%s: %s", (mode, _kind, child) => {
  test.each(["its command ends", "a cancel", "the time is over"] as const)("dies: %s", async (reason) => {
    const mark = randomUUID();
    const controller = new AbortController();
    let told = 0;
    const running = run(mark, reason === "its command ends" ? child : `${child}; sleep 300`, {
      mode,
      signal: controller.signal,
      timeoutMs: reason === "the time is over" ? 800 : 60_000,
      onOutput: (text) => {
        if (reason !== "a cancel" || !text.includes("up")) return;
        told = performance.now();
        controller.abort();
      },
    });
    const result = await running;
    expect(result.output).toContain("up");
    expect(survivors(mark)).toEqual([]);
    if (reason === "a cancel") expect(performance.now() - told).toBeLessThan(WITHIN_MS);
    expect(result).toMatchObject({
      aborted: reason === "a cancel",
      timedOut: reason === "the time is over",
    });
  });

  test("dies: the worker is killed", () => diesWithItsWorker(child, mode));
});

test("dies with its worker though it has stopped both who would end it", () => {
  const launcher = "$(cut -d ' ' -f 4 /proc/$PPID/stat)";
  return diesWithItsWorker(`kill -STOP ${launcher} $PPID; echo up`, "unrestricted");
});

async function diesWithItsWorker(child: string, mode: string): Promise<void> {
  const mark = randomUUID();
  const worker = spawn(
    process.execPath,
    ["--import", "tsx", `${import.meta.dirname}/doomed-worker.ts`, `${child}; sleep 300`, mode],
    { stdio: ["ignore", "pipe", "inherit"], env: { ...process.env, MARK: mark } },
  );
  await once(worker.stdout, "data");
  // While a shell becomes its last command, it has no environment to be found by.
  await until(() => survivors(mark).length > 1);
  worker.kill("SIGKILL");
  const killed = performance.now();
  while (survivors(mark).length > 0 && performance.now() - killed < WITHIN_MS) await tick();
  expect(survivors(mark)).toEqual([]);
}

test("a launcher that a command has stopped goes on with the next one", async () => {
  const mark = randomUUID();
  await run(mark, "cut -d ' ' -f 4 /proc/$PPID/stat", {
    onOutput: (launcher) => process.kill(Number.parseInt(launcher, 10), "SIGSTOP"),
  });
  expect(await run(mark, "echo here", {})).toMatchObject({ exitCode: 0, output: "here\n" });
});

test.each(["SIGKILL", "SIGSTOP"] as const)(
  "a supervisor that gets a %s from outside loses nobody",
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

test("a hundred trees of every kind of child at once: no survivor", { timeout: 120_000 }, async () => {
  const { "one that forks without end": _bomb, "a spinner": _spinner, ...calm } = CHILDREN;
  const script = `${Object.values(calm).join("\n")}\necho all; sleep 300`;
  const doom = async (): Promise<void> => {
    const mark = randomUUID();
    const controller = new AbortController();
    await run(mark, script, {
      signal: controller.signal,
      onOutput: (text) => {
        if (text.includes("all")) controller.abort();
      },
    });
    expect(survivors(mark)).toEqual([]);
  };
  for (let n = 0; n < 25; n++) await Promise.all([doom(), doom(), doom(), doom()]);
});

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

/** Processes with this mark; a zombie has no environment any more. */
const tick = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
