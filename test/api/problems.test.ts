/** Bad input is answered with its documented problem, nothing of it is stored, and nothing internal gets out. */
import { randomUUID } from "node:crypto";
import { expect, test } from "vitest";
import { Problem, PROBLEMS, toProblem } from "../../api/problem.ts";
import { problemSchema } from "../../api/schemas/problem.ts";
import { chain, createConversation, valueWith } from "../db/fixtures.ts";
import { commit } from "../../db/commit.ts";
import { bodyOf, problemOf, startApi } from "./support.ts";

const { get, send, db, reports } = await startApi();
const { id, head } = await createConversation(db, {}, { title: "Kept" });
const messages = `/api/conversations/${id}/messages`;

test("unknown routes, methods and ids are not found", async () => {
  const unknown = randomUUID();
  for (const [method, path] of [
    ["GET", "/nothing"],
    ["GET", "/api/nothing"],
    ["PUT", "/api/conversations"],
    ["GET", `/api/conversations/${unknown}`],
    ["GET", `/api/conversations/${unknown}/messages`],
    ["GET", `/api/conversations/${unknown}/children`],
    ["GET", `/api/conversations/${unknown}/events`],
    ["GET", `/api/conversations/${unknown}/events?after=3`],
    ["GET", `/api/conversations/${id}/images/${"0".repeat(64)}`],
    ["GET", `/api/conversations/${id}/images/..%2f..%2fetc%2fpasswd`],
    ["DELETE", `/api/conversations/${unknown}`],
    ["DELETE", `/api/conversations/${unknown}/queue/m1`],
    ["POST", `/api/conversations/${unknown}/cancel`],
    ["POST", `/api/conversations/${unknown}/continuation`],
    // Strings that cannot be an id.
    ["GET", `/api/conversations/${"x".repeat(65)}`],
    ["GET", "/api/conversations/a%00b"],
    ["GET", "/api/conversations/%FF"],
    ["GET", "/api/conversations/a'--"],
  ] as const) {
    const response = await get(path, { method });
    expect(await problemOf(response), `${method} ${path}`).toMatchObject({ status: 404, code: "not_found" });
  }
  const bodies = [
    ["PATCH", "", { title: "x" }],
    ["POST", "/messages", { text: "hello" }],
    ["POST", "/mode", { mode: "restricted" }],
    ["POST", "/approval", { decision: "deny", toolCallId: "t" }],
  ] as const;
  for (const [method, path, body] of bodies) {
    const response = await send(method, `/api/conversations/${unknown}${path}`, body);
    expect(await problemOf(response), path).toMatchObject({ status: 404, code: "not_found" });
  }
});

test.each(["{", "", "{'a':1}", '{"text":"x"} trailing', "\u0000"])("%j is malformed JSON", async (body) => {
  expect(await problemOf(await send("POST", messages, body))).toMatchObject({
    status: 400,
    code: "malformed_json",
  });
});

test.each([
  [messages, {}, "text"],
  [messages, [], ""],
  [messages, null, ""],
  [messages, { text: 7 }, "text"],
  [messages, { text: "" }, "text"],
  [messages, { text: " \n\t\u00a0" }, "text"],
  [messages, { text: "", images: [] }, "text"],
  [messages, { text: "x", id: "has space" }, "id"],
  [messages, { text: "x", id: "x".repeat(65) }, "id"],
  [messages, { text: "x", id: "" }, "id"],
  [messages, { text: "x", delivery: "later" }, "delivery"],
  [messages, { text: "x", images: "none" }, "images"],
  [messages, { text: "x", images: [{ mediaType: "image/png" }] }, "images.0.data"],
  ["/api/conversations", { cwd: 7 }, "cwd"],
  ["/api/conversations", { cwd: "/", id: "a/b" }, "id"],
  ["/api/conversations", { cwd: "/", message: { text: " " } }, "message.text"],
  ["/api/conversations", { cwd: "/", continuedFrom: "x" }, "continuedFrom"],
  ["/api/conversations", { cwd: "/", model: "" }, "model"],
  [`/api/conversations/${id}/mode`, { mode: "root" }, "mode"],
  [`/api/conversations/${id}/cancel`, { clearQueue: "yes" }, "clearQueue"],
  [`/api/conversations/${id}/approval`, { decision: "maybe", toolCallId: "t" }, "decision"],
  [`/api/conversations/${id}/approval`, { decision: "deny" }, "toolCallId"],
])("%s with the body %j is invalid, and the problem says where", async (path, body, where) => {
  const answer = await problemOf(await send("POST", path, body));
  expect(answer).toMatchObject({ status: 422, code: "invalid_request" });
  const errors = answer["errors"] as { path: string; message: string }[];
  expect(errors.map((error) => error.path)).toContain(where);
  expect(errors.every((error) => error.message.length > 0)).toBe(true);
});

test.each([
  `${messages}?limit=0`,
  `${messages}?limit=1001`,
  `${messages}?limit=ten`,
  `${messages}?after=-1`,
  `${messages}?after=99999999999999999999`,
  `${messages}?before=1.5`,
  `${messages}?limit=1&limit=2`,
  "/api/conversations?archived=maybe",
  "/api/conversations?limit=0",
  "/api/conversations?cursor=made-up",
  ...["2026-02-30T00:00:00.000Z", "0000-01-01T00:00:00.000Z", "2026-01-01T24:00:00.000Z"].map(
    (at) => `/api/conversations?cursor=${Buffer.from(JSON.stringify([at, "x"])).toString("base64url")}`,
  ),
])("GET %s is invalid", async (path) => {
  expect(await problemOf(await get(path))).toMatchObject({ status: 422, code: "invalid_request" });
});

test("a title that is blank, too long or no string is refused", async () => {
  for (const title of ["", "  ", "x".repeat(501), 7]) {
    const response = await send("PATCH", `/api/conversations/${id}`, { title });
    expect(await problemOf(response)).toMatchObject({ status: 422, code: "invalid_request" });
  }
});

test("text of more than 256 KiB is too large, counted in bytes", async () => {
  const umlauts = "ü".repeat(128 * 1024);
  const over = await send("POST", messages, { text: `${umlauts}x` });
  expect(await problemOf(over)).toMatchObject({ status: 413, code: "payload_too_large" });
  const nested = await send("POST", "/api/conversations", { cwd: "/", message: { text: `${umlauts}x` } });
  expect(await problemOf(nested)).toMatchObject({ status: 413, code: "payload_too_large" });
  // Exactly 256 KiB is accepted; it fails here only because Temporal is missing.
  expect((await send("POST", messages, { text: umlauts })).status).toBe(503);
});

test("data that is no image is refused, in a message and in a new conversation", async () => {
  const images = [{ mediaType: "image/png", data: "AAAA" }];
  const sent = await send("POST", messages, { text: "", images });
  expect(await problemOf(sent)).toMatchObject({ status: 422, code: "invalid_image" });
  const created = await send("POST", "/api/conversations", { cwd: "/", message: { text: "x", images } });
  expect(await problemOf(created)).toMatchObject({ status: 422, code: "invalid_image" });
});

test("without Temporal writes are 503 with Retry-After, reads go on, and nothing is stored", async () => {
  for (const [method, path, body] of [
    ["POST", "/api/conversations", { cwd: "/tmp", id: "never" }],
    ["POST", messages, { text: "hello", id: "m1" }],
    ["POST", `/api/conversations/${id}/cancel`, {}],
    ["PATCH", `/api/conversations/${id}`, { archived: true }],
    ["DELETE", `/api/conversations/${id}`, undefined],
    ["GET", "/api/directories?path=/", undefined],
  ] as const) {
    const response = await send(method, path, body);
    expect(Number(response.headers.get("retry-after")), path).toBeGreaterThan(0);
    expect(await problemOf(response), path).toMatchObject({ status: 503, code: "unavailable" });
  }
  expect((await get("/api/conversations/never")).status).toBe(404);
  expect(await bodyOf(await get(messages))).toEqual({ messages: [] });
  expect(await bodyOf(await get("/healthz"))).toEqual({ status: "ok", sandbox: null });
  expect(await problemOf(await get("/readyz"))).toMatchObject({ status: 503, missing: ["temporal"] });
});

test("a database without the tables of this release is no reason to be ready, before and while they are made", async () => {
  const { db, get } = await startApi();
  const missing = async () => (await problemOf(await get("/readyz")))["missing"];
  await db.sql`delete from drizzle.__drizzle_migrations where id = (select max(id) from drizzle.__drizzle_migrations)`;
  expect(await missing()).toEqual(["migration", "temporal"]);
  await db.sql`drop schema drizzle cascade`;
  expect(await missing()).toEqual(["migration", "temporal"]);
  // A later release has more.
  await db.sql`create schema drizzle`;
  await db.sql`create table drizzle.__drizzle_migrations as select generate_series(1, 100) as id`;
  expect(await missing()).toEqual(["temporal"]);
});

test("a message that is stored already gets its receipt without Temporal", async () => {
  const waiting = {
    messageId: "known",
    delivery: "followUp" as const,
    text: "later",
    images: [],
    createdAt: new Date().toISOString(),
  };
  await commit(db, id, chain([{ conversation: valueWith({ queue: [waiting] }) }], head));
  const answer = await send("POST", messages, { id: "known", text: "later" });
  expect(answer.status).toBe(202);
  expect(await bodyOf(answer)).toEqual({ messageId: "known", sequence: null, delivery: "followUp" });
  const other = await send("POST", messages, { id: "known", text: "sooner" });
  expect(await problemOf(other)).toMatchObject({ status: 409, code: "message_id_conflict" });
});

test("without Postgres requests are 503 and /readyz names it; the failure's text and address stay inside", async () => {
  const dead = await startApi({ databaseUrl: "postgres://nobody:pa55word@127.0.0.1:1/none" });
  for (const path of ["/api/conversations", messages, `/api/conversations/${id}/events`]) {
    const text = await (await dead.get(path)).text();
    expect(text).not.toMatch(/ECONN|127\.0\.0\.1|pa55word|none/);
    expect(JSON.parse(text)).toMatchObject({ status: 503, code: "unavailable" });
  }
  expect(await problemOf(await dead.get("/readyz"))).toMatchObject({ missing: ["postgres", "temporal"] });
});

test("a defect is a 500 with the id of its log entry and without its text", () => {
  const logged: [string, unknown][] = [];
  const error = new Error("secret detail at /internal/path");
  const problem = toProblem(error, (...report) => void logged.push(report));
  expect(problem.code).toBe("internal");
  expect(problem.message).not.toContain("secret");
  expect(logged).toEqual([[problem.members["id"], error]]);
  expect(reports).toEqual([]);
});

test("every code makes a document of the documented shape", async () => {
  for (const code of Object.keys(PROBLEMS) as (keyof typeof PROBLEMS)[]) {
    const response = new Problem(code, "A sentence.").toResponse();
    const body = problemSchema.parse(await response.json());
    expect(body).toMatchObject({ code, status: response.status, detail: "A sentence." });
  }
});
