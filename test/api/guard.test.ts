/** Which requests the API accepts: every web page can reach a loopback port. */
import { describe, expect, test } from "vitest";
import { BODY_LIMIT } from "../../api/bodies.ts";
import { createConversation } from "../db/fixtures.ts";
import { problemOf, startApi } from "./support.ts";

const { get, send, db } = await startApi();
const LIST = "/api/conversations";

describe("Host", () => {
  test.each(["localhost:3000", "127.0.0.1", "127.0.0.1:8080", "[::1]:3000", "LOCALHOST"])(
    "%s is accepted",
    async (host) => {
      expect((await get(LIST, { headers: { host } })).status).toBe(200);
    },
  );

  test.each([
    "evil.example",
    "evil.example:3000",
    "localhost.evil.example",
    "127.0.0.1.evil.example",
    "192.168.1.5",
    "::",
    "",
  ])("%j is refused as a rebound name", async (host) => {
    const answer = await problemOf(await get(LIST, { headers: { host } }));
    expect(answer).toMatchObject({ status: 403, code: "forbidden_origin" });
  });

  test("a rebound name in the request line is refused, too", async () => {
    const answer = await problemOf(await get("http://evil.example/api/conversations"));
    expect(answer).toMatchObject({ status: 403, code: "forbidden_origin" });
  });

  test("the configured address is accepted; an API that listens on all addresses accepts any name", async () => {
    const named = await startApi({ host: "192.168.1.5", apiToken: "secret" });
    const authorization = "Bearer secret";
    expect((await named.get(`http://192.168.1.5:3000${LIST}`, { headers: { authorization } })).status).toBe(
      200,
    );
    expect((await named.get(`http://192.168.1.6:3000${LIST}`, { headers: { authorization } })).status).toBe(
      403,
    );
    const all = await startApi({ host: "0.0.0.0", apiToken: "secret" });
    expect((await all.get(`http://server.lan:3000${LIST}`, { headers: { authorization } })).status).toBe(200);
  });
});

describe("Origin", () => {
  test("the same origin, or none, is served", async () => {
    expect((await get("http://localhost:3000/api/models")).status).toBe(200);
    const headers = { host: "localhost:3000", origin: "http://localhost:3000" };
    expect((await get("http://localhost:3000/api/models", { headers })).status).toBe(200);
  });

  const foreign = [
    "https://evil.example",
    "null",
    "http://localhost:5173",
    "http://127.0.0.1:3000",
    "garbage",
    "file://",
  ];
  test.each(foreign)("%s is refused, for streams and preflights too", async (origin) => {
    const { id } = await createConversation(db);
    const headers = { host: "localhost:3000", origin };
    for (const [method, path] of [
      ["GET", LIST],
      ["GET", "/api/events"],
      ["GET", `/api/conversations/${id}/events`],
      ["POST", `/api/conversations/${id}/cancel`],
      ["OPTIONS", LIST],
    ] as const) {
      const response = await get(path, { method, headers });
      expect(await problemOf(response)).toMatchObject({ status: 403, code: "forbidden_origin" });
      expect(response.headers.has("access-control-allow-origin")).toBe(false);
    }
  });

  test("a cross-site request without an Origin is refused; a link from another site works", async () => {
    const noCors = { "sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors" };
    expect((await get("/api/events", { headers: noCors })).status).toBe(403);
    const link = { "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate" };
    expect((await get("/openapi.json", { headers: link })).status).toBe(200);
    const own = { "sec-fetch-site": "same-origin", "sec-fetch-mode": "cors" };
    expect((await get(LIST, { headers: own })).status).toBe(200);
  });
});

describe("token", () => {
  test("is required everywhere except for probes and the contract, and only in its header", async () => {
    const guarded = await startApi({ apiToken: "s3cret" });
    for (const path of [LIST, "/api/events", "/metrics", "/unknown", `${LIST}?token=s3cret`]) {
      const response = await guarded.get(path);
      expect(response.headers.get("www-authenticate")).toBe("Bearer");
      expect(await problemOf(response)).toMatchObject({ status: 401, code: "unauthorized" });
    }
    for (const authorization of ["Bearer wrong", "Bearer s3cre", "Basic s3cret", "s3cret", "Bearer"]) {
      expect((await guarded.get(LIST, { headers: { authorization } })).status).toBe(401);
    }
    for (const authorization of ["Bearer s3cret", "bearer s3cret"]) {
      expect((await guarded.get(LIST, { headers: { authorization } })).status).toBe(200);
    }
    for (const path of ["/healthz", "/openapi.json"]) expect((await guarded.get(path)).status).toBe(200);
  });
});

describe("body", () => {
  test.each([
    "text/plain",
    "application/x-www-form-urlencoded",
    "multipart/form-data; boundary=x",
    "application/jsonp",
    "application/json; charset=iso-8859-1",
  ])("of type %s is refused", async (type) => {
    const response = await send("POST", LIST, '{"cwd":"/"}', { "content-type": type });
    expect(await problemOf(response)).toMatchObject({ status: 415, code: "unsupported_media_type" });
  });

  test("without a type is refused", async () => {
    const response = await get(LIST, { method: "POST", body: new TextEncoder().encode('{"cwd":"/"}') });
    expect(await problemOf(response)).toMatchObject({ status: 415, code: "unsupported_media_type" });
  });

  test("with the charset UTF-8 is read", async () => {
    const response = await send("POST", LIST, "{}", { "content-type": "application/json; charset=utf-8" });
    expect(await problemOf(response)).toMatchObject({ status: 422 });
  });

  test("that is not UTF-8 is refused: it would be stored as something else", async () => {
    const body = Buffer.from('{"cwd":"/ü"}', "latin1");
    const headers = { "content-type": "application/json" };
    const response = await get(LIST, { method: "POST", body, headers });
    expect(await problemOf(response)).toMatchObject({ status: 400, code: "malformed_json" });
  });

  test("over the limit is refused, announced or not", async () => {
    const announced = await send("POST", LIST, "{}", { "content-length": String(BODY_LIMIT + 1) });
    expect(await problemOf(announced)).toMatchObject({ status: 413, code: "payload_too_large" });
    const streamed = await send("POST", LIST, `{"cwd":"${"x".repeat(BODY_LIMIT)}"}`);
    expect(await problemOf(streamed)).toMatchObject({ status: 413, code: "payload_too_large" });
  });
});

test("answers cannot be sniffed, embedded or cached", async () => {
  const { headers } = await get(LIST);
  expect(headers.get("x-content-type-options")).toBe("nosniff");
  expect(headers.get("cross-origin-resource-policy")).toBe("same-origin");
  expect(headers.get("cache-control")).toBe("no-store");
});
