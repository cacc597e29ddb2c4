/** The API as a process: ready means that requests are answered, and its end does not wait for open streams. */
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { createConnection } from "node:net";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterEach, expect, test } from "vitest";
import { openDatabase } from "../../db/connect.ts";
import { createConversation } from "../db/fixtures.ts";
import { freshDatabase } from "../support/database.ts";
import { EventReader } from "./sse.ts";
import { problemOf } from "./support.ts";

const started: ChildProcess[] = [];
afterEach(async () => {
  for (const child of started.splice(0)) {
    if (child.exitCode !== null || child.signalCode !== null) continue;
    child.kill("SIGKILL");
    await once(child, "exit");
  }
});

const ROOT = join(import.meta.dirname, "..", "..");

function spawnApi(env: Record<string, string>): ChildProcess & { readonly stdout: NodeJS.ReadableStream } {
  const child = spawn(process.execPath, ["local/run.mjs", "api/main.ts"], {
    cwd: ROOT,
    stdio: ["ignore", "pipe", "pipe"],
    env: { PATH: process.env["PATH"], PORT: "0", TEMPORAL_ADDRESS: "127.0.0.1:1", ...env },
  });
  started.push(child);
  return child;
}

/** Resolves with the address that it prints. */
async function ready(child: { readonly stdout: NodeJS.ReadableStream }): Promise<string> {
  for await (const line of createInterface(child.stdout)) {
    const url = /api ready (http:[^\s"]+)/.exec(line)?.[1];
    if (url !== undefined) return url;
  }
  throw new Error("the API ended before it was ready");
}

test("the API answers right after its ready line, and ends soon on SIGTERM despite streams and half a request", async () => {
  const databaseUrl = await freshDatabase();
  const child = spawnApi({ DATABASE_URL: databaseUrl });
  const url = await ready(child);
  expect((await fetch(`${url}/healthz`)).status).toBe(200);
  expect(await problemOf(await fetch(`${url}/readyz`))).toMatchObject({ status: 503, missing: ["temporal"] });

  const db = openDatabase(databaseUrl);
  const { id } = await createConversation(db);
  await db.close();
  const streams = [
    new EventReader(await fetch(`${url}/api/conversations/${id}/events`)),
    new EventReader(await fetch(`${url}/api/events`)),
  ];
  for (const stream of streams) await stream.until("synced");
  const idle = createConnection(Number(new URL(url).port), "127.0.0.1");
  await once(idle, "connect");
  idle.write("POST /api/conversations HTTP/1.1\r\nhost: localhost\r\ncontent-length: 10\r\n\r\n");
  idle.on("error", () => undefined);

  const asked = performance.now();
  child.kill("SIGTERM");
  for (const stream of streams) expect(await stream.next()).toBeNull();
  const [code] = (await once(child, "exit")) as [number | null];
  expect(code).toBe(0);
  expect(performance.now() - asked).toBeLessThan(5_000);
  idle.destroy();
});

test("the API starts without Postgres and Temporal, names what is missing, and requires the token at once", async () => {
  const child = spawnApi({
    DATABASE_URL: "postgres://nobody@127.0.0.1:1/none",
    API_TOKEN: "secret",
  });
  const url = await ready(child);
  const missing = await problemOf(await fetch(`${url}/readyz`));
  expect(missing).toMatchObject({ status: 503, missing: ["postgres", "temporal"] });
  expect((await fetch(`${url}/api/conversations`)).status).toBe(401);
  const authorized = { authorization: "Bearer secret" };
  expect((await fetch(`${url}/api/conversations`, { headers: authorized })).status).toBe(503);
  expect((await fetch(`${url}/api/models`, { headers: authorized })).status).toBe(200);
});

test("an unusable configuration ends the API with one sentence", async () => {
  const child = spawnApi({ DATABASE_URL: "postgres://x@127.0.0.1:1/none", HOST: "0.0.0.0" });
  let said = "";
  child.stderr?.on("data", (chunk: Buffer) => (said += chunk.toString()));
  const [code] = (await once(child, "close")) as [number | null];
  expect(code).toBe(1);
  expect(said).toMatch(/API_TOKEN/);
  expect(said).not.toMatch(/\n {4}at /);
});

/** The status of the answer to a request that is written byte by byte. */
async function statusOf(url: string, request: string): Promise<number> {
  const socket = createConnection(Number(new URL(url).port), "127.0.0.1");
  socket.write(request.replaceAll("\n", "\r\n"));
  const chunks: Buffer[] = [];
  for await (const chunk of socket) chunks.push(chunk as Buffer);
  return Number(/^HTTP\/1\.1 (\d+) /.exec(Buffer.concat(chunks).toString())?.[1]);
}

test("a body over a socket may be chunked, empty or absent; one that is too large is a 413", async () => {
  const child = spawnApi({ DATABASE_URL: "postgres://nobody@127.0.0.1:1/none" });
  const url = await ready(child);
  const response = await fetch(`${url}/api/conversations`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: `{"cwd":"${"x".repeat(33 * 1024 * 1024)}"}`,
  });
  expect(await problemOf(response)).toMatchObject({ status: 413, code: "payload_too_large" });

  const post = (path: string, headers: string, body = "") =>
    statusOf(url, `POST ${path} HTTP/1.1\nhost: localhost\nconnection: close\n${headers}\n${body}`);
  const json = "content-type: application/json\n";
  const cancel = "/api/conversations/x/cancel";
  // 503: the body was read, and only Postgres is missing.
  expect(await post(cancel, "")).toBe(503);
  expect(await post(cancel, json)).toBe(503);
  expect(await post(cancel, `${json}content-length: 0\n`)).toBe(503);
  expect(await post(cancel, `${json}content-length: 2\n`, "{}")).toBe(503);
  expect(await post(cancel, `${json}content-length: 1\n`, "{")).toBe(400);
  expect(await post(cancel, "content-length: 2\n", "{}")).toBe(415);
  const chunked = `${json}transfer-encoding: chunked\n`;
  expect(await post("/api/conversations", chunked, '9\n{"cwd":1}\n0\n\n')).toBe(422);
});
