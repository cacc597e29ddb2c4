/** Headers, routes and bodies: the decisions before a request is validated or scripted. */
import { describe, expect, test } from "vitest";
import type { JsonObject } from "../../local/scripted/messages.ts";
import { say } from "../../local/scripted/script.ts";
import { MAX_BODY_BYTES } from "../../local/scripted/server.ts";
import { ask, HEADERS, post, useScriptedServer } from "./support.ts";

const server = useScriptedServer({ apiKey: "test", fallback: () => say("Fine.") });
const without = (name: string): { [name: string]: string } =>
  Object.fromEntries(Object.entries(HEADERS).filter(([header]) => header !== name));

describe.concurrent("headers", () => {
  test("a request without a key is 401", async () => {
    expect(await post(server(), ask("Hello."), "/v1/messages", without("x-api-key"))).toMatchObject({
      status: 401,
      body: {
        type: "error",
        error: { type: "authentication_error", message: "x-api-key header is required" },
      },
    });
  });

  test("a request with another key is 401", async () => {
    expect(
      await post(server(), ask("Hello."), "/v1/messages", { ...HEADERS, "x-api-key": "no" }),
    ).toMatchObject({
      status: 401,
      body: { error: { type: "authentication_error", message: "invalid x-api-key" } },
    });
  });

  test("a bearer token is a key, too", async () => {
    const headers = { ...without("x-api-key"), authorization: "Bearer test" };
    expect(await post(server(), ask("Hello."), "/v1/messages", headers)).toMatchObject({ status: 200 });
  });

  test("a request without a version is 400", async () => {
    expect(await post(server(), ask("Hello."), "/v1/messages", without("anthropic-version"))).toMatchObject({
      status: 400,
      body: { error: { type: "invalid_request_error", message: "anthropic-version: header is required" } },
    });
  });

  test("a request of the previous version is accepted", async () => {
    const headers = { ...HEADERS, "anthropic-version": "2023-06-01" };
    expect(await post(server(), ask("Hello."), "/v1/messages", headers)).toMatchObject({ status: 200 });
  });

  test("a request of an unknown version is 400", async () => {
    const headers = { ...HEADERS, "anthropic-version": "2030-01-01" };
    expect(await post(server(), ask("Hello."), "/v1/messages", headers)).toMatchObject({ status: 400 });
  });
});

describe.concurrent("bodies", () => {
  test("a body that is not JSON is 400", async () => {
    const response = await fetch(`${server().url}/v1/messages`, {
      method: "POST",
      headers: HEADERS,
      body: "{",
    });
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({
      error: { type: "invalid_request_error", message: "The request body is not valid JSON" },
    });
  });

  test("a body of 32 MB is read, a byte more is 413", async () => {
    const send = (bytes: number): Promise<Response> => {
      const body = JSON.stringify(ask("Hello.")).padEnd(bytes, " ");
      return fetch(`${server().url}/v1/messages`, { method: "POST", headers: HEADERS, body });
    };
    expect((await send(MAX_BODY_BYTES)).status).toBe(200);
    const refused = await send(MAX_BODY_BYTES + 1);
    expect(refused.status).toBe(413);
    expect(await refused.json()).toMatchObject({ type: "error", error: { type: "request_too_large" } });
  });
});

describe.concurrent("routes", () => {
  test("GET /v1/models lists the models, and each has a page", async () => {
    const list = await fetch(`${server().url}/v1/models`, { headers: HEADERS });
    expect(await list.json()).toMatchObject({
      data: expect.arrayContaining([
        expect.objectContaining({ id: "scripted-demo", type: "model", max_input_tokens: 200_000 }),
        expect.objectContaining({ id: "claude-opus-5-5" }),
      ]) as unknown,
      has_more: false,
      first_id: "scripted-demo",
    });
    const one = await fetch(`${server().url}/v1/models/claude-opus-5-5`, { headers: HEADERS });
    expect(await one.json()).toMatchObject({ id: "claude-opus-5-5", display_name: "Claude Opus 5.5" });
    expect((await fetch(`${server().url}/v1/models/none`, { headers: HEADERS })).status).toBe(404);
  });

  test("count_tokens counts tools, system and messages, and refuses what messages refuses", async () => {
    const count = async (more: JsonObject): Promise<number> => {
      const body = { model: "claude-sonnet-5", messages: [{ role: "user", content: "Hello." }], ...more };
      const reply = await post(server(), body, "/v1/messages/count_tokens");
      expect(reply.status).toBe(200);
      return Number(reply.body["input_tokens"]);
    };
    const bare = await count({});
    expect(bare).toBeGreaterThan(0);
    expect(await count({ system: "x".repeat(4000) })).toBeGreaterThan(bare + 1000);
    const tools = [{ name: "bash", description: "x".repeat(4000), input_schema: { type: "object" } }];
    expect(await count({ tools })).toBeGreaterThan(bare + 1000);
    expect(await post(server(), ask("Hello."), "/v1/messages/count_tokens")).toMatchObject({
      status: 400,
      body: { error: { message: "max_tokens: Extra inputs are not permitted" } },
    });
  });

  test("any other route is 404", async () => {
    expect(await post(server(), ask("Hello."), "/v1/complete")).toMatchObject({
      status: 404,
      body: { error: { type: "not_found_error" } },
    });
    expect((await fetch(`${server().url}/v1/messages`, { headers: HEADERS })).status).toBe(404);
  });
});
