/** A process that the launcher has to kill and cannot: it belongs to root, and its worker is not root. */
import { readFileSync } from "node:fs";
import { chmod, chown, copyFile, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { runCommand } from "../../sandbox/command.ts";
import { clock, type Lease } from "../../sandbox/lease.ts";
import { isDead, processesWhere } from "../support/processes.ts";
import { until } from "../support/waiting.ts";
import { LAUNCHER } from "./doomed.ts";

const NOBODY = 65_534;

const run = (command: string, lease?: Lease, onOutput?: (text: string) => void) =>
  runCommand({
    ...{
      argv: ["bash", "-c", command],
      cwd: "/",
      env: { PATH: process.env["PATH"] ?? "" },
      confinement: null,
    },
    ...(lease === undefined ? {} : { lease }),
    onOutput: (_stream, text) => onOutput?.(text),
    signal: new AbortController().signal,
    ...{ timeoutMs: 60_000, limitBytes: 1_000 },
  });

const isRoot = process.getuid?.() === 0;
let directory = "";
let program = "";

beforeAll(async () => {
  if (!isRoot) return;
  directory = await mkdtemp(join(tmpdir(), "bedrock-unkillable-"));
  await chmod(directory, 0o755);
  program = join(directory, "perl");
  await copyFile("/usr/bin/perl", program);
  await chown(program, 0, 0);
  await chmod(program, 0o4755);
  await chown(directory, NOBODY, NOBODY);
  process.setgroups?.([]);
  process.setgid?.(NOBODY);
  process.setuid?.(NOBODY);
  return () => rm(directory, { recursive: true });
});

/** Starts the process for this many seconds, and goes on when it belongs to root. */
const begin = (seconds: number): string => `
  ${program} -e '$< = 0; sleep ${seconds}' &
  until grep -q "^Uid:.0.0" /proc/$!/status; do :; done`;

const isThere = () =>
  processesWhere((pid) => readFileSync(`/proc/${pid}/cmdline`, "utf8").startsWith(program)).length > 0;

describe.runIf(isRoot)("a process that cannot be killed", () => {
  test("is left behind by a command that ends, which does not wait for it", async () => {
    expect(await run(`${begin(8)}\necho done`)).toMatchObject({ exitCode: 0, output: "done\n" });
    expect(isThere()).toBe(true);
    await until(() => !isThere());
  });

  test("keeps no command from starting, and no lease from expiring", async () => {
    let isGivenUp = false;
    const lost = run(`${begin(15)}\nkill -9 $PPID\nsleep 300`);
    void lost.then(() => (isGivenUp = true));
    await until(isThere);
    const lease = { expiresAt: clock() + 300, onRenewed: () => () => undefined };
    expect(await run("sleep 300", lease)).toMatchObject({ aborted: true });
    expect(await run("echo here")).toMatchObject({ exitCode: 0, output: "here\n" });
    expect(isGivenUp).toBe(false);
    expect(await lost).toMatchObject({ exitCode: null });
    expect(isThere()).toBe(true);
    await until(() => !isThere());
  });

  test("keeps no command from starting after the launcher was killed, because there is a new launcher", async () => {
    let [isGivenUp, supervisor] = [false, 0];
    const lost = run(`${begin(8)}\necho $PPID\nkill -9 ${LAUNCHER}\nsleep 300`, undefined, (text) => {
      supervisor = Number(text);
    });
    void lost.then(() => (isGivenUp = true));
    await until(() => supervisor > 0 && isDead(supervisor));
    // By then the worker has read what the keeper said before it killed the supervisor.
    for (let n = 0; n < 2; n++) await new Promise(setImmediate);
    expect(await run("echo here")).toMatchObject({ exitCode: 0, output: "here\n" });
    expect(isGivenUp).toBe(false);
    expect(await lost).toMatchObject({ exitCode: null });
    await until(() => !isThere());
  });
});
