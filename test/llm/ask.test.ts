import { createServer, type ServerResponse } from "node:http";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import type { Delta } from "../../llm/accumulate.ts";
import { ask, type LlmOutcome } from "../../llm/ask.ts";
import { createClient } from "../../llm/client.ts";
import { Models } from "../../llm/models.ts";
import { buildRequest } from "../../llm/request.ts";
import { dropHere, endHere, failHere, hold, pause } from "../../local/scripted/cues.ts";
import * as script from "../../local/scripted/script.ts";
import { startScriptedServer, type ScriptedServer } from "../../local/scripted/server.ts";
import { toolsFor } from "../tools/support.ts";
import * as m from "./messages.ts";

let server: ScriptedServer;
beforeAll(async () => void (server = await startScriptedServer()));
afterAll(() => server.close());

type Options = {
  readonly signal?: AbortSignal;
  readonly stallMs?: number;
  readonly onDelta?: (delta: Delta) => void;
};
let scripts = 0;

/** Asks the scripted model, which gives this answer. */
async function askFor(answer: script.Answer, options: Options = {}) {
  const key = `ask-${++scripts}`;
  const request = buildRequest({
    messages: m.stored(m.user(`go ${server.script(key, [answer])}`)),
    model: new Models().of("claude-opus-5-5"),
    tools: toolsFor({ isSubAgent: false }),
    system: "You are a coding agent.",
    images: new Map(),
  });
  const deltas: Delta[] = [];
  const outcome = await ask({
    client: createClient({ apiKey: "key", baseURL: server.url }),
    request,
    signal: new AbortController().signal,
    onDelta: (delta) => deltas.push(delta),
    ...options,
  });
  return { outcome, deltas, key };
}

describe("a response", () => {
  test("is what the provider sent, block by block, with its usage", async () => {
    const { outcome, deltas } = await askFor(
      script.answer(
        [
          script.thinking("Let me think about it."),
          script.text("Hällo ", "wörld 🙂, in more than one delta."),
          script.toolCall("bash", { command: "ls", nested: { list: [1, null, "x"] } }, "toolu_1"),
        ],
        {
          usage: {
            input_tokens: 10,
            cache_read_input_tokens: 20,
            cache_creation_input_tokens: 30,
            output_tokens: 40,
          },
        },
      ),
    );
    expect(outcome).toMatchObject({
      kind: "response",
      stopReason: "tool_use",
      defects: [],
      usage: { inputTokens: 10, cacheReadTokens: 20, cacheCreationTokens: 30, outputTokens: 40 },
      content: [
        {
          type: "thinking",
          thinking: "Let me think about it.",
          signature: expect.stringMatching(/./) as string,
        },
        { type: "text", text: "Hällo wörld 🙂, in more than one delta.", citations: null },
        {
          type: "tool_use",
          id: "toolu_1",
          name: "bash",
          input: { command: "ls", nested: { list: [1, null, "x"] } },
        },
      ],
    });
    const shown = (kind: string, index: number) =>
      deltas
        .filter((delta) => delta.kind === kind && delta.index === index)
        .map((delta) => delta.text)
        .join("");
    expect(shown("thinking", 0)).toBe("Let me think about it.");
    expect(shown("text", 1)).toBe("Hällo wörld 🙂, in more than one delta.");
    expect(deltas.length).toBeGreaterThan(2);
  });

  test("can be sent back: the provider accepts the blocks as received", async () => {
    const { outcome } = await askFor(
      script.say(script.thinking("hm"), "Looking.", script.toolCall("ls", {}, "toolu_back")),
    );
    if (outcome.kind !== "response") throw new Error(outcome.kind);
    const key = `ask-${++scripts}`;
    const messages = m.stored(
      m.user(server.script(key, [script.say("Done.")])),
      m.agent(outcome.content, outcome.stopReason),
      m.tool("toolu_back", "a.txt"),
    );
    const request = buildRequest({
      messages,
      model: new Models().of("claude-opus-5-5"),
      tools: toolsFor({ isSubAgent: false }),
      system: "s",
      images: new Map(),
    });
    const client = createClient({ apiKey: "key", baseURL: server.url });
    expect(await ask({ client, request, signal: new AbortController().signal })).toMatchObject({
      kind: "response",
      content: [{ type: "text", text: "Done." }],
    });
  });

  test("keeps blocks and deltas of unknown kinds, and ignores unknown events", async () => {
    const outcome = await askRaw((response) => {
      const event = (data: { readonly type: string }) =>
        response.write(`event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`);
      const delta = (index: number, body: object) =>
        event({ type: "content_block_delta", index, delta: body } as { type: string });
      const start = (index: number, block: object) =>
        event({ type: "content_block_start", index, content_block: block } as { type: string });
      event({ type: "message_start", message: { usage: { input_tokens: 1, output_tokens: 1 } } } as never);
      event({ type: "weather", sky: "blue" } as never);
      start(0, { type: "compaction", content: null });
      delta(0, { type: "compaction_delta", content: "sum" });
      delta(0, { type: "compaction_delta", content: "mary" });
      start(1, { type: "text", text: "see", citations: [] });
      delta(1, { type: "citations_delta", citation: { url: "x" } });
      delta(1, { type: "text_delta", text: " there" });
      start(2, { type: "brand_new", value: { deep: true } });
      event({
        type: "message_delta",
        delta: { stop_reason: "brand_new" },
        usage: { output_tokens: 7 },
      } as never);
      event({ type: "message_stop" });
      response.end();
    });
    expect(outcome).toMatchObject({
      kind: "response",
      stopReason: "brand_new",
      usage: { inputTokens: 1, outputTokens: 7 },
      content: [
        { type: "compaction", content: "summary" },
        { type: "text", text: "see there", citations: [{ url: "x" }] },
        { type: "brand_new", value: { deep: true } },
      ],
    });
  });

  test("leaves a reusable connection, although its end comes after the message's", async () => {
    let connections = 0;
    const ended: Promise<unknown>[] = [];
    const outcomes = await withServer(
      (response) => {
        ended.push(once(response, "close"));
        response.write(MINIMAL);
        setTimeout(() => response.end(), 20);
      },
      async (client) => {
        const first = await askOf(client);
        await Promise.all(ended);
        // The client has to read the end before it can reuse the connection.
        await new Promise((resolve) => setTimeout(resolve, 50));
        return [first, await askOf(client)];
      },
      () => connections++,
    );
    expect(outcomes).toMatchObject([{ kind: "response" }, { kind: "response" }]);
    expect(connections).toBe(1);
  });
});

describe("a call that cannot run", () => {
  const inputs = (outcome: LlmOutcome) =>
    outcome.kind === "response"
      ? outcome.content.filter((block) => block.type === "tool_use").map((block) => block["input"])
      : [];

  test("malformed JSON is a defect of that call and not an empty input that runs", async () => {
    const { outcome } = await askFor(
      script.say(
        "Both.",
        script.rawToolCall("bash", ['{"command": "ls']),
        script.toolCall("bash", { command: "ok" }),
        script.rawToolCall("bash", ["[1]"]),
      ),
    );
    expect(outcome).toMatchObject({
      kind: "response",
      defects: [
        { call: 0, defect: "malformed_json" },
        { call: 2, defect: "malformed_json" },
      ],
    });
    expect(inputs(outcome)).toEqual([{}, { command: "ok" }, {}]);
  });

  test("an input nested thousands of levels deep is a defect, because it could not be serialized again", async () => {
    const deep = (levels: number): string => `${'{"a":'.repeat(levels)}1${"}".repeat(levels)}`;
    const { outcome } = await askFor(
      script.say(script.rawToolCall("bash", [deep(20_000)]), script.rawToolCall("bash", [deep(50)])),
    );
    expect(outcome).toMatchObject({ kind: "response", defects: [{ call: 0, defect: "malformed_json" }] });
  });

  test.each([
    ["in its middle", ['{"command": "ls']],
    ["before it began", []],
  ])("a call that max_tokens cut off %s is truncated", async (_where, pieces) => {
    const { outcome } = await askFor(
      script.answer([script.toolCall("ls", {}), script.rawToolCall("bash", pieces)], {
        stopReason: "max_tokens",
      }),
    );
    expect(outcome).toMatchObject({ kind: "response", defects: [{ call: 1, defect: "truncated" }] });
  });

  test("a call without arguments has no defect", async () => {
    const { outcome } = await askFor(script.say(script.rawToolCall("ls", [])));
    expect(outcome).toMatchObject({ kind: "response", defects: [] });
    expect(inputs(outcome)).toEqual([{}]);
  });
});

describe("REQ-BED-005: an abort", () => {
  test("closes the upstream connection in the middle of an answer, and keeps nothing", async () => {
    const stop = hold();
    const controller = new AbortController();
    const asking = askFor(script.say(script.text("Some text", stop, " and more")), {
      signal: controller.signal,
    });
    await stop.reached;
    controller.abort();
    // The provider says nothing more, so nothing but the abort ends the request.
    const { outcome, key } = await asking;
    expect(outcome).toMatchObject({ kind: "aborted" });
    const request = await server.waitFor((seen) => seen.key === key && seen.end !== null);
    expect(request.closedByClient).toBe(true);
  });

  test("says what the provider had reported until then", async () => {
    const controller = new AbortController();
    const { outcome } = await askFor(
      script.answer([script.text("Some text", hold())], { usage: { input_tokens: 7 } }),
      { signal: controller.signal, onDelta: () => controller.abort() },
    );
    expect(outcome).toMatchObject({ kind: "aborted", usage: { inputTokens: 7 } });
  });

  test("works before the provider has answered at all, and before the request is sent", async () => {
    const stop = hold();
    const controller = new AbortController();
    const asking = askFor(script.answer(["never"], { beforeHeaders: [stop] }), { signal: controller.signal });
    await stop.reached;
    controller.abort();
    const { outcome, key } = await asking;
    expect(outcome).toEqual({ kind: "aborted", usage: null });
    expect((await server.waitFor((seen) => seen.key === key && seen.end !== null)).closedByClient).toBe(true);
    const { outcome: second, key: unasked } = await askFor(script.say("x"), { signal: controller.signal });
    expect(second).toEqual({ kind: "aborted", usage: null });
    expect(server.requestsOf(unasked)).toHaveLength(0);
  });
});

describe("REQ-BED-006: a request that fails on the way can be retried", () => {
  const retryable = { kind: "failed", errorKind: "network", retryable: true };

  test("a provider that only pings has stalled and is disconnected", async () => {
    const stop = hold({ pingEveryMs: 20 });
    const { outcome, key } = await askFor(script.say(script.text("Some text", stop)), { stallMs: 200 });
    expect(outcome).toMatchObject({ ...retryable, message: expect.stringMatching(/sent nothing/) as string });
    expect((await server.waitFor((seen) => seen.key === key && seen.end !== null)).closedByClient).toBe(true);
  });

  test("a provider that never answers has stalled", async () => {
    const { outcome } = await askFor(script.answer(["x"], { beforeHeaders: [hold()] }), { stallMs: 100 });
    expect(outcome).toMatchObject(retryable);
  });

  test("a slow stream whose every event comes in time has not stalled", async () => {
    const slow = [1, 2, 3, 4, 5, 6].flatMap((n) => [`part ${n} `, pause(60)]);
    const { outcome } = await askFor(script.say(script.text(...slow)), { stallMs: 250 });
    expect(outcome).toMatchObject({ kind: "response" });
  });

  test.each([
    ["without message_stop", script.answer(["all of it"], { withoutMessageStop: true })],
    ["in the middle", script.say(script.text("half", endHere))],
    ["cut off", script.say(script.text("half", dropHere))],
    ["before a byte", script.dropConnection()],
  ])("a stream that ends %s is no response", async (_how, answer) => {
    const { outcome } = await askFor(answer);
    expect(outcome).toMatchObject(retryable);
  });

  test("a refused connection can be retried", async () => {
    const gone = await startScriptedServer();
    await gone.close();
    const outcome = await askOf(createClient({ apiKey: "key", baseURL: gone.url }));
    expect(outcome).toMatchObject({
      ...retryable,
      message: expect.stringContaining("ECONNREFUSED") as string,
    });
  });

  test("an answer that breaks the protocol can be retried", async () => {
    expect(await askRaw((response) => response.end("event: message_start\ndata: {oops\n\n"))).toMatchObject(
      retryable,
    );
    expect(
      await askRaw((response) =>
        response.end(
          'event: content_block_delta\ndata: {"type":"content_block_delta","index":3,"delta":{}}\n\n',
        ),
      ),
    ).toMatchObject(retryable);
  });

  test("an error event in mid-stream is classified, and that of an invalid request is final", async () => {
    expect(
      (await askFor(script.say(script.text("half", failHere("overloaded_error"))))).outcome,
    ).toMatchObject({
      kind: "failed",
      errorKind: "overloaded",
      retryable: true,
    });
    expect(
      (await askFor(script.say(script.text("half", failHere("invalid_request_error", "No."))))).outcome,
    ).toMatchObject({ kind: "failed", errorKind: "invalid_request", retryable: false });
  });

  test("a stream that breaks off says what the provider had reported; one that never began says nothing", async () => {
    const usage = { input_tokens: 7, cache_read_input_tokens: 5 };
    const { outcome } = await askFor(script.answer([script.text("half", dropHere)], { usage }));
    expect(outcome).toMatchObject({ kind: "failed", usage: { inputTokens: 7, cacheReadTokens: 5 } });
    expect((await askFor(script.rateLimited(2))).outcome).toMatchObject({ kind: "failed", usage: null });
  });

  test("a request is sent once, and its failure carries the provider's Retry-After", async () => {
    const { outcome, key } = await askFor(script.rateLimited(2));
    expect(outcome).toMatchObject({
      kind: "failed",
      errorKind: "rate_limit",
      retryable: true,
      retryAfterMs: 2_000,
    });
    expect(server.requestsOf(key)).toHaveLength(1);
  });
});

const MINIMAL = [
  { type: "message_start", message: { usage: { input_tokens: 1, output_tokens: 1 } } },
  { type: "message_delta", delta: { stop_reason: "end_turn" }, usage: { output_tokens: 1 } },
  { type: "message_stop" },
]
  .map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`)
  .join("");

const askOf = (client: ReturnType<typeof createClient>): Promise<LlmOutcome> =>
  ask({
    client,
    request: buildRequest({
      messages: m.stored(m.user("go")),
      model: new Models().of("claude-opus-5-5"),
      tools: [],
      system: "s",
      images: new Map(),
    }),
    signal: new AbortController().signal,
    stallMs: 5_000,
  });

/** Asks a server whose response `respond` writes. */
const askRaw = (respond: (response: ServerResponse) => unknown): Promise<LlmOutcome> =>
  withServer(respond, askOf, () => undefined);

async function withServer<T>(
  respond: (response: ServerResponse) => unknown,
  use: (client: ReturnType<typeof createClient>) => Promise<T>,
  onConnection: () => void,
): Promise<T> {
  const raw = createServer((request, response) => {
    request.resume();
    response.writeHead(200, { "content-type": "text/event-stream" });
    respond(response);
  });
  raw.on("connection", onConnection);
  onTestFinished(() => {
    raw.close();
    raw.closeAllConnections();
  });
  raw.listen(0, "127.0.0.1");
  await once(raw, "listening");
  const { port } = raw.address() as AddressInfo;
  return use(createClient({ apiKey: "key", baseURL: `http://127.0.0.1:${port}` }));
}
