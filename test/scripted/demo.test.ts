/** The demo agent, driven as the product drives a model: every call is answered, until the turn ends. */
import type Anthropic from "@anthropic-ai/sdk";
import { describe, expect, test } from "vitest";
import { connect, useScriptedServer } from "./support.ts";

const server = useScriptedServer();

type Input = { readonly [field: string]: unknown };
type Outcome = string | { readonly error: string };
type Tools = { readonly [name: string]: (input: Input) => Outcome };
type Turn = {
  readonly text: string;
  readonly calls: readonly { readonly name: string; readonly input: Input }[];
  readonly messages: readonly Anthropic.MessageParam[];
};

/** One turn: asks until the model calls no tool any more, or has submitted. */
async function converse(
  prompt: string,
  tools: Tools,
  earlier: readonly Anthropic.MessageParam[] = [],
): Promise<Turn> {
  const messages: Anthropic.MessageParam[] = [...earlier, { role: "user", content: prompt }];
  const calls: { name: string; input: Input }[] = [];
  const texts: string[] = [];
  const definitions = Object.keys(tools).map((name) => ({
    name,
    input_schema: { type: "object" as const, properties: name === "ls" ? { path: { type: "string" } } : {} },
  }));
  for (;;) {
    const { content } = await connect(server())
      .messages.stream({ model: "scripted-demo", max_tokens: 1000, tools: definitions, messages })
      .finalMessage();
    messages.push({ role: "assistant", content });
    texts.push(...content.flatMap((block) => (block.type === "text" ? [block.text] : [])));
    const called = content.filter((block) => block.type === "tool_use");
    calls.push(...called.map(({ name, input }) => ({ name, input: input as Input })));
    if (called.length === 0 || called.some(({ name }) => name === "submit_result"))
      return { text: texts.join("\n"), calls, messages };
    const results = called.map(({ id, name, input }): Anthropic.ToolResultBlockParam => {
      const outcome = tools[name]?.(input as Input) ?? { error: "There is no such tool." };
      return typeof outcome === "string"
        ? { type: "tool_result", tool_use_id: id, content: outcome }
        : { type: "tool_result", tool_use_id: id, content: outcome.error, is_error: true };
    });
    messages.push({ role: "user", content: results });
  }
}

const readOnly: Tools = {
  ls: () => "README.md\nsrc\n",
  bash: ({ command }) => `output of ${String(command)}`,
  read: () => "# A project",
};

describe.concurrent("the demo agent", () => {
  test("explains itself, looks around with real tools, and sums up", async () => {
    const turn = await converse("Hello!", readOnly);
    expect(turn.text).toMatch(/^Hello! I am the scripted demo model of Bedrock/);
    expect(turn.calls).toEqual([
      { name: "ls", input: { path: "." } },
      { name: "bash", input: { command: "pwd && uname -sm" } },
      { name: "read", input: { path: "README.md" } },
    ]);
    expect(turn.text).toMatch(/Here is what I saw[^]*README.md[^]*output of pwd[^]*# A project/);
  });

  test("takes a file that speaks of Restricted mode for no refusal", async () => {
    const read = () => "Write tool is disabled in Restricted mode.";
    const turn = await converse("Hello!", { ...readOnly, read, request_mode_upgrade: () => "denied" });
    expect(turn.calls.map(({ name }) => name)).toEqual(["ls", "bash", "read"]);
  });

  test("calls only tools that it is offered", async () => {
    const turn = await converse("Hello!", { think: () => "" });
    expect(turn.calls).toEqual([]);
    expect(turn.text).toContain("`run: <command>`");
    expect((await converse("Hello!", { ls: () => "" })).calls).toEqual([
      { name: "ls", input: { path: "." } },
    ]);
  });

  test("explains its commands in answer to later messages", async () => {
    const { messages } = await converse("Hello!", readOnly);
    const later = await converse("How are you?", readOnly, messages);
    expect(later.calls).toEqual([]);
    expect(later.text).toContain("`delegate: <task> ; <task>`");
  });

  test("runs what it is told to run and reports the output", async () => {
    const turn = await converse("run: git status", readOnly);
    expect(turn.calls).toEqual([{ name: "bash", input: { command: "git status" } }]);
    expect(turn.text).toContain("output of git status");
  });

  test("reports what failed", async () => {
    const turn = await converse("run: false", { bash: () => ({ error: "exit code 1" }) });
    expect(turn.text).toMatch(/`false` failed and said:[^]*exit code 1/);
  });

  test("writes what it is told to write", async () => {
    const turn = await converse("write: notes/a.txt some words", { write: () => "written" });
    expect(turn.calls).toEqual([{ name: "write", input: { path: "notes/a.txt", content: "some words\n" } }]);
  });

  test("delegates tasks to sub-agents when it is told to", async () => {
    const turn = await converse("delegate: run: ls ; count the files", { spawn_agents: () => "both done" });
    expect(turn.calls).toEqual([
      { name: "spawn_agents", input: { tasks: [{ task: "run: ls" }, { task: "count the files" }] } },
    ]);
    expect(turn.text).toContain("both done");
  });

  const guarded = (decision: Outcome): Tools => {
    let allowed = false;
    return {
      write: () =>
        allowed
          ? "written"
          : { error: "Write tool is disabled in Restricted mode. Use request_mode_upgrade." },
      request_mode_upgrade: () => {
        allowed = decision === "Approved.";
        return decision;
      },
    };
  };

  test("asks for an upgrade when a tool is disabled, and tries again when it gets it", async () => {
    const turn = await converse("write: a b", guarded("Approved."));
    expect(turn.calls.map(({ name }) => name)).toEqual(["write", "request_mode_upgrade", "write"]);
    expect(turn.calls[2]?.input).toEqual(turn.calls[0]?.input);
    expect(turn.text).toContain("written");
  });

  test("does not try again when the upgrade is denied", async () => {
    const turn = await converse("write: a b", guarded({ error: "Denied by the user." }));
    expect(turn.calls.map(({ name }) => name)).toEqual(["write", "request_mode_upgrade"]);
    expect(turn.text).toContain("Denied by the user.");
  });

  test("does its task with one call as a sub-agent, and submits the result", async () => {
    const submit = { submit_result: () => "" };
    const turn = await converse("run: ls", { ...readOnly, ...submit });
    expect(turn.calls).toMatchObject([
      { name: "bash", input: { command: "ls" } },
      {
        name: "submit_result",
        input: { result: expect.stringContaining("output of ls") as unknown, success: true },
      },
    ]);
    const failed = await converse("run: ls", { bash: () => ({ error: "no" }), ...submit });
    expect(failed.calls.at(-1)).toMatchObject({ name: "submit_result", input: { success: false } });
    expect((await converse("Do it.", { ...readOnly, ...submit })).calls.map(({ name }) => name)).toEqual([
      "ls",
      "submit_result",
    ]);
    expect((await converse("Do it.", submit)).calls.map(({ name }) => name)).toEqual(["submit_result"]);
  });

  test("follows a steer that comes with tool results", async () => {
    const messages: Anthropic.MessageParam[] = [
      { role: "user", content: "run: one" },
      {
        role: "assistant",
        content: [{ type: "tool_use", id: "a", name: "bash", input: { command: "one" } }],
      },
      {
        role: "user",
        content: [
          { type: "tool_result", tool_use_id: "a", content: "first output" },
          { type: "text", text: "run: two" },
        ],
      },
    ];
    const tools: Anthropic.Tool[] = [{ name: "bash", input_schema: { type: "object" } }];
    const params = { model: "scripted-demo", max_tokens: 1000, tools, messages };
    expect((await connect(server()).messages.create(params)).content).toMatchObject([
      { type: "text", text: expect.stringContaining("first output") as unknown },
      { type: "text" },
      { type: "tool_use", input: { command: "two" } },
    ]);
  });

  test("summarises a conversation that comes without tools", async () => {
    const turn = await converse("The person said: fix the tests.", {});
    expect(turn.calls).toEqual([]);
    expect(turn.text).toMatch(/^Summary by the scripted demo model\..*fix the tests\.$/);
  });

  test("thinks when it is asked to, and streams in small pieces", async () => {
    const deltas: string[] = [];
    const message = await connect(server())
      .messages.stream({
        ...{ model: "scripted-demo", max_tokens: 5000, thinking: { type: "enabled", budget_tokens: 1024 } },
        messages: [{ role: "user", content: "Hello." }],
      })
      .on("text", (delta) => deltas.push(delta))
      .finalMessage();
    expect(message.content.map(({ type }) => type)).toEqual(["thinking", "text"]);
    expect(deltas.length).toBeGreaterThan(5);
  });
});
