/** The embedded server: first start, crash, stop, its end with its starter, and the folders that it must not touch. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmod, mkdir, mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import { openClient } from "../../db/connect.ts";
import { listen } from "../../db/notifications.ts";
import { isDead } from "../support/processes.ts";
import { until } from "../support/waiting.ts";
import { startPostgres } from "../../local/postgres.ts";

async function dataFolder(): Promise<string> {
  const dataDir = await mkdtemp(join(tmpdir(), "bedrock-test-"));
  await chmod(dataDir, 0o755);
  onTestFinished(() => rm(dataDir, { recursive: true, force: true }));
  return dataDir;
}

async function start(dataDir: string, durable = false) {
  const said: string[] = [];
  const postgres = await startPostgres({ dataDir, durable, onProgress: (sentence) => said.push(sentence) });
  onTestFinished(() => postgres.stop());
  return { ...postgres, said };
}

async function query(url: string, text: string): Promise<unknown[]> {
  const client = openClient(url, "test");
  try {
    return await client.unsafe(text);
  } finally {
    await client.end();
  }
}

test("the server comes back with its data after kill -9, and stops", async () => {
  const dataDir = await dataFolder();
  const first = await start(dataDir, true);
  expect(first.said).toEqual(["Creating the PostgreSQL cluster.", "Starting PostgreSQL."]);
  await query(first.url, "create table kept (n int)");
  await query(first.url, "insert into kept values (7)");

  process.kill(first.pid, "SIGKILL");
  await first.ended;
  const again = await start(dataDir, true);
  expect(again.pid).not.toBe(first.pid);
  expect(await query(again.url, "select n from kept")).toEqual([{ n: 7 }]);

  await again.stop();
  expect(isDead(again.pid)).toBe(true);
  await again.stop();

  const last = await start(dataDir, true);
  expect(last.said).toEqual(["Starting PostgreSQL."]);
  expect(await query(last.url, "select n from kept")).toEqual([{ n: 7 }]);
  await last.stop();
  expect(isDead(last.pid)).toBe(true);
});

test.each([
  ["another account can reach its folder", 0o755],
  ["no other account can", 0o700],
])("the server shuts down when the process that started it is killed: %s", async (_, mode) => {
  const dataDir = await dataFolder();
  await chmod(dataDir, mode);
  const program = fileURLToPath(new URL("postgres-to-orphan.ts", import.meta.url));
  const starter = spawn(process.execPath, ["--import", "tsx", program, dataDir], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const [line] = (await once(starter.stdout, "data")) as [Buffer];
  const pid = Number(line.toString());
  expect(isDead(pid)).toBe(false);
  starter.kill("SIGKILL");
  await until(() => isDead(pid));
  expect(await readFile(join(dataDir, "pg18.log"), "utf8")).toContain("received fast shutdown request");
});

test.each([
  ["runs", "SIGCONT"],
  ["is stopped", "SIGSTOP"],
] as const)("a start ends a server that was left on its folder and %s", async (_, signal) => {
  const dataDir = await dataFolder();
  const left = await start(dataDir);
  await query(left.url, "create table kept (n int)");
  process.kill(left.pid, signal);
  const next = await start(dataDir);
  expect(next.said).toEqual(["Ending the PostgreSQL server of an earlier start.", "Starting PostgreSQL."]);
  expect(isDead(left.pid)).toBe(true);
  expect(await readFile(join(dataDir, "pg18.log"), "utf8")).toContain("received fast shutdown request");
  expect(await query(next.url, "select count(*)::int as n from kept")).toEqual([{ n: 0 }]);
});

test("a start does not touch the server of another folder, whatever its own lock file says", async () => {
  const [other, dataDir] = [await start(await dataFolder()), await dataFolder()];
  const earlier = await start(dataDir);
  const lockFile = join(dataDir, "pg18", "postmaster.pid");
  const lock = await readFile(lockFile, "utf8");
  await earlier.stop();
  await writeFile(lockFile, lock.replace(/^\d+/, String(other.pid)));
  const next = await start(dataDir);
  expect(await query(next.url, "select 1 as one")).toEqual([{ one: 1 }]);
  expect(await query(other.url, "select 1 as one")).toEqual([{ one: 1 }]);
});

test("a durable server syncs every commit to disk, and listens on no port", async () => {
  const { url } = await start(await dataFolder(), true);
  expect(
    await query(
      url,
      `select current_setting('fsync') as fsync, current_setting('synchronous_commit') as commit,
        current_setting('listen_addresses') as addresses, current_setting('server_encoding') as encoding`,
    ),
  ).toEqual([{ fsync: "on", commit: "on", addresses: "", encoding: "UTF8" }]);
});

test("a lock file that names another program's process does not prevent a start", async () => {
  const dataDir = await dataFolder();
  const first = await start(dataDir);
  const lockFile = join(dataDir, "pg18", "postmaster.pid");
  const lock = await readFile(lockFile, "utf8");
  await first.stop();
  // It runs as the server's own user: PostgreSQL takes no process of another user for a server.
  const { uid, gid } = await stat(join(dataDir, "pg18"));
  const other = spawn("sleep", ["60"], { uid, gid, cwd: "/" });
  onTestFinished(() => void other.kill());
  await writeFile(lockFile, lock.replace(/^\d+/, String(other.pid)));
  const second = await start(dataDir);
  expect(await query(second.url, "select 1 as one")).toEqual([{ one: 1 }]);
});

test("a start refuses the data of another major version, and a folder that holds something else", async () => {
  const old = await dataFolder();
  await mkdir(join(old, "pg18"));
  await writeFile(join(old, "pg18", "PG_VERSION"), "17\n");
  await expect(start(old)).rejects.toThrow(/PostgreSQL 17.*DATABASE_URL/);
  const other = await dataFolder();
  await mkdir(join(other, "pg18"));
  await writeFile(join(other, "pg18", "notes.txt"), "mine");
  await expect(start(other)).rejects.toThrow(/holds no PostgreSQL cluster/);
  expect(await readFile(join(other, "pg18", "notes.txt"), "utf8")).toBe("mine");
});

test("listening begins once a server that was down at first is up", async () => {
  const dataDir = await dataFolder();
  const first = await start(dataDir);
  const { url } = first;
  await first.stop();
  const notifications = listen(url);
  onTestFinished(() => notifications.close());
  let ready = false;
  void notifications.ready.then(() => (ready = true));
  await expect(query(url, "select 1")).rejects.toThrow();
  expect(ready).toBe(false);
  await start(dataDir);
  await notifications.ready;
});
