/** /openapi.json has every route of docs/http.md, and the answers match its schemas. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { conversation as conversationSchema } from "../../api/schemas/conversation.ts";
import { withActions } from "../../api/actions.ts";
import { eventData, type EventName } from "../../api/schemas/event.ts";
import { storedMessage } from "../../api/schemas/message.ts";
import { commit } from "../../db/commit.ts";
import { readEvents } from "../../db/events.ts";
import { readMessages } from "../../db/messages.ts";
import type { Notice } from "../../machine/effect.ts";
import type { MessageBody } from "../../machine/message.ts";
import { conversation as conversationValue } from "../db/arbitraries.ts";
import { chain, createConversation, message, configOf } from "../db/fixtures.ts";
import { BODY_LIMIT } from "../../api/bodies.ts";
import { problemOf, startApi } from "./support.ts";

const { get, db } = await startApi();
const guarded = await startApi({ apiToken: "secret" });
const hurried = await startApi({ apiToken: "secret", uploads: { paceMs: 20 } });

type Schema = { readonly [key: string]: unknown };
type Operation = {
  readonly operationId: string;
  readonly summary: string;
  readonly description: string;
  readonly tags: string[];
  readonly responses: {
    readonly [status: string]: { readonly content?: { readonly [type: string]: Schema } };
  };
};
type Document = {
  readonly openapi: string;
  readonly paths: { readonly [path: string]: { readonly [method: string]: Operation } };
  readonly components: { readonly schemas: { readonly [name: string]: Schema } };
};

const document = (await (await get("/openapi.json")).json()) as Document;
const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({
    route: `${method.toUpperCase()} ${path}`,
    operation,
  })),
);

test("/openapi.json has every route of the contract", () => {
  expect(document.openapi).toBe("3.1.0");
  expect(operations.map(({ route }) => route).sort()).toEqual(
    [
      "POST /api/conversations",
      "GET /api/conversations",
      "POST /api/ai/chat",
      "GET /api/ai/chat/{id}",
      "GET /api/ai/chat/{id}/stream",
      "GET /api/conversations/{id}",
      "PATCH /api/conversations/{id}",
      "DELETE /api/conversations/{id}",
      "GET /api/conversations/{id}/messages",
      "POST /api/conversations/{id}/messages",
      "DELETE /api/conversations/{id}/queue/{messageId}",
      "POST /api/conversations/{id}/cancel",
      "POST /api/conversations/{id}/approval",
      "POST /api/conversations/{id}/mode",
      "POST /api/conversations/{id}/queue/release",
      "POST /api/conversations/{id}/continuation",
      "GET /api/conversations/{id}/cycles",
      "GET /api/conversations/{id}/cycles/{cycleId}/trace",
      "GET /api/conversations/{id}/children",
      "GET /api/conversations/{id}/images/{hash}",
      "GET /api/conversations/{id}/events",
      "POST /api/conversations/{id}/codec/encode",
      "POST /api/conversations/{id}/codec/decode",
      "POST /api/codec/decode",
      "GET /api/events",
      "GET /api/stream",
      "POST /api/stream/{streamId}",
      "GET /api/models",
      "GET /api/directories",
      "GET /api/hosts",
      "GET /api/spending",
      "GET /healthz",
      "GET /readyz",
      "GET /metrics",
    ].sort(),
  );
});

test("every operation has an id, a summary, a description and a tag, and describes its problems as such", () => {
  expect(new Set(operations.map(({ operation }) => operation.operationId)).size).toBe(operations.length);
  for (const { route, operation } of operations) {
    expect(operation.summary.length, route).toBeGreaterThan(3);
    expect(operation.description.length, route).toBeGreaterThan(3);
    expect(operation.tags, route).toHaveLength(1);
    for (const [status, { content }] of Object.entries(operation.responses)) {
      if (Number(status) >= 400)
        expect(Object.keys(content ?? {}), route).toEqual(["application/problem+json"]);
    }
  }
});

const authorization = "Bearer secret";
const json = { authorization, "content-type": "application/json" };
const stalling = () => new ReadableStream({ start: (controller) => controller.enqueue(new Uint8Array(1)) });

/** Requests that every route refuses; `ofReads` says whether a GET does, too. */
const REFUSED: readonly (readonly [status: number, init: () => RequestInit, ofReads: boolean])[] = [
  [401, () => ({}), true],
  [403, () => ({ headers: { authorization, host: "evil.example" } }), true],
  [403, () => ({ headers: { authorization, origin: "http://evil.example" } }), true],
  [415, () => ({ headers: { ...json, "content-type": "text/plain" }, body: "x" }), false],
  [413, () => ({ headers: { ...json, "content-length": String(BODY_LIMIT + 1) }, body: "x" }), false],
  [413, () => ({ headers: json, body: new Uint8Array(BODY_LIMIT + 1) }), false],
  [400, () => ({ headers: json, body: new Uint8Array([0xff]) }), false],
  [408, () => ({ headers: json, body: stalling(), duplex: "half" }), false],
];

test.each(operations)(
  "$route describes each refusal that precedes its handler",
  async ({ route, operation }) => {
    const [method = "", path = ""] = route.replaceAll(/\{\w+\}/g, "x").split(" ");
    const described = Object.keys(operation.responses).map(Number);
    const isProbe = path === "/healthz" || path === "/readyz";
    // The server refuses these before the app: no HTTP, no address as Host, headers too long or slow (serve.test.ts).
    expect(described).toEqual(expect.arrayContaining([400, 408, 431]));
    for (const [status, init, ofReads] of REFUSED) {
      if ((method === "GET" && !ofReads) || (isProbe && status === 401)) continue;
      const { get } = status === 408 ? hurried : guarded;
      const answer = await problemOf(await get(path, { ...init(), method }));
      expect(answer.status, route).toBe(status);
      expect(described, route).toContain(status);
    }
    expect(described.includes(415), route).toBe(method !== "GET");
    expect(described.includes(401), route).toBe(!isProbe);
  },
);

test("every reference names an existing schema", () => {
  const references = [...JSON.stringify(document).matchAll(/"\$ref":"#\/components\/schemas\/([^"]+)"/g)];
  expect(references.length).toBeGreaterThan(10);
  for (const [, name = ""] of references) expect(document.components.schemas).toHaveProperty([name]);
});

test("every event of the contract is described under its name", () => {
  for (const name of Object.keys(eventData)) {
    expect(document.components.schemas).toHaveProperty([`Event.${name}`]);
  }
});

test("any conversation matches its schema: no field is missing there, none is wrong", async () => {
  await fc.assert(
    fc.asyncProperty(conversationValue, async (value) => {
      const { id } = await createConversation(db, { conversation: value });
      const shown: unknown = await (await get(`/api/conversations/${id}`)).json();
      // A schema strips the fields that it does not know.
      expect(conversationSchema.parse(shown)).toEqual(shown);
    }),
    { numRuns: 60 },
  );
});

const tokens = { inputTokens: 1, outputTokens: 2, cacheReadTokens: 3, cacheCreationTokens: 4 };
const text = [{ type: "text", text: "x" }] as const;
const bodies: MessageBody[] = [
  { type: "user", actor: "human", content: text, display: { kind: "steer" } },
  {
    type: "agent",
    actor: "llm_agent",
    content: [
      { type: "thinking", thinking: "…", signature: "s" },
      { type: "tool_use", id: "t", name: "bash", input: { a: [1, null] } },
    ],
    usage: tokens,
    display: { requestId: "r", stopReason: "tool_use", durationMs: 3 },
  },
  {
    type: "tool",
    actor: "system",
    content: [{ toolCallId: "t", name: "bash", status: "failed", output: text, durationMs: 1 }],
  },
  {
    type: "tool",
    actor: "system",
    content: [{ toolCallId: "t2", name: "write", status: "completed", output: text, durationMs: 1 }],
    display: {
      diffs: [
        { path: "/a", change: "created", diff: "+x\n", addedLines: 1, removedLines: 0, truncated: false },
      ],
    },
  },
  { type: "system", actor: "system", content: text },
  { type: "note", actor: "system", content: text },
  { type: "error", actor: "system", content: [{ errorKind: "network", message: "gone" }] },
  { type: "continuation", actor: "llm_agent", content: [{ summary: "so far" }] },
  { type: "run_stop", actor: "system", content: [{ reason: "completed" }] },
];
const notices: Notice[] = [
  { name: "state.changed", data: { state: { kind: "idle" }, cycleId: "m1" } },
  { name: "mode.changed", data: { mode: "restricted", by: "user" } },
  { name: "queue.changed", data: { queue: [], queueHeld: null } },
  {
    name: "usage.changed",
    data: { usage: { ...tokens, contextUsed: 9, contextWindow: 100, contextRatio: 0.09, warning: false } },
  },
  { name: "context.warned", data: { contextRatio: 0.8 } },
  { name: "context.exhausted", data: { summary: "s", source: "model" } },
  {
    name: "llm.retry_scheduled",
    data: { attempt: 2, delayMs: 10, at: "2026-01-01T00:00:00.000Z", errorKind: "overloaded", message: "m" },
  },
  { name: "subagent.spawned", data: { id: "c", task: "t" } },
  { name: "subagent.finished", data: { id: "c", outcome: { success: true, result: "r" } } },
];

test("every message and every durable event matches its schema", async () => {
  const { id, head } = await createConversation(db, {}, { config: configOf("described") });
  const messages = bodies.map((body, index) => message(index + 1, body));
  await commit(db, id, chain([{ messages, notices, archived: true }], head));
  for (const stored of await readMessages(db, id, { limit: 100 })) {
    expect(storedMessage.parse(stored)).toEqual(stored);
  }
  const events = await readEvents(db, id, 0, 100);
  expect(new Set(events.map((event) => event.name))).toEqual(
    new Set(["message.added", "conversation.changed", ...notices.map((notice) => notice.name)]),
  );
  for (const event of events) {
    const shown = withActions(id, event);
    expect(eventData[event.name satisfies EventName].parse(shown)).toEqual(shown);
  }
});
