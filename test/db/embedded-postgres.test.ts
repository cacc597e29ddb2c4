/** The embedded server: first start, adoption, crash, stop, and the folders that it must not touch. */
import { spawn } from "node:child_process";
import { chmod, mkdir, mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { openClient } from "../../db/connect.ts";
import { listen } from "../../db/notifications.ts";
import { isDead } from "../support/processes.ts";
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

test("the server is adopted by the next start, comes back with its data after kill -9, and stops", async () => {
  const dataDir = await dataFolder();
  const first = await start(dataDir, true);
  expect(first.said).toEqual(["Creating the PostgreSQL cluster.", "Starting PostgreSQL."]);
  await query(first.url, "create table kept (n int)");
  await query(first.url, "insert into kept values (7)");

  const adopted = await start(dataDir, true);
  expect(adopted).toMatchObject({ pid: first.pid, url: first.url });
  expect(adopted.said).toEqual(["PostgreSQL is running already."]);

  process.kill(first.pid, "SIGKILL");
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

test("two starts at once share one server", async () => {
  const dataDir = await dataFolder();
  const [one, two] = await Promise.all([start(dataDir), start(dataDir)]);
  expect(one.pid).toBe(two.pid);
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
