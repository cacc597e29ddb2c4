/** The events of a stream, and how scripts disturb it. */
import { describe, expect, test } from "vitest";
import { dropHere, endHere, failHere, hold, pause } from "../../local/scripted/cues.ts";
import type { StreamEvent } from "../../local/scripted/messages.ts";
import {
  answer,
  dropConnection,
  fail,
  overloaded,
  rateLimited,
  rawBlock,
  rawToolCall,
  redactedThinking,
  say,
  text,
  thinking,
  toolCall,
} from "../../local/scripted/script.ts";
import { signThinking } from "../../local/scripted/signature.ts";
import { ask, collect, post, stream, useScriptedServer } from "./support.ts";

const server = useScriptedServer();
const types = (events: readonly StreamEvent[]): string[] => events.map((event) => event.type);
const deltas = (events: readonly StreamEvent[]): object[] =>
  events.flatMap((event) => (event.type === "content_block_delta" ? [event.delta] : []));

/** Events until the connection breaks. */
async function untilCut(events: AsyncGenerator<StreamEvent>): Promise<StreamEvent[]> {
  const seen: StreamEvent[] = [];
  const end = await (async () => {
    for await (const event of events) seen.push(event);
    return "ended in good order";
  })().catch(() => "cut");
  expect(end).toBe("cut");
  return seen;
}

describe.concurrent("a stream", () => {
  test("has the events of the API in their order", async () => {
    const tag = server().script("order", [
      answer(
        [thinking("Hm, hm."), redactedThinking("secret"), "Hello!", toolCall("ls", { path: "." }, "toolu_1")],
        {
          pace: { characters: 4, delayMs: 0 },
        },
      ),
    ]);
    const events = await collect(stream(server(), ask(tag)));
    expect(events[0]).toMatchObject({
      type: "message_start",
      message: {
        id: expect.stringMatching(/^msg_/) as unknown,
        ...{ type: "message", role: "assistant", model: "claude-sonnet-5", content: [], stop_reason: null },
        usage: { output_tokens: 1, cache_read_input_tokens: 0 },
      },
    });
    expect(types(events).filter((type) => type !== "content_block_delta")).toEqual([
      ...["message_start", "ping"],
      ...Array.from({ length: 4 }, () => ["content_block_start", "content_block_stop"]).flat(),
      ...["message_delta", "message_stop"],
    ]);
    expect(deltas(events)).toEqual([
      { type: "thinking_delta", thinking: "Hm, " },
      { type: "thinking_delta", thinking: "hm." },
      { type: "signature_delta", signature: signThinking("Hm, hm.") },
      { type: "text_delta", text: "Hell" },
      { type: "text_delta", text: "o!" },
      { type: "input_json_delta", partial_json: "" },
      { type: "input_json_delta", partial_json: '{"pa' },
      { type: "input_json_delta", partial_json: 'th":' },
      { type: "input_json_delta", partial_json: '"."}' },
    ]);
    expect(events.filter((event) => event.type === "content_block_start")).toMatchObject([
      { index: 0, content_block: { type: "thinking", thinking: "", signature: "" } },
      { index: 1, content_block: { type: "redacted_thinking" } },
      { index: 2, content_block: { type: "text", text: "" } },
      { index: 3, content_block: { type: "tool_use", id: "toolu_1", name: "ls", input: {} } },
    ]);
    expect(events.at(-2)).toMatchObject({
      delta: { stop_reason: "tool_use", stop_sequence: null },
      usage: { output_tokens: expect.any(Number) as unknown },
    });
  });

  test("splits text without breaking characters", async () => {
    const tag = server().script("emoji", [answer(["🙂🙃🙂"], { pace: { characters: 1, delayMs: 0 } })]);
    expect(deltas(await collect(stream(server(), ask(tag))))).toEqual(
      ["🙂", "🙃", "🙂"].map((text) => ({ type: "text_delta", text })),
    );
  });

  test("takes the usage and the stop reason of the script", async () => {
    const usage = { input_tokens: 190_000, output_tokens: 7, cache_read_input_tokens: 3 };
    const tag = server().script("usage", [answer(["x"], { usage, stopReason: "refusal" })]);
    const events = await collect(stream(server(), ask(tag)));
    expect(events[0]).toMatchObject({ message: { usage: { ...usage, output_tokens: 1 } } });
    expect(events.at(-2)).toMatchObject({ delta: { stop_reason: "refusal" }, usage });
  });

  test("sends malformed, repeated and missing tool ids as scripted, and malformed JSON as written", async () => {
    const tag = server().script("malformed", [
      say(toolCall("ls", {}, "a b"), toolCall("ls", {}, ""), rawToolCall("ls", ['{"path": '], "a b")),
    ]);
    const events = await collect(stream(server(), ask(tag)));
    expect(events.filter((event) => event.type === "content_block_start")).toMatchObject([
      { content_block: { id: "a b" } },
      { content_block: { id: "" } },
      { content_block: { id: "a b" } },
    ]);
    expect(deltas(events).at(-1)).toEqual({ type: "input_json_delta", partial_json: '{"path": ' });
  });

  test("is cut off by max_tokens inside a call", async () => {
    const tag = server().script("cut off", [
      answer([rawToolCall("write", ['{"path":"a","content":"on'])], { stopReason: "max_tokens" }),
    ]);
    const events = await collect(stream(server(), ask(tag)));
    expect(events.at(-2)).toMatchObject({ delta: { stop_reason: "max_tokens" } });
  });

  test("pauses a turn after a raw block", async () => {
    const block = { type: "server_tool_use", id: "srvtoolu_1", name: "web_search", input: {} };
    const tag = server().script("raw", [answer([rawBlock(block)], { stopReason: "pause_turn" })]);
    const events = await collect(stream(server(), ask(tag)));
    expect(events).toContainEqual({ type: "content_block_start", index: 0, content_block: block });
  });
});

describe.concurrent("a disturbed stream", () => {
  test("breaks off with an error event", async () => {
    const tag = server().script("error event", [say(text("Hel", failHere("overloaded_error"), "lo"))]);
    const events = await collect(stream(server(), ask(tag)));
    expect(events.at(-1)).toMatchObject({
      type: "error",
      error: { type: "overloaded_error", message: "Overloaded" },
    });
    expect(deltas(events)).toEqual([{ type: "text_delta", text: "Hel" }]);
  });

  test("ends without message_stop", async () => {
    const tag = server().script("no stop", [answer(["x"], { withoutMessageStop: true })]);
    expect(types(await collect(stream(server(), ask(tag)))).at(-1)).toBe("message_delta");
  });

  test("ends in the middle of a block", async () => {
    const tag = server().script("end", [say(text("x", endHere, "y"))]);
    expect(types(await collect(stream(server(), ask(tag)))).at(-1)).toBe("content_block_delta");
  });

  test("is cut in the middle, after everything before was delivered", async () => {
    const tag = server().script("drop", [say(text("x", dropHere, "y"))]);
    expect(deltas(await untilCut(stream(server(), ask(tag))))).toEqual([{ type: "text_delta", text: "x" }]);
    const request = await server().nextRequest("drop", 1);
    await request.ended;
    expect(request).toMatchObject({ end: "cut", closedByClient: false });
  });

  test("is cut before its headers", async () => {
    const tag = server().script("drop before", [dropConnection()]);
    await expect(post(server(), ask(tag))).rejects.toThrow();
    const request = await server().nextRequest("drop before", 1);
    await request.ended;
    expect(request.end).toBe("cut");
  });

  test("stalls before its headers until the test releases it", async () => {
    const gate = hold();
    const tag = server().script("before headers", [answer(["x"], { beforeHeaders: [gate] })]);
    const reply = post(server(), ask(tag));
    await gate.reached;
    expect(server().requestsOf("before headers")[0]?.endedAt).toBeNull();
    gate.release();
    expect(await reply).toMatchObject({ status: 200 });
  });

  test("opens and then stalls with nothing sent", async () => {
    const gate = hold();
    const tag = server().script("before start", [answer(["x"], { beforeStart: [gate] })]);
    const events = stream(server(), ask(tag));
    const first = events.next();
    await gate.reached;
    gate.release();
    expect((await first).value).toMatchObject({ type: "message_start" });
    await events.return(undefined);
  });

  test("stalls with pings only", async () => {
    const gate = hold({ pingEveryMs: 1 });
    const tag = server().script("pings", [say(text("x", gate, "y"))]);
    const seen: StreamEvent[] = [];
    for await (const event of stream(server(), ask(tag))) {
      seen.push(event);
      if (types(seen).filter((type) => type === "ping").length === 4) gate.release();
    }
    const delta = types(seen).indexOf("content_block_delta");
    expect(types(seen).slice(delta + 1, delta + 4)).toEqual(["ping", "ping", "ping"]);
    expect(deltas(seen)).toHaveLength(2);
  });

  test("is slow when paced", async () => {
    const tag = server().script("slow", [
      answer(["abcde", pause(20)], { pace: { characters: 1, delayMs: 20 } }),
    ]);
    const begun = performance.now();
    await collect(stream(server(), ask(tag)));
    // Timers may fire a millisecond early.
    expect(performance.now() - begun).toBeGreaterThan(6 * 19);
  });
});

describe.concurrent("a response that is not streamed", () => {
  test("is the whole message", async () => {
    const tag = server().script("whole", [
      say(thinking(["Hm"]), text("a", "b"), toolCall("ls", { path: "." })),
    ]);
    expect(await post(server(), ask(tag))).toMatchObject({
      status: 200,
      body: {
        ...{ type: "message", role: "assistant", stop_reason: "tool_use" },
        content: [
          { type: "thinking", thinking: "Hm", signature: signThinking("Hm") },
          { type: "text", text: "ab" },
          { type: "tool_use", id: expect.stringMatching(/^toolu_/) as unknown, input: { path: "." } },
        ],
      },
    });
  });

  test("fails as a whole instead of breaking off", async () => {
    const tag = server().script("whole fail", [say("x", failHere("overloaded_error"))]);
    expect(await post(server(), ask(tag))).toMatchObject({
      status: 529,
      body: { error: { type: "overloaded_error" } },
    });
  });
});

describe.concurrent("an error", () => {
  test("has the status of its type, or the script's", async () => {
    const tag = server().script("errors", [
      overloaded(),
      fail("api_error", { status: 503, message: "Down" }),
    ]);
    expect(await post(server(), ask(tag))).toMatchObject({ status: 529 });
    expect(await post(server(), ask(tag))).toMatchObject({
      status: 503,
      body: { error: { type: "api_error", message: "Down" } },
    });
  });

  test("says when to try again", async () => {
    const tag = server().script("rate limit", [rateLimited(7)]);
    const reply = await post(server(), ask(tag));
    expect(reply).toMatchObject({ status: 429, body: { error: { type: "rate_limit_error" } } });
    expect(reply.headers.get("retry-after")).toBe("7");
  });
});
