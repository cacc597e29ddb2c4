import type { MessageCreateParamsStreaming } from "@anthropic-ai/sdk/resources/messages";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { Models } from "../../llm/models.ts";
import { buildRequest } from "../../llm/request.ts";
import { systemText } from "../../llm/turns.ts";
import { signThinking } from "../../local/scripted/signature.ts";
import { validateRequest } from "../../local/scripted/validate.ts";
import type { Json } from "../../local/scripted/messages.ts";
import type { Message, MessageBody, ProviderBlock, ToolStatus } from "../../machine/message.ts";
import { toolsFor } from "../tools/support.ts";
import * as m from "./messages.ts";
import { assertSendable } from "./request-rules.ts";

const models = new Models();
const images = new Map([["known", { mediaType: "image/png", data: m.PNG }]]);

const build = (messages: readonly Message[]): MessageCreateParamsStreaming =>
  buildRequest({
    messages,
    model: models.of("claude-opus-5-5"),
    tools: toolsFor({ isSubAgent: false }),
    system: "You are a coding agent.",
    images,
  });

/** The turns without their cache breakpoints. */
const turnsOf = (...bodies: readonly MessageBody[]): unknown =>
  JSON.parse(
    JSON.stringify(build(m.stored(...bodies)).messages, (key, value: unknown) =>
      key === "cache_control" ? undefined : value,
    ),
  );

const asUser = (...content: readonly object[]) => ({ role: "user", content });
const asAssistant = (...content: readonly object[]) => ({ role: "assistant", content });
const said = (words: string) => m.text(systemText(words));
const result = (id: string, words: string, isError = false) => ({
  type: "tool_result",
  tool_use_id: id,
  content: [m.text(words)],
  ...(isError ? { is_error: true } : {}),
});

describe("the turns of a request", () => {
  test("REQ-BED-004: a round's results are one user turn in the order of the calls, steers and system texts after them", () => {
    const turns = turnsOf(
      m.user("go"),
      m.agent([m.call("a"), m.call("b"), m.call("c")], "tool_use"),
      m.tool("b", "second"),
      m.system("mode changed"),
      m.tool("a", "first"),
      m.user("a steer"),
      m.tool("c", "third", "failed"),
    );
    expect(turns).toEqual([
      asUser(m.text("go")),
      asAssistant(m.call("a"), m.call("b"), m.call("c")),
      asUser(
        result("a", "first"),
        result("b", "second"),
        result("c", "third", true),
        said("mode changed"),
        m.text("a steer"),
      ),
    ]);
  });

  test("what pages show of a call's changes is not sent", () => {
    const diff = { path: "/a", change: "created", diff: "+x", addedLines: 1, removedLines: 0 } as const;
    const plain = m.tool("a", "done");
    const shown = { ...plain, display: { diffs: [{ ...diff, truncated: false }] } } as MessageBody;
    const turns = (answer: MessageBody) => turnsOf(m.user("go"), m.agent([m.call("a")], "tool_use"), answer);
    expect(turns(shown)).toEqual(turns(plain));
  });

  test("messages for the person only and empty answers are left out, and the user's turns around them merge", () => {
    const turns = turnsOf(
      m.user("one"),
      m.note("for the person"),
      m.agent([]),
      m.agent([m.text("  \n")]),
      m.runStop,
      m.error,
      m.continuation,
      m.user("two"),
    );
    expect(turns).toEqual([asUser(m.text("one"), m.text("two"))]);
  });

  test("the model's blocks go back exactly as received, unknown ones too", () => {
    const blocks: ProviderBlock[] = [
      { type: "thinking", thinking: "hm ", signature: "s=" },
      { type: "redacted_thinking", data: "x" },
      { type: "text", text: " Hello ", citations: null },
      { type: "new_kind", payload: { deep: [1, null, " "] } },
      m.call("a"),
    ];
    const before = structuredClone(blocks);
    const messages = m.stored(m.user("go"), m.agent(blocks, "tool_use"), m.tool("a", "x"));
    expect(build(messages).messages[1]).toEqual(asAssistant(...before));
    expect(blocks).toEqual(before);
  });

  test("blank texts and thinking that was cut off are not sent back, but stay stored", () => {
    const cut = m.agent([m.text("Well"), m.text(" "), { type: "thinking", thinking: "and", signature: "" }]);
    expect(turnsOf(m.user("go"), cut, m.user("on"))).toEqual([
      asUser(m.text("go")),
      asAssistant(m.text("Well")),
      asUser(m.text("on")),
    ]);
    expect(cut.content).toHaveLength(3);
  });

  test("a result without output reads as its status", () => {
    const statuses: readonly ToolStatus[] = ["completed", "failed", "cancelled", "skipped", "interrupted"];
    const results = statuses.map((status) => m.tool(status, [], status));
    const request = build(m.stored(m.user("go"), m.agent(statuses.map((id) => m.call(id))), ...results));
    const sent = (request.messages[2]?.content ?? []) as unknown as readonly {
      is_error?: boolean;
      content: { text: string }[];
    }[];
    expect(sent.map((block) => block.is_error === true)).toEqual([false, true, true, true, true]);
    expect(sent.map((block) => block.content[0]?.text)).toEqual([
      "(no output)",
      expect.stringMatching(/failed/i),
      expect.stringMatching(/cancelled/i),
      expect.stringMatching(/not executed/i),
      expect.stringMatching(/outcome .* is unknown.*check/i),
    ]);
  });

  test("REQ-BED-013: images reach the model in messages and in results; those of an error follow it", () => {
    const shown = { type: "image", source: { type: "base64", media_type: "image/png", data: m.PNG } };
    const messages = m.stored(
      { ...m.user("look"), content: [m.image("known")] } as MessageBody,
      m.agent([m.call("a"), m.call("b")]),
      m.tool("a", [m.text("see"), m.image("known")]),
      m.tool("b", [m.image("known"), m.text("bad")], "failed"),
      { ...m.user("x"), content: [m.image("gone")] } as MessageBody,
    );
    expect(turnsOf(...messages)).toEqual([
      asUser(shown),
      asAssistant(m.call("a"), m.call("b")),
      asUser(
        { type: "tool_result", tool_use_id: "a", content: [m.text("see"), shown] },
        result("b", "bad", true),
        shown,
        m.text("(an image that is no longer available)"),
      ),
    ]);
  });

  test("a history that begins with a summary or an answer is sent with a user's turn first", () => {
    expect(turnsOf(m.system("earlier"), m.user("go"))).toEqual([asUser(said("earlier"), m.text("go"))]);
    expect(turnsOf(m.agent([m.text("Hi")]), m.user("go"))).toMatchObject([
      { role: "user" },
      asAssistant(m.text("Hi")),
      asUser(m.text("go")),
    ]);
  });

  test("a paused turn is sent back as it stands, and any other answer is never the last turn", () => {
    const search: ProviderBlock = { type: "server_tool_use", id: "s", name: "web_search", input: {} };
    const paused = m.agent([m.text("Searching"), search], "pause_turn");
    expect(turnsOf(m.user("go"), paused)).toEqual([
      asUser(m.text("go")),
      asAssistant(m.text("Searching"), search),
    ]);
    expect(turnsOf(m.user("go"), paused, m.agent([m.text("Done")]), m.user("and"))).toEqual([
      asUser(m.text("go")),
      asAssistant(m.text("Searching"), search, m.text("Done")),
      asUser(m.text("and")),
    ]);
    expect(turnsOf(m.user("go"), m.agent([m.text("Hi")]))).toEqual([
      asUser(m.text("go")),
      asAssistant(m.text("Hi")),
      asUser(said("Continue.")),
    ]);
  });

  test("a lost result is replaced by one of unknown outcome, and an orphan and a second result are dropped", () => {
    const turns = turnsOf(
      m.user("go"),
      m.tool("orphan", "x"),
      m.agent([m.call("a"), m.call("b")]),
      m.tool("b", "first"),
      m.tool("b", "again"),
      m.tool("other", "x"),
      m.user("next"),
    );
    expect(turns).toEqual([
      asUser(m.text("go")),
      asAssistant(m.call("a"), m.call("b")),
      asUser(
        result("a", expect.stringMatching(/unknown/) as unknown as string, true),
        result("b", "first"),
        m.text("next"),
      ),
    ]);
  });
});

describe("the rest of a request", () => {
  test("each tool round reads from the cache what the round before it sent", () => {
    const history = m.stored(
      m.user("go"),
      ...["a", "b", "c"].flatMap((id) => [m.agent([m.call(id)], "tool_use"), m.tool(id, "x")]),
    );
    const breakpoints = (messages: readonly Message[]): readonly number[] =>
      build(messages).messages.flatMap(({ content }, index) =>
        JSON.stringify(content).includes("cache_control") ? [index] : [],
      );
    expect(breakpoints(history.slice(0, 5))).toEqual([2, 4]);
    expect(breakpoints(history)).toEqual([4, 6]);
    // A request that was stopped before its answer ended within a turn: its cached prefix ends there.
    const images = Array.from({ length: 20 }, () => m.image("known"));
    const stopped = m.stored(
      { ...m.user("look"), content: [m.text("look"), ...images] } as MessageBody,
      m.runStop,
      { ...m.user("look"), content: [m.text("and here"), ...images] } as MessageBody,
    );
    const [turn] = build(stopped).messages;
    const marked = (turn?.content as readonly object[]).flatMap((block, n) =>
      "cache_control" in block ? [n] : [],
    );
    expect(marked).toEqual([20, 41]);
    const { tools, system } = build(history);
    // Only the last tool has a breakpoint.
    expect(tools?.findIndex((tool) => "cache_control" in tool)).toBe((tools?.length ?? 0) - 1);
    expect(system).toEqual([
      { type: "text", text: "You are a coding agent.", cache_control: { type: "ephemeral" } },
    ]);
  });

  test("limits and thinking are the model's; an unknown model gets the smallest and no options", () => {
    const request = (model: string) =>
      buildRequest({
        messages: m.stored(m.user("go")),
        model: models.of(model),
        tools: [],
        system: "s",
        images,
      });
    expect(request("claude-opus-5-5")).toMatchObject({ max_tokens: 100_000, thinking: { type: "adaptive" } });
    expect(request("claude-haiku-4-5-20251001").max_tokens).toBe(20_000);
    expect(request("something-new").max_tokens).toBe(20_000);
    expect(request("something-new")).not.toHaveProperty("thinking");
    expect(request("something-new")).not.toHaveProperty("tools");
  });
});

describe("whatever is stored, the provider accepts the request", () => {
  const words = fc.constantFrom("go", " padded ", "", " \n", "long ".repeat(50));
  const output = fc.array(fc.oneof(words.map(m.text), fc.constantFrom("known", "gone").map(m.image)), {
    maxLength: 3,
  });
  const providerBlock = fc.oneof(
    words.map(m.text),
    fc.constant<ProviderBlock>({ type: "thinking", thinking: "hm", signature: signThinking("hm") }),
    fc.constant<ProviderBlock>({ type: "tool_use", name: "bash", input: { command: "ls" } }),
    fc.constant<ProviderBlock>({ type: "tool_use", name: "read", input: {} }),
  );
  const outsider = fc.oneof(
    words.map((word) => m.user(word)),
    words.map(m.system),
    words.map(m.note),
    fc.constantFrom(m.runStop, m.error, m.continuation),
    output.map((content) => ({ ...m.user(), content }) as MessageBody),
  );
  const status = fc.constantFrom<ToolStatus>("completed", "failed", "cancelled", "skipped", "interrupted");
  const round = fc.record({
    content: fc.array(providerBlock, { maxLength: 5 }),
    stopReason: fc.constantFrom("end_turn", "tool_use", "max_tokens", "pause_turn", "refusal"),
    before: fc.array(outsider, { maxLength: 2 }),
    results: fc.array(fc.record({ output, status, said: fc.array(outsider, { maxLength: 2 }) }), {
      minLength: 5,
      maxLength: 5,
    }),
    fate: fc.array(fc.constantFrom("stored", "stored", "stored", "lost", "twice"), {
      minLength: 5,
      maxLength: 5,
    }),
    reversed: fc.boolean(),
    orphan: fc.boolean(),
  });

  let ids = 0;
  const history = fc.array(round, { maxLength: 6 }).map((rounds) =>
    m.stored(
      ...rounds.flatMap(({ content, stopReason, before, results, fate, reversed, orphan }) => {
        const numbered = content.map((block) =>
          block.type === "tool_use" ? { ...block, id: `call_${ids++}` } : block,
        );
        const calls = numbered.flatMap((block) => (block.type === "tool_use" ? [block["id"] as string] : []));
        const answers = calls.flatMap((id, index) => {
          const { output: blocks, status: how, said: between } = results[index] ?? { said: [] };
          const one = [m.tool(id, blocks ?? "", how), ...between];
          return { stored: one, lost: [...between], twice: [...one, ...one] }[fate[index] ?? "stored"];
        });
        if (reversed) answers.reverse();
        return [
          ...before,
          m.agent(numbered, stopReason),
          ...(orphan ? [m.tool("never-called", "x")] : []),
          ...answers,
        ];
      }),
    ),
  );

  test("property: it passes the rules of request-rules.ts and those of the scripted server", () => {
    fc.assert(
      fc.property(history, (messages) => {
        const request = build(messages);
        assertSendable(request);
        expect(validateRequest(request as unknown as Json)).toBeNull();
      }),
      { numRuns: 3_000 },
    );
  });

  test("property: nothing that the model or a person said is lost, and stored messages are not touched", () => {
    fc.assert(
      fc.property(history, (messages) => {
        const before = JSON.stringify(messages);
        const sent = JSON.stringify(build(messages).messages);
        expect(JSON.stringify(messages)).toBe(before);
        for (const message of messages) {
          if (message.type !== "user" && message.type !== "system") continue;
          for (const block of message.content) {
            if (block.type === "text" && block.text.trim() !== "") expect(sent).toContain(block.text.trim());
          }
        }
      }),
      { numRuns: 500 },
    );
  });

  test("10,000 messages are built in well under a second", () => {
    const bodies = Array.from({ length: 5_000 }, (_, n) => [
      m.agent([m.text("x"), m.call(`call_${n}`)], "tool_use"),
      m.tool(`call_${n}`, "output"),
    ]).flat();
    const messages = m.stored(m.user("go"), ...bodies);
    const started = performance.now();
    build(messages);
    expect(performance.now() - started).toBeLessThan(500);
  });
});
