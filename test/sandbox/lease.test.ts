/**
 * Leases: a command ends when its lease is not renewed, also when the process that renews it is frozen. A command that
 * comes too late does not begin.
 */
import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { createInterface } from "node:readline";
import { expect, onTestFinished, test } from "vitest";
import { runCommand } from "../../sandbox/command.ts";
import { launch } from "../../sandbox/launcher.ts";
import { clock, type Lease } from "../../sandbox/lease.ts";
import { survivors } from "../support/processes.ts";
import { until } from "../support/waiting.ts";
import { stopping, tracing } from "./doomed.ts";

const RUN = { cwd: "/", env: { PATH: process.env["PATH"] ?? "" }, confinement: null } as const;
const bash = (script: string) => ["bash", "-c", script] as const;

test("a command ends when its lease expires, and is reported as aborted", async () => {
  const began = clock();
  const result = await command("echo here; sleep 300", {
    expiresAt: began + 200,
    onRenewed: () => () => undefined,
  });
  expect(result).toMatchObject({ aborted: true, output: "here\n" });
  expect(clock() - began).toBeGreaterThan(200);
});

test("a lease that is renewed does not end the command", async () => {
  const listeners = new Set<() => void>();
  const lease = {
    expiresAt: clock() + 200,
    onRenewed: (listener: () => void) => {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
  };
  const renewing = setInterval(() => {
    lease.expiresAt = clock() + 200;
    for (const listener of listeners) listener();
  }, 50);
  const result = await command("sleep 0.6; echo done", lease);
  clearInterval(renewing);
  expect(result).toMatchObject({ aborted: false, exitCode: 0, output: "done\n" });
  expect(listeners.size).toBe(0);
});

test("a command whose lease has expired does not begin", async () => {
  const over = { expiresAt: clock() - 1, onRenewed: () => () => undefined };
  expect(await command("echo here", over)).toMatchObject({ aborted: true, output: "" });
});

test("a command that was ordered in time and reaches the launcher too late does not begin", async () => {
  let output = "";
  // As from a process that was frozen between its check of the lease and the order.
  const lease = { expiresAt: clock() - 1_000, onRenewed: () => () => undefined };
  const { ended } = launch({ ...RUN, argv: bash("echo here"), lease }, (stdout) => {
    stdout.on("data", (chunk: Buffer) => (output += chunk.toString()));
  });
  expect(await ended).toEqual({ kind: "lost" });
  expect(output).toBe("");
});

const FROZEN = {
  "that start others": "setsid sleep 300 & echo up; sleep 300",
  "that hold their supervisor": `${tracing("$PPID")}; sleep 300`,
  "that stop their supervisor again and again": `${stopping("$PPID")}; sleep 300`,
} as const;

test.each(
  Object.entries(FROZEN).flatMap(([kind, script]) =>
    (["with control groups", "without control groups"] as const).map(
      (groups) => [kind, groups, script] as const,
    ),
  ),
)("the commands of a frozen process end when their lease expires: %s, %s", async (_kind, groups, script) => {
  const mark = randomUUID();
  const worker = spawn(
    process.execPath,
    ["--import", "tsx", `${import.meta.dirname}/frozen-worker.ts`, script, mark, groups],
    { stdio: ["ignore", "pipe", "inherit"] },
  );
  onTestFinished(() => void worker.kill("SIGKILL"));
  const lines: string[] = [];
  createInterface(worker.stdout).on("line", (line) => lines.push(line));
  // A command that hinders its supervisor may have been ended before it could say "up".
  await until(() => lines.length > 0);
  worker.kill("SIGSTOP");
  await until(() => survivors(mark).length === 0);
  worker.kill("SIGCONT");
  const said = await until(() => lines.find((line) => line.startsWith("{")) ?? null);
  expect(JSON.parse(said)).toMatchObject({ exitCode: null });
});

const command = (script: string, lease: Lease) =>
  runCommand({
    ...{ ...RUN, argv: bash(script), lease },
    signal: new AbortController().signal,
    ...{ timeoutMs: 60_000, limitBytes: 1_000 },
  });
