import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { lock, tryLock, type Lock } from "../../local/lock.ts";
import { identify } from "../../local/process-identity.ts";
import { eventually, temporaryFolder } from "./support.ts";

function taken(file: string): Lock {
  const result = tryLock(file);
  if (!result.held) throw new Error(`The lock belongs to ${result.holder.pid}.`);
  return result;
}

test("a second claim of a lock fails and names the holder", () => {
  const file = join(temporaryFolder(), "lock");
  const first = taken(file);
  expect(tryLock(file)).toEqual({ held: false, holder: identify(process.pid), isReleasedSoon: false });
  first.release();
  taken(file).release();
  expect(readdirSync(join(file, ".."))).toEqual([]);
});

test("a killed process holds no lock, nor does a process that got its pid later", async () => {
  const file = join(temporaryFolder(), "lock");
  const holder = spawn("sleep", ["60"], { stdio: "ignore" });
  const identity = await eventually("the process", () => identify(holder.pid ?? 0));
  writeFileSync(file, JSON.stringify(identity));
  expect(tryLock(file)).toEqual({ held: false, holder: identity, isReleasedSoon: false });
  holder.kill("SIGKILL");
  await once(holder, "exit");
  taken(file).release();

  writeFileSync(file, JSON.stringify({ pid: process.pid, startedAt: "another time" }));
  taken(file).release();
});

test("a broken lock file has no holder", () => {
  const file = join(temporaryFolder(), "lock");
  writeFileSync(file, "{");
  taken(file).release();
});

test("a second release does not take the lock from the next holder", () => {
  const file = join(temporaryFolder(), "lock");
  const first = taken(file);
  first.release();
  const second = taken(file);
  first.release();
  expect(tryLock(file)).toMatchObject({ held: false });
  second.release();
});

test("a holder can announce that it will release the lock; the lock is still its own", () => {
  const file = join(temporaryFolder(), "lock");
  const first = taken(file);
  first.announceRelease();
  expect(tryLock(file)).toEqual({ held: false, holder: identify(process.pid), isReleasedSoon: true });
  first.release();
  const second = taken(file);
  first.announceRelease();
  expect(tryLock(file)).toMatchObject({ held: false, isReleasedSoon: false });
  second.release();
  expect(readdirSync(join(file, ".."))).toEqual([]);
});

test("a waiting claim reports that once, and gets the lock", async () => {
  const file = join(temporaryFolder(), "lock");
  const first = taken(file);
  let waits = 0;
  const waiting = lock(file, () => {
    waits++;
    first.release();
  });
  (await waiting).release();
  expect(waits).toBe(1);
});

test("waiting for a lock can be aborted", async () => {
  const file = join(temporaryFolder(), "lock");
  const first = taken(file);
  onTestFinished(() => first.release());
  const giveUp = new AbortController();
  await expect(lock(file, () => giveUp.abort(), giveUp.signal)).rejects.toThrow();
});
