/** The real SDK against the server. Neither was written with the other. */
import Anthropic from "@anthropic-ai/sdk";
import { describe, expect, test } from "vitest";
import { failHere, hold } from "../../local/scripted/cues.ts";
import { rateLimited, redactedThinking, say, text, thinking, toolCall } from "../../local/scripted/script.ts";
import { connect, useScriptedServer } from "./support.ts";

const server = useScriptedServer();
const tools: Anthropic.Tool[] = [{ name: "ls", input_schema: { type: "object" } }];
const params = (content: string): Anthropic.MessageCreateParamsNonStreaming => ({
  ...{ model: "claude-sonnet-5", max_tokens: 1000, tools },
  messages: [{ role: "user", content }],
});

describe.concurrent("the SDK", () => {
  test("reads a message", async () => {
    const tag = server().script("message", [say("Hello", toolCall("ls", { path: "." }, "toolu_1"))]);
    const message = await connect(server()).messages.create(params(tag));
    expect(message).toMatchObject({ role: "assistant", stop_reason: "tool_use", model: "claude-sonnet-5" });
    expect(message.content).toMatchObject([
      { type: "text", text: "Hello" },
      { type: "tool_use", id: "toolu_1", name: "ls", input: { path: "." } },
    ]);
    expect(message._request_id).toMatch(/^req_/);
  });

  test("puts a stream together, and gets it accepted back as it was", async () => {
    const tag = server().script("stream", [
      say(
        thinking("Hm, what is there?"),
        redactedThinking("secret"),
        text("Let me ", "see."),
        toolCall("ls", { path: "a" }),
      ),
      say("Nothing."),
    ]);
    const client = connect(server());
    const first = params(tag);
    const message = await client.messages.stream(first).finalMessage();
    expect(message.content).toMatchObject([
      { type: "thinking", thinking: "Hm, what is there?" },
      { type: "redacted_thinking" },
      { type: "text", text: "Let me see." },
      { type: "tool_use", name: "ls", input: { path: "a" } },
    ]);
    const call = message.content.find((block) => block.type === "tool_use");
    const second = await client.messages.create({
      ...first,
      messages: [
        ...first.messages,
        { role: "assistant", content: message.content },
        { role: "user", content: [{ type: "tool_result", tool_use_id: call?.id ?? "", content: "(empty)" }] },
      ],
    });
    expect(second.content).toMatchObject([{ type: "text", text: "Nothing." }]);
  });

  test("throws the error of a refusal", async () => {
    const refused = connect(server()).messages.create({ ...params("x"), messages: [] });
    const error: unknown = await refused.catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(Anthropic.BadRequestError);
    expect(error).toMatchObject({ status: 400, type: "invalid_request_error" });
  });

  test("throws the error of a rate limit with its headers", async () => {
    const tag = server().script("limit", [rateLimited(3)]);
    const error: unknown = await connect(server())
      .messages.create(params(tag))
      .catch((reason: unknown) => reason);
    if (!(error instanceof Anthropic.RateLimitError)) throw error;
    expect(error.headers.get("retry-after")).toBe("3");
  });

  test("throws the error event of a stream", async () => {
    const tag = server().script("event", [say(text("Hel", failHere("overloaded_error"), "lo"))]);
    const error: unknown = await connect(server())
      .messages.stream(params(tag))
      .finalMessage()
      .catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(Anthropic.APIError);
    expect(error).toMatchObject({ type: "overloaded_error" });
  });

  test("closes the connection when it is aborted, and the server knows", async () => {
    const gate = hold();
    const tag = server().script("abort", [say(text("Hel", gate, "lo"))]);
    const running = connect(server()).messages.stream(params(tag));
    const failed = running.finalMessage().catch((reason: unknown) => reason);
    await gate.reached;
    running.abort();
    expect(await failed).toBeInstanceOf(Anthropic.APIUserAbortError);
    const request = await server().nextRequest("abort", 1);
    await request.ended;
    expect(request.closedByClient).toBe(true);
  });

  test("lists models and counts tokens", async () => {
    const client = connect(server());
    const models = await client.models.list();
    expect(models.data.map((model) => model.id)).toContain("claude-opus-5-5");
    const { messages, model } = params("Hello.");
    expect((await client.messages.countTokens({ messages, model })).input_tokens).toBeGreaterThan(0);
  });
});
