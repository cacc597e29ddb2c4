import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import type { ProcessSpec } from "../../local/managed-process.ts";
import { identify, isRunning, type ProcessIdentity } from "../../local/process-identity.ts";
import { createProcessManager, stopLeftovers, type ProcessManager } from "../../local/process-manager.ts";
import { eventually, temporaryFolder } from "./support.ts";

type Stage = {
  readonly supervisor: ProcessManager;
  readonly runDir: string;
  readonly logDir: string;
  /** The lines that were printed for the person. */
  readonly said: string[];
  /** The words that the processes wrote down, in order. */
  readonly notes: () => string[];
  /** A shell script; `note <word>` writes a word down. */
  readonly spec: (name: string, body: string, extra?: Partial<ProcessSpec>) => ProcessSpec;
};

function stage(stopOrder: string[][] = [["api"], ["worker"], ["temporal"]]): Stage {
  const folder = temporaryFolder();
  const [runDir, logDir, notes] = [join(folder, "run"), join(folder, "logs"), join(folder, "notes")];
  mkdirSync(runDir);
  mkdirSync(logDir);
  writeFileSync(notes, "");
  const said: string[] = [];
  const supervisor = createProcessManager({ runDir, logDir, stopOrder, say: (line) => said.push(line) });
  onTestFinished(() => supervisor.kill());
  return {
    supervisor,
    runDir,
    logDir,
    said,
    notes: () => readFileSync(notes, "utf8").split("\n").filter(Boolean),
    spec: (name, body, extra) => ({
      name,
      command: "/bin/sh",
      args: ["-c", `note() { echo "$1" >> ${notes}; }\n${body}`],
      env: { PATH: process.env["PATH"] },
      stopWithin: 2000,
      ...extra,
    }),
  };
}

/** Runs until SIGTERM; writes down its start and its end. */
const WELL_BEHAVED = (name: string) =>
  `trap 'note "end ${name}"; exit 0' TERM; note "start ${name}"; echo "${name} is ready"; while :; do sleep 0.05; done`;
const STUBBORN = "trap '' TERM; echo ready; while :; do sleep 0.05; done";

/** The recorded identity of a running process. */
function recorded(runDir: string, name: string): ProcessIdentity {
  return JSON.parse(readFileSync(join(runDir, `${name}.json`), "utf8")) as ProcessIdentity;
}

test("a process is ready when it prints its ready line", async () => {
  const { supervisor, spec, notes } = stage();
  await supervisor.start(
    spec("worker", `note early; sleep 0.2; note late; echo "worker ready"; exec sleep 60`, {
      ready: { line: /^worker ready$/m },
    }),
  );
  expect(notes()).toEqual(["early", "late"]);
});

test("a process that ends before it is ready is reported with its last output and without a stack", async () => {
  const { supervisor, spec, logDir } = stage();
  const failing = supervisor.start(
    spec("api", `echo "Error: no port"; echo "    at listen (net.js:1)"; exit 3`, {
      ready: { line: /never/ },
    }),
  );
  await expect(failing).rejects.toThrow(/The api process ended before it was ready.*no port/s);
  await expect(failing).rejects.not.toThrow(/net\.js/);
  await expect(failing).rejects.toThrow(join(logDir, "api.log"));
});

test("a process that is never ready is reported", async () => {
  const { supervisor, spec } = stage();
  await expect(
    supervisor.start(spec("api", "exec sleep 60", { ready: { line: /never/ }, readyWithin: 200 })),
  ).rejects.toThrow("The api process was not ready within 0.2 s");
});

test("a program that does not exist is reported", async () => {
  const { supervisor, spec } = stage();
  await expect(
    supervisor.start({ ...spec("api", ""), command: "/does/not/exist", ready: { line: /never/ } }),
  ).rejects.toThrow("The api process ended before it was ready");
});

test("a process that dies is started again, and the person is told", async () => {
  const { supervisor, spec, said, notes } = stage();
  await supervisor.start(spec("worker", WELL_BEHAVED("worker"), { ready: { line: /ready/ } }));
  const first = supervisor.pidOf("worker");
  if (first === null) throw new Error("The worker does not run.");
  process.kill(first, "SIGKILL");
  const second = await eventually("another process", () => {
    const pid = supervisor.pidOf("worker");
    return pid !== first && pid;
  });
  await eventually("its start", () => notes().length === 2);
  expect(isRunning({ pid: second, startedAt: identify(second)?.startedAt ?? "" })).toBe(true);
  expect(said).toEqual([expect.stringContaining("The worker process ended (SIGKILL) and is started again")]);
});

test("a process that dies while its files cannot be written is started again when they can", async () => {
  const { supervisor, spec, said, notes, runDir } = stage();
  await supervisor.start(spec("worker", WELL_BEHAVED("worker"), { ready: { line: /ready/ } }));
  // Writing fails as on a full disk.
  renameSync(runDir, `${runDir}.away`);
  process.kill(supervisor.pidOf("worker") ?? 0, "SIGKILL");
  await eventually("its failure", () => said.some((line) => line.includes("is tried again: ")));
  renameSync(`${runDir}.away`, runDir);
  await eventually("another process that the next start would find", () => {
    const pid = supervisor.pidOf("worker");
    return pid !== null && notes().length > 1 && recorded(runDir, "worker").pid === pid;
  });
});

test("all processes end in order, and none is started again", async () => {
  const { supervisor, spec, runDir, notes } = stage();
  for (const name of ["temporal", "worker", "api"]) {
    await supervisor.start(spec(name, WELL_BEHAVED(name), { ready: { line: /ready/ } }));
  }
  await supervisor.stop();
  expect(notes().slice(3)).toEqual(["end api", "end worker", "end temporal"]);
  expect(existsSync(join(runDir, "worker.json"))).toBe(false);
  await expect(supervisor.start(spec("late", "exit 0"))).rejects.toThrow("interrupted");
});

test("a process that ignores SIGTERM is killed at its time-out, with its children", async () => {
  const { supervisor, spec, notes } = stage();
  await supervisor.start(
    spec("worker", `sh -c 'trap "" TERM; echo $$ >&3; exec sleep 60' 3>&1 & ${STUBBORN}`, {
      ready: { line: /\d+[^]*ready|ready[^]*\d+/ },
      stopWithin: 100,
    }),
  );
  const pid = supervisor.pidOf("worker");
  if (pid === null) throw new Error("The worker does not run.");
  await supervisor.stop();
  expect(identify(pid)).toBeNull();
  // The whole process group is gone: no process is left to receive a signal.
  await eventually("the end of the group", () => {
    try {
      process.kill(-pid, 0);
      return false;
    } catch {
      return true;
    }
  });
  expect(notes()).toEqual([]);
});

test("when `npm start` is killed its processes end, also one that ignores SIGTERM, and one that is stopped", async () => {
  const { runDir, logDir } = stage();
  const program = fileURLToPath(new URL("system-to-kill.ts", import.meta.url));
  const system = spawn(process.execPath, ["--import", "tsx", program, runDir, logDir], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  await once(system.stdout, "data");
  const children = ["api", "temporal"].map((name) => recorded(runDir, name));
  expect(children.map(isRunning)).toEqual([true, true]);
  process.kill(children[0]?.pid ?? 0, "SIGSTOP");
  system.kill("SIGKILL");
  await once(system, "exit");
  await eventually("the end of both", () => !children.some(isRunning), 1000);
});

test("the next `npm start` stops the processes that an earlier one left behind all the same", async () => {
  const { runDir } = stage();
  const left: ProcessIdentity[] = [];
  for (const [name, trap] of [
    ["api", ""],
    ["temporal", "trap '' TERM;"],
  ] as const) {
    const body = `${trap} echo ready; while :; do sleep 0.05; done`;
    const child = spawn("/bin/sh", ["-c", body], { detached: true, stdio: ["ignore", "pipe", "ignore"] });
    onTestFinished(() => void child.kill("SIGKILL"));
    await once(child.stdout, "data");
    const identity = await eventually("the process", () => identify(child.pid ?? 0));
    writeFileSync(join(runDir, `${name}.json`), JSON.stringify(identity));
    left.push(identity);
  }
  const said: string[] = [];
  await stopLeftovers({ runDir, stopOrder: [["api"], ["temporal"]], say: (line) => said.push(line) }, 100);
  expect(left.map(isRunning)).toEqual([false, false]);
  expect(said).toEqual([
    expect.stringContaining("left its api process"),
    expect.stringContaining("left its temporal process"),
  ]);
  expect(existsSync(join(runDir, "temporal.json"))).toBe(false);
});

test("a process that got the pid of an earlier one is left alone", async () => {
  const { runDir } = stage();
  const innocent = spawn("sleep", ["60"], { detached: true, stdio: "ignore" });
  onTestFinished(() => void innocent.kill("SIGKILL"));
  const identity = await eventually("the process", () => identify(innocent.pid ?? 0));
  const file = join(runDir, "worker.json");
  writeFileSync(file, JSON.stringify({ ...identity, startedAt: `${identity.startedAt}0` }));
  const said: string[] = [];
  await stopLeftovers({ runDir, stopOrder: [["worker"]], say: (line) => said.push(line) });
  expect(isRunning(identity)).toBe(true);
  expect(said).toEqual([]);
  expect(existsSync(file)).toBe(false);
});

test("a process that ended and was not reaped is not running", async () => {
  // The shell becomes a sleep, which never reaps its child.
  const parent = spawn("/bin/sh", ["-c", "sleep 0.3 & echo $!; exec sleep 60"], {
    stdio: ["ignore", "pipe", "ignore"],
  });
  onTestFinished(() => void parent.kill("SIGKILL"));
  const [line] = (await once(parent.stdout, "data")) as [Buffer];
  const pid = Number(line.toString());
  const identity = identify(pid);
  if (identity === null) throw new Error("The child has ended too early.");
  await eventually("its end", () => !isRunning(identity));
  // Its pid is still taken.
  expect(process.kill(pid, 0)).toBe(true);
  expect(identify(pid)).toBeNull();
});

test.each(["", "{", "[]", '{"pid":-1,"startedAt":"x"}', '{"pid":1,"startedAt":"x"}'])(
  "a broken record names no process and is removed: %s",
  async (text) => {
    const { runDir } = stage();
    writeFileSync(join(runDir, "worker.json"), text);
    await stopLeftovers({ runDir, stopOrder: [["worker"]], say: () => undefined });
    expect(existsSync(join(runDir, "worker.json"))).toBe(false);
  },
);
