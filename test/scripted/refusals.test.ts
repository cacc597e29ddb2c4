/** This server refuses what the API refuses. Each case is one defect; the same request without it passes. */
import { describe, expect, test } from "vitest";
import type { Json, JsonObject } from "../../local/scripted/messages.ts";
import { MAX_IMAGE_BYTES } from "../../local/scripted/images.ts";
import { say } from "../../local/scripted/script.ts";
import { redact, signThinking } from "../../local/scripted/signature.ts";
import { ask, imageBlock, imageFile, post, useScriptedServer } from "./support.ts";

const server = useScriptedServer({ fallback: () => say("Fine.") });

const bash = { name: "bash", description: "Runs a command.", input_schema: { type: "object" } };
const user = (...content: Json[]): JsonObject => ({ role: "user", content });
const assistant = (...content: Json[]): JsonObject => ({ role: "assistant", content });
const text = (text: string): JsonObject => ({ type: "text", text });
const call = (id: string): JsonObject => ({ type: "tool_use", id, name: "bash", input: {} });
const result = (id: string, more: JsonObject = {}): JsonObject => ({
  type: "tool_result",
  tool_use_id: id,
  content: "done",
  ...more,
});
const messages = (...list: Json[]): JsonObject => ask("", { messages: list, tools: [bash] });
const hello = user(text("Hello."));
const bye = user(text("Bye."));
const mark = { cache_control: { type: "ephemeral" } };
const marked = (count: number): Json[] => Array.from({ length: count }, () => ({ ...text("x"), ...mark }));
const thought = { type: "thinking", thinking: "Hm.", signature: signThinking("Hm.") };
const png = (width: number, height: number): JsonObject => imageBlock(imageFile("image/png", width, height));
const withoutField = (name: string): JsonObject =>
  Object.fromEntries(Object.entries(ask("Hello.")).filter(([field]) => field !== name));
const budget = (budget_tokens: number): JsonObject => ({
  model: "claude-haiku-4-5",
  thinking: { type: "enabled", budget_tokens },
});
const serverCall = { type: "server_tool_use", id: "srvtoolu_1", name: "web_search", input: {} };

type Case = {
  readonly rule: string;
  readonly broken: Json;
  readonly valid: JsonObject;
  readonly says: string | RegExp;
};

const cases: readonly Case[] = [
  {
    rule: "a tool_use has its tool_result in the next message",
    broken: messages(hello, assistant(call("a")), bye),
    valid: messages(hello, assistant(call("a")), user(result("a"))),
    says: "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: a. Each `tool_use` block must have a corresponding `tool_result` block in the next message.",
  },
  {
    rule: "each of several tool_uses has its tool_result",
    broken: messages(hello, assistant(call("a"), call("b")), user(result("a"))),
    valid: messages(hello, assistant(call("a"), call("b")), user(result("b"), result("a"))),
    says: /messages\.1: `tool_use` ids were found without .* after: b\./,
  },
  {
    rule: "a tool_result has its tool_use in the previous message",
    broken: messages(hello, assistant(text("Hm.")), user(result("a"))),
    valid: messages(hello, assistant(text("Hm."), call("a")), user(result("a"))),
    says: /messages\.2\.content\.0: unexpected `tool_use_id` found in `tool_result` blocks: a\./,
  },
  {
    rule: "a tool_result does not come later than the next message",
    broken: messages(hello, assistant(call("a")), user(result("a")), assistant(text("x")), user(result("a"))),
    valid: messages(hello, assistant(call("a")), user(result("a")), assistant(text("x")), bye),
    says: /messages\.4\.content\.0: unexpected `tool_use_id`/,
  },
  {
    rule: "tool_results come first in their message",
    broken: messages(hello, assistant(call("a")), user(text("Stop."), result("a"))),
    valid: messages(hello, assistant(call("a")), user(result("a"), text("Stop."))),
    says: /`tool_use` ids were found without `tool_result` blocks immediately after: a/,
  },
  {
    rule: "a tool_use has one result only",
    broken: messages(hello, assistant(call("a")), user(result("a"), result("a"))),
    valid: messages(hello, assistant(call("a")), user(result("a"))),
    says: "messages.2.content.1: each tool_use must have a single result. Found multiple `tool_result` blocks with id: a",
  },
  {
    rule: "tool ids are not used twice in one message",
    broken: messages(hello, assistant(call("a"), call("a")), user(result("a"))),
    valid: messages(hello, assistant(call("a"), call("b")), user(result("a"), result("b"))),
    says: "messages.1.content.1: `tool_use` ids must be unique",
  },
  {
    rule: "tool ids are not used again later",
    broken: messages(hello, assistant(call("a")), user(result("a")), assistant(call("a")), user(result("a"))),
    valid: messages(hello, assistant(call("a")), user(result("a")), assistant(call("b")), user(result("b"))),
    says: "messages.3.content.0: `tool_use` ids must be unique",
  },
  ...["", "a b", "a.b", "ä", "call:1"].map((id) => ({
    rule: `a tool id is well-formed (not "${id}")`,
    broken: messages(hello, assistant(call(id)), user(result(id))),
    valid: messages(hello, assistant(call("toolu_01-x")), user(result("toolu_01-x"))),
    says: "messages.1.content.0.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'",
  })),
  {
    rule: "a tool_use's input is an object",
    broken: messages(hello, assistant({ ...call("a"), input: "ls" }), user(result("a"))),
    valid: messages(hello, assistant({ ...call("a"), input: { command: "ls" } }), user(result("a"))),
    says: "messages.1.content.0.tool_use.input: Input should be a valid dictionary",
  },
  {
    rule: "an error has a content",
    broken: messages(hello, assistant(call("a")), user(result("a", { is_error: true, content: "" }))),
    valid: messages(hello, assistant(call("a")), user(result("a", { is_error: false, content: "" }))),
    says: "messages.2.content.0.tool_result: content cannot be empty if `is_error` is true",
  },
  {
    rule: "an error is text only",
    broken: messages(
      hello,
      assistant(call("a")),
      user(result("a", { is_error: true, content: [png(1, 1)] })),
    ),
    valid: messages(hello, assistant(call("a")), user(result("a", { content: [png(1, 1)] }))),
    says: "messages.2.content.0.tool_result: all content must be type `text` if `is_error` is true",
  },
  {
    rule: "a history with tools defines tools",
    broken: ask("", { messages: [hello, assistant(call("a")), user(result("a"))] }),
    valid: messages(hello, assistant(call("a")), user(result("a"))),
    says: "Requests which include `tool_use` or `tool_result` blocks must define tools.",
  },
  {
    rule: "a tool_result is the user's",
    broken: messages(hello, assistant(result("a")), bye),
    valid: messages(hello, assistant(text("x")), bye),
    says: "messages.1: `tool_result` blocks can only be in `user` messages",
  },
  {
    rule: "a tool_use is the assistant's",
    broken: messages(user(call("a"))),
    valid: messages(user(text("a"))),
    says: "messages.0: `tool_use` blocks can only be in `assistant` messages",
  },
  {
    rule: "a text is not empty",
    broken: messages(hello, assistant(text("")), bye),
    valid: messages(hello, assistant(text("x")), bye),
    says: "messages: text content blocks must be non-empty",
  },
  {
    rule: "a text is not white space",
    broken: messages(user(text("x"), text(" \n\t"))),
    valid: messages(user(text("x"), text(" \n.\t"))),
    says: "messages: text content blocks must contain non-whitespace text",
  },
  {
    rule: "a text in a tool_result is not empty",
    broken: messages(hello, assistant(call("a")), user(result("a", { content: [text("")] }))),
    valid: messages(hello, assistant(call("a")), user(result("a", { content: [text("(no output)")] }))),
    says: "messages: text content blocks must be non-empty",
  },
  {
    rule: "a text of the system prompt is not empty",
    broken: ask("Hello.", { system: [text("")] }),
    valid: ask("Hello.", { system: [text("Be brief.")] }),
    says: "system: text content blocks must be non-empty",
  },
  {
    rule: "a string is not white space",
    broken: ask("  "),
    valid: ask(" x "),
    says: "messages: text content blocks must contain non-whitespace text",
  },
  {
    rule: "the user's content is not empty",
    broken: messages(user()),
    valid: messages(hello),
    says: "messages.0: user messages must have non-empty content",
  },
  {
    rule: "the user's string is not empty",
    broken: ask(""),
    valid: ask("x"),
    says: "messages.0: user messages must have non-empty content",
  },
  {
    rule: "the assistant's content is not empty",
    broken: messages(hello, assistant(), bye),
    valid: messages(hello, assistant(text("x")), bye),
    says: "messages.1: all messages must have non-empty content except for the optional final assistant message",
  },
  {
    rule: "the last message is the user's",
    broken: messages(hello, assistant(text("Let me"))),
    valid: messages(hello, assistant(text("Let me")), bye),
    says: "This model does not support assistant message prefill. The conversation must end with a user message.",
  },
  {
    rule: "an empty last message of the assistant is a prefill, too",
    broken: messages(hello, assistant()),
    valid: messages(hello),
    says: /does not support assistant message prefill/,
  },
  {
    rule: "only a turn paused in a server tool may end with the assistant",
    broken: messages(hello, assistant(serverCall, text("Hm."))),
    valid: messages(hello, assistant(text("Hm."), serverCall)),
    says: /does not support assistant message prefill/,
  },
  {
    rule: "the first message is the user's",
    broken: messages(assistant(text("Hi.")), hello),
    valid: messages(hello, assistant(text("Hi.")), hello),
    says: 'messages: first message must use the "user" role',
  },
  {
    rule: "there is a message",
    broken: messages(),
    valid: messages(hello),
    says: "messages: at least one message is required",
  },
  {
    rule: "there is no system role",
    broken: messages({ role: "system", content: "Be brief." }, hello),
    valid: ask("Hello.", { system: "Be brief." }),
    says: /^messages: Unexpected role "system"/,
  },
  {
    rule: "a role is user or assistant",
    broken: messages({ role: "tool", content: "x" }),
    valid: messages({ role: "user", content: "x" }),
    says: "messages.0.role: Input should be 'user' or 'assistant'",
  },
  {
    rule: "an image has one of four media types",
    broken: messages(user(imageBlock(imageFile("image/png", 1, 1), "image/svg+xml"))),
    valid: messages(user(png(1, 1))),
    says: "messages.0.content.0.image.source.base64.media_type: Input should be 'image/jpeg', 'image/png', 'image/gif' or 'image/webp'",
  },
  {
    rule: "an image is what its media type says",
    broken: messages(user(imageBlock(imageFile("image/jpeg", 1, 1), "image/png"))),
    valid: messages(user(imageBlock(imageFile("image/jpeg", 1, 1), "image/jpeg"))),
    says: "messages.0.content.0.image.source.base64.data: Image does not match the provided media type image/png",
  },
  {
    rule: "an image is base64",
    broken: messages(
      user({ type: "image", source: { type: "base64", media_type: "image/png", data: "%%%%" } }),
    ),
    valid: messages(user(png(1, 1))),
    says: "messages.0.content.0.image.source.base64.data: Invalid base64 data",
  },
  {
    rule: "an image is not a data URL",
    broken: messages(
      user({
        type: "image",
        source: { type: "base64", media_type: "image/png", data: "data:image/png;base64,AAAA" },
      }),
    ),
    valid: messages(user(png(1, 1))),
    says: /Invalid base64 data/,
  },
  {
    rule: "an image is an image",
    broken: messages(user(imageBlock(Buffer.from("not an image at all")))),
    valid: messages(user(png(1, 1))),
    says: "Could not process image",
  },
  {
    rule: "an image has at most 5 MB in base64",
    broken: messages(
      user(
        imageBlock(
          Buffer.concat([imageFile("image/png", 1, 1), Buffer.alloc((MAX_IMAGE_BYTES / 4) * 3 - 32)]),
        ),
      ),
    ),
    valid: messages(
      user(
        imageBlock(
          Buffer.concat([imageFile("image/png", 1, 1), Buffer.alloc((MAX_IMAGE_BYTES / 4) * 3 - 33)]),
        ),
      ),
    ),
    says: "messages.0.content.0.image.source.base64: image exceeds 5 MB maximum: 5242884 bytes > 5242880 bytes",
  },
  {
    rule: "an image has at most 8000 pixels a side",
    broken: messages(user(png(10, 8001))),
    valid: messages(user(png(8000, 8000))),
    says: "messages.0.content.0.image.source.base64.data: At least one of the image dimensions exceed max allowed size: 8000 pixels",
  },
  {
    rule: "of more than 20 images, each has at most 2000 pixels a side",
    broken: messages(user(...Array.from({ length: 21 }, () => png(2001, 10)))),
    valid: messages(user(...Array.from({ length: 20 }, () => png(2001, 10)))),
    says: "messages.0.content.0.image.source.base64.data: At least one of the image dimensions exceed max allowed size for many-image requests: 2000 pixels",
  },
  {
    rule: "an image in a tool_result counts, too",
    broken: messages(hello, assistant(call("a")), user(result("a", { content: [png(8001, 1)] }))),
    valid: messages(hello, assistant(call("a")), user(result("a", { content: [png(8000, 1)] }))),
    says: /^messages\.2\.content\.0\.tool_result\.content\.0\.image\.source\.base64\.data: At least one/,
  },
  {
    rule: "an image is the user's",
    broken: messages(hello, assistant(png(1, 1)), bye),
    valid: messages(hello, assistant(text("x")), user(png(1, 1))),
    says: "messages.1: `image` blocks can only be in `user` messages",
  },
  {
    rule: "a request has no unknown field",
    broken: ask("Hello.", { max_retries: 3 }),
    valid: ask("Hello.", {
      metadata: { user_id: "x" },
      stop_sequences: ["END"],
      output_config: { effort: "low" },
    }),
    says: "max_retries: Extra inputs are not permitted",
  },
  {
    rule: "a message has no unknown field",
    broken: messages({ role: "user", content: "x", id: "1" }),
    valid: messages({ role: "user", content: "x" }),
    says: "messages.0.id: Extra inputs are not permitted",
  },
  {
    rule: "a block has no unknown field",
    broken: messages(user({ ...text("x"), index: 0 })),
    valid: messages(user({ ...text("x"), citations: null })),
    says: "messages.0.content.0.text.index: Extra inputs are not permitted",
  },
  {
    rule: "a tool_result has no unknown field",
    broken: messages(hello, assistant(call("a")), user(result("a", { name: "bash" }))),
    valid: messages(hello, assistant({ ...call("a"), caller: { type: "direct" } }), user(result("a"))),
    says: "messages.2.content.0.tool_result.name: Extra inputs are not permitted",
  },
  {
    rule: "a thinking block takes no breakpoint",
    broken: messages(hello, assistant({ ...thought, ...mark }, text("x")), bye),
    valid: messages(hello, assistant(thought, { ...text("x"), ...mark }), bye),
    says: "messages.1.content.0.thinking.cache_control: Extra inputs are not permitted",
  },
  {
    rule: "a block has a known type",
    broken: messages(user({ type: "video", url: "x" })),
    valid: messages(hello),
    says: /^messages\.0\.content\.0: Input tag 'video' found using 'type' does not match any of the expected tags: 'text'/,
  },
  {
    rule: "a block has a type",
    broken: messages(user({ text: "x" })),
    valid: messages(hello),
    says: "messages.0.content.0.type: Field required",
  },
  {
    rule: "max_tokens is there",
    broken: withoutField("max_tokens"),
    valid: ask("Hello."),
    says: "max_tokens: Field required",
  },
  ...[0, -1].map((max_tokens) => ({
    rule: `max_tokens is positive (not ${max_tokens})`,
    broken: ask("Hello.", { max_tokens }),
    valid: ask("Hello.", { max_tokens: 1 }),
    says: "max_tokens: Input should be greater than or equal to 1",
  })),
  {
    rule: "max_tokens is an integer",
    broken: ask("Hello.", { max_tokens: "100" }),
    valid: ask("Hello.", { max_tokens: 100 }),
    says: "max_tokens: Input should be a valid integer",
  },
  {
    rule: "max_tokens is within the model's output",
    broken: ask("Hello.", { max_tokens: 128_001 }),
    valid: ask("Hello.", { max_tokens: 128_000 }),
    says: "max_tokens: 128001 > 128000, which is the maximum allowed number of output tokens for claude-sonnet-5",
  },
  {
    rule: "the prompt fits into the window",
    broken: ask("x".repeat(4 * 200_000), { model: "claude-haiku-4-5" }),
    valid: ask("x".repeat(4 * 199_000), { model: "claude-haiku-4-5" }),
    says: /^prompt is too long: 20\d{4} tokens > 200000 maximum$/,
  },
  {
    rule: "the model is there",
    broken: withoutField("model"),
    valid: ask("Hello."),
    says: "model: Field required",
  },
  {
    rule: "the messages are there",
    broken: withoutField("messages"),
    valid: ask("Hello."),
    says: "messages: Field required",
  },
  {
    rule: "the body is an object",
    broken: [ask("Hello.")],
    valid: ask("Hello."),
    says: "Input should be a valid dictionary",
  },
  {
    rule: "a tool has no unknown field",
    broken: ask("Hello.", { tools: [{ ...bash, inputSchema: {} }] }),
    valid: ask("Hello.", { tools: [{ ...bash, strict: true }] }),
    says: "tools.0.custom.inputSchema: Extra inputs are not permitted",
  },
  {
    rule: "a tool has a name of letters, digits, _ and -",
    broken: ask("Hello.", { tools: [{ ...bash, name: "run command" }] }),
    valid: ask("Hello.", { tools: [{ ...bash, name: "run-command" }] }),
    says: "tools.0.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'",
  },
  {
    rule: "tool names are unique",
    broken: ask("Hello.", { tools: [bash, bash] }),
    valid: ask("Hello.", { tools: [bash, { ...bash, name: "ls" }] }),
    says: "tools: Tool names must be unique.",
  },
  {
    rule: "a tool has an input schema",
    broken: ask("Hello.", { tools: [{ name: "bash" }] }),
    valid: ask("Hello.", { tools: [bash] }),
    says: "tools.0.custom.input_schema: Field required",
  },
  {
    rule: "an input schema has a type",
    broken: ask("Hello.", { tools: [{ ...bash, input_schema: { properties: {} } }] }),
    valid: ask("Hello.", { tools: [{ ...bash, input_schema: { type: "object", properties: {} } }] }),
    says: "tools.0.custom.input_schema.type: Field required",
  },
  {
    rule: "an input schema is that of an object",
    broken: ask("Hello.", { tools: [{ ...bash, input_schema: { type: "string" } }] }),
    valid: ask("Hello.", { tools: [bash] }),
    says: "tools.0.custom.input_schema.type: Input should be 'object'",
  },
  {
    rule: "an input schema is no union at the top",
    broken: ask("Hello.", { tools: [{ ...bash, input_schema: { type: "object", anyOf: [] } }] }),
    valid: ask("Hello.", { tools: [bash] }),
    says: "tools.0.custom.input_schema: input_schema does not support oneOf, allOf, or anyOf at the top level",
  },
  {
    rule: "a chosen tool is defined",
    broken: ask("Hello.", { tools: [bash], tool_choice: { type: "tool", name: "ls" } }),
    valid: ask("Hello.", { tools: [bash], tool_choice: { type: "tool", name: "bash" } }),
    says: "tool_choice: Tool 'ls' not found in provided tools",
  },
  {
    rule: "a choice needs tools",
    broken: ask("Hello.", { tool_choice: { type: "auto" } }),
    valid: ask("Hello.", { tools: [bash], tool_choice: { type: "none" } }),
    says: "tool_choice: may only be specified while providing `tools`.",
  },
  {
    rule: "there are at most 4 cache breakpoints, wherever they are",
    broken: ask("", {
      tools: [{ ...bash, ...mark }],
      system: marked(1),
      messages: [user(...marked(2)), assistant(call("a")), user({ ...result("a"), ...mark })],
    }),
    valid: ask("", {
      tools: [{ ...bash, ...mark }],
      system: marked(1),
      messages: [user(...marked(1)), assistant(call("a")), user({ ...result("a"), ...mark })],
    }),
    says: "A maximum of 4 blocks with cache_control may be provided. Found 5.",
  },
  {
    rule: "a short-lived breakpoint does not come before a long-lived one",
    broken: messages(
      user({ ...text("x"), ...mark }, { ...text("y"), cache_control: { type: "ephemeral", ttl: "1h" } }),
    ),
    valid: messages(
      user({ ...text("x"), cache_control: { type: "ephemeral", ttl: "1h" } }, { ...text("y"), ...mark }),
    ),
    says: /^a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block/,
  },
  {
    rule: "a breakpoint is ephemeral",
    broken: messages(user({ ...text("x"), cache_control: { type: "persistent" } })),
    valid: messages(user({ ...text("x"), cache_control: { type: "ephemeral" } })),
    says: /cache_control: Input tag 'persistent'/,
  },
  {
    rule: "thinking is not modified",
    broken: messages(hello, assistant({ ...thought, thinking: "Hm" }, text("x")), bye),
    valid: messages(hello, assistant(thought, text("x")), bye),
    says: "messages.1.content.0: Invalid `signature` in `thinking` block",
  },
  {
    rule: "thinking has a signature",
    broken: messages(hello, assistant({ type: "thinking", thinking: "Hm." }, text("x")), bye),
    valid: messages(hello, assistant(thought, text("x")), bye),
    says: "messages.1.content.0.thinking.signature: Field required",
  },
  {
    rule: "redacted thinking is not modified",
    broken: messages(
      hello,
      assistant({ type: "redacted_thinking", data: `x${redact("Hm.")}` }, text("x")),
      bye,
    ),
    valid: messages(hello, assistant({ type: "redacted_thinking", data: redact("Hm.") }, text("x")), bye),
    says: "messages.1.content.0: Invalid `data` in `redacted_thinking` block",
  },
  {
    rule: "a thinking budget is at least 1024",
    broken: ask("Hello.", { max_tokens: 5000, ...budget(1023) }),
    valid: ask("Hello.", { max_tokens: 5000, ...budget(1024) }),
    says: "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024",
  },
  {
    rule: "a thinking budget is less than max_tokens",
    broken: ask("Hello.", { max_tokens: 2000, ...budget(2000) }),
    valid: ask("Hello.", { max_tokens: 2001, ...budget(2000) }),
    says: "`max_tokens` must be greater than `thinking.budget_tokens`.",
  },
  {
    rule: "thinking and a forced tool do not go together",
    broken: ask("Hello.", {
      ...{ max_tokens: 5000, ...budget(2000) },
      ...{ tools: [bash], tool_choice: { type: "any" } },
    }),
    valid: ask("Hello.", {
      ...{ max_tokens: 5000, ...budget(2000) },
      ...{ tools: [bash], tool_choice: { type: "auto" } },
    }),
    says: "Thinking may not be enabled when tool_choice forces tool use.",
  },
  {
    rule: "a thinking budget is for older models",
    broken: ask("Hello.", { max_tokens: 5000, thinking: { type: "enabled", budget_tokens: 1024 } }),
    valid: ask("Hello.", { thinking: { type: "adaptive" } }),
    says: /^"thinking.type.enabled" is not supported for this model/,
  },
  {
    rule: "adaptive thinking is for newer models",
    broken: ask("Hello.", { model: "claude-haiku-4-5", thinking: { type: "adaptive" } }),
    valid: ask("Hello.", { ...budget(1024), max_tokens: 5000 }),
    says: "adaptive thinking is not supported on this model",
  },
  ...["temperature", "top_p", "top_k"].map((parameter) => ({
    rule: `there is no ${parameter}`,
    broken: ask("Hello.", { [parameter]: 1 }),
    valid: ask("Hello."),
    says: `${parameter}: Extra inputs are not permitted`,
  })),
  {
    rule: "citations are the assistant's",
    broken: messages(user({ ...text("x"), citations: [{ type: "char_location" }] })),
    valid: messages(hello, assistant({ ...text("x"), citations: [{ type: "char_location" }] }), bye),
    says: "messages.0.content.0.text.citations: citations are not permitted in `user` messages",
  },
];

describe.concurrent("a request is refused unless", () => {
  test.each(cases)("$rule", async ({ broken, valid, says }) => {
    const refused = await post(server(), broken);
    expect(refused.body).toEqual({
      type: "error",
      error: {
        type: "invalid_request_error",
        message: typeof says === "string" ? says : (expect.stringMatching(says) as unknown),
      },
      request_id: refused.headers.get("request-id"),
    });
    expect(refused.status).toBe(400);

    const accepted = await post(server(), valid);
    expect(accepted.body).toMatchObject({ type: "message", stop_reason: "end_turn" });
    expect(accepted.status).toBe(200);
  });
});

test("consecutive messages of one role are accepted, as by the API", async () => {
  const chain = messages(hello, hello, assistant(text("x")), assistant(text("y")), bye);
  expect(await post(server(), chain)).toMatchObject({ status: 200 });
});

test("an unknown model is 404", async () => {
  expect(await post(server(), ask("Hello.", { model: "claude-none" }))).toMatchObject({
    status: 404,
    body: { type: "error", error: { type: "not_found_error", message: "model: claude-none" } },
  });
});
