/** Bodies that stall, drip or never end: the API ends each of them, and no other request waits for it. */
import { randomUUID } from "node:crypto";
import { readdirSync, readlinkSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { say } from "../../local/scripted/script.ts";
import { startSystem } from "../support/system.ts";
import { connectTo, postOf, problemIn, type RawClient } from "./raw.ts";
import { bodyOf, serveApi, startApi, startApiOn } from "./support.ts";

const system = await startSystem();
const LIST = "/api/conversations";
const MiB = 1024 * 1024;
const FOR_EVER = 3_600_000;

/** Number of unnamed files that this process holds for bodies. */
const filesOpen = (): number =>
  readdirSync("/proc/self/fd").filter((fd) => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`).includes("/bedrock-upload-");
    } catch {
      return false;
    }
  }).length;

/** Bytes after which the hundred uploads of 20 MiB stall. */
const STALLED_AT = [0, 1, 64 * 1024, 3 * MiB];
const stallAll = (url: string, path: string): Promise<RawClient[]> =>
  Promise.all(
    Array.from({ length: 100 }, async (_, n) => {
      const client = await connectTo(url);
      const sent = STALLED_AT[n % STALLED_AT.length] ?? 0;
      await client.write(postOf(path, 20 * MiB));
      await client.write(Buffer.alloc(sent, " "));
      return client;
    }),
  );

describe("a hundred uploads that stall, at any point", () => {
  test("delay no large message, and leave nothing behind when their senders disconnect", async () => {
    const api = await serveApi(startApiOn(system, { uploads: { paceMs: FOR_EVER } }));
    const created = await api.send("POST", LIST, { cwd: system.cwd });
    const messages = `${LIST}/${String((await bodyOf(created))["id"])}/messages`;
    const stalled = await stallAll(api.url, messages);
    await expect.poll(filesOpen).toBe(25);

    const text = `go ${system.model.script(randomUUID(), [say("Here.")])}`;
    const answer = await api.send("POST", messages, JSON.stringify({ text }).padEnd(20 * MiB, " "));
    expect(answer.status).toBe(202);
    for (const { received, socket } of stalled) expect([received(), socket.closed]).toEqual(["", false]);

    for (const { socket } of stalled) socket.destroy();
    await expect.poll(filesOpen).toBe(0);
  });

  test("are each answered with 408 and closed", async () => {
    const { url } = await serveApi(await startApi({ uploads: { paceMs: 300 } }));
    for (const { closed, received } of await stallAll(url, LIST)) {
      await closed;
      expect(problemIn(received())).toMatchObject({ status: 408, code: "request_timeout" });
      expect(received()).toMatch(/^connection: close\r$/im);
    }
    await expect.poll(filesOpen).toBe(0);
  });
});

test("a dripping body is refused with 408, although it moves", async () => {
  const { url } = await serveApi(await startApi({ uploads: { paceMs: 500 } }));
  const client = await connectTo(url);
  await client.write(postOf(LIST, 20 * MiB));
  while (!client.socket.closed) {
    await client.write(" ");
    await delay(20);
  }
  expect(problemIn(client.received())).toMatchObject({ status: 408, code: "request_timeout" });
});

test("a slow body that keeps its pace is accepted", async () => {
  const { url } = await serveApi(await startApi({ uploads: { paceMs: 1_000 } }));
  const client = await connectTo(url);
  const pieces = 50;
  await client.write(postOf(LIST, 2 + pieces * 10_000));
  for (let n = 0; n < pieces; n++) {
    await client.write(" ".repeat(10_000));
    await delay(50);
  }
  await client.write("{}");
  await expect.poll(client.received).toContain("invalid_cwd");
});

test("a body that keeps its pace and does not end is refused with 408 at the deadline", async () => {
  const { url } = await serveApi(await startApi({ uploads: { deadlineMs: 500 } }));
  const client = await connectTo(url);
  await client.write(postOf(LIST, 20 * MiB));
  while (!client.socket.closed) {
    await client.write(" ".repeat(10_000));
    await delay(20);
  }
  expect(problemIn(client.received())).toMatchObject({ status: 408, code: "request_timeout" });
  expect(filesOpen()).toBe(0);
});

test("when the space for files is full, the body that stalled longest gives way to one that moves", async () => {
  const { url, send } = await serveApi(await startApi({ uploads: { paceMs: FOR_EVER, fileBytes: 5 * MiB } }));
  const stall = async (): Promise<RawClient> => {
    const client = await connectTo(url);
    const before = filesOpen();
    await client.write(postOf(LIST, 20 * MiB));
    await client.write(Buffer.alloc(2 * MiB, " "));
    await expect.poll(filesOpen).toBe(before + 1);
    return client;
  };
  const [first, second] = [await stall(), await stall()];
  expect((await send("POST", LIST, "{}".padEnd(2 * MiB, " "))).status).toBe(422);
  await first.closed;
  expect(problemIn(first.received())).toMatchObject({ status: 408, code: "request_timeout" });
  expect(second.received()).toBe("");
  const alone = await send("POST", LIST, "{}".padEnd(6 * MiB, " "));
  expect(alone.status).toBe(503);
});

test("a request that is refused before its body is read loses its connection although it keeps sending", async () => {
  const { url } = await serveApi(await startApi({ apiToken: "secret" }));
  const client = await connectTo(url);
  await client.write(postOf(LIST, 10_000 * MiB));
  const piece = Buffer.alloc(MiB, " ");
  while (!client.socket.closed && client.socket.bytesWritten < 9_000 * MiB) await client.write(piece);
  expect(client.socket.closed).toBe(true);
  expect(problemIn(client.received())).toMatchObject({ status: 401 });
});
