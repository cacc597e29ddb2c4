/** How `npm start` ends together with npm or by signals, and what the next start does while it ends. */
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { freePort } from "../../local/ports.ts";
import { identify, isRunning, type ProcessIdentity } from "../../local/process-identity.ts";
import { familyOf } from "../support/processes.ts";
import { LAUNCHER, launch, processesOf, ready, SLOW, start, type Launched } from "./npm-start.ts";
import { eventually, temporaryFolder } from "./support.ts";

type ByNpm = Launched & {
  readonly dataDir: string;
  /** npm and everything below it. */
  readonly all: readonly ProcessIdentity[];
};

/** The real `npm start`, ready. */
async function startByNpm(): Promise<ByNpm> {
  const dataDir = join(temporaryFolder(), "data");
  const launched = launch(dataDir, await freePort(), {}, ["npm", "start"]);
  await ready(launched);
  const all = familyOf(launched.child.pid ?? 0).flatMap((pid) => identify(pid) ?? []);
  onTestFinished(() => {
    for (const left of all) if (isRunning(left)) process.kill(left.pid, "SIGKILL");
  });
  return { ...launched, dataDir, all };
}

/** A process that keeps an orderly stop waiting for two seconds. */
function freezeApi(dataDir: string): void {
  process.kill(processesOf(dataDir)["api"]?.pid ?? 0, "SIGSTOP");
}

/** Resolves when everything has ended; Postgres comes last, and only an orderly stop shuts it down. */
async function endedInOrder({ dataDir, all }: ByNpm): Promise<void> {
  await eventually("the end of all", () => !all.some(isRunning), 20_000);
  expect(readFileSync(join(dataDir, "pg18.log"), "utf8")).toMatch(
    /received fast shutdown request.*database system is shut down\n$/s,
  );
}

describe("npm start", () => {
  test.each(["SIGTERM", "SIGINT", "SIGKILL"] as const)(
    "ends in order when npm alone gets %s",
    async (signal) => {
      const started = await startByNpm();
      started.child.kill(signal);
      const [code] = (await once(started.child, "exit")) as [number | null];
      expect(code).toBe(signal === "SIGKILL" ? null : 0);
      await endedInOrder(started);
      expect(started.output()).toMatch(
        signal === "SIGKILL" ? "npm has ended: stopping" : "Stopping; once more",
      );
    },
    SLOW,
  );

  test(
    "takes a Ctrl-C, which npm passes on as well, for one signal",
    async () => {
      const started = await startByNpm();
      // A terminal signals both at once. One after the other, the second signal cannot become one with the first.
      const [npm = 0, launcher = 0] = started.all.map(({ pid }) => pid);
      process.kill(launcher, "SIGINT");
      await eventually("the first signal", () => started.output().includes("Stopping"));
      process.kill(npm, "SIGINT");
      const [code] = (await once(started.child, "exit")) as [number | null];
      expect(code).toBe(0);
      await endedInOrder(started);
    },
    SLOW,
  );

  test(
    "ends at once when npm gets another signal later",
    async () => {
      const { child, dataDir, all } = await startByNpm();
      freezeApi(dataDir);
      // Each try is a signal; as long as they count as one, the stop waits for the API.
      await eventually("the end of all", () => !all.some(isRunning) || (child.kill("SIGINT"), false));
      expect(readFileSync(join(dataDir, "pg18.log"), "utf8")).toContain(
        "received immediate shutdown request",
      );
    },
    SLOW,
  );

  test("starts nothing when npm has ended during the setup", async () => {
    const dataDir = join(temporaryFolder(), "data");
    const elsewhere = `--ends-with=${process.ppid}`;
    const { child } = launch(dataDir, 0, {}, [...LAUNCHER, elsewhere]);
    expect(await once(child, "close")).toEqual([1, null]);
    expect(existsSync(dataDir)).toBe(false);
  });

  test(
    "goes on when it was started without npm and its parent ends",
    async () => {
      const dataDir = join(temporaryFolder(), "data");
      // As from a script of npm that leaves a daemon behind.
      const env = { npm_lifecycle_event: "start" };
      const daemonize = 'node local/run.mjs local/main.ts & echo "launcher $!"';
      const launched = launch(dataDir, await freePort(), env, ["sh", "-c", daemonize]);
      await once(launched.child, "exit");
      const pid = Number(/launcher (\d+)/.exec(launched.output())?.[1]);
      onTestFinished(() => {
        if (identify(pid) !== null) process.kill(pid, "SIGKILL");
      });
      const url = await ready(launched);
      expect((await fetch(`${url}/readyz`)).status).toBe(200);
      const launcher = identify(pid);
      const all = Object.values(processesOf(dataDir));
      process.kill(pid, "SIGTERM");
      await eventually("its end", () => launcher !== null && ![launcher, ...all].some(isRunning), 20_000);
      expect(launched.output()).not.toContain("npm has ended");
    },
    SLOW,
  );

  test(
    "waits for a start on the same data that is just stopping, and says so",
    async () => {
      const dataDir = join(temporaryFolder(), "data");
      const first = await start(dataDir, await freePort());
      freezeApi(dataDir);
      first.process.kill("SIGTERM");
      await eventually("the stop", () => first.output().includes("Stopping"));
      const second = await start(dataDir, await freePort());
      expect(second.output()).toContain(`process ${String(first.process.pid)} is stopping`);
      expect(first.process.exitCode).toBe(0);
    },
    SLOW,
  );
});
