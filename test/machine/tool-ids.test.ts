/** tool_use ids on receipt ("Calls that cannot run"): which ids are renamed, and that nothing else is touched. */
import { describe, expect, test } from "vitest";
import type { ProviderBlock } from "../../machine/message.ts";
import { receiveCalls } from "../../machine/tool-ids.ts";
import { response, say } from "./events.ts";
import { History } from "./history.ts";
import { call, requesting } from "./states.ts";
import { expectOutcome, inState, outline } from "./support.ts";

function receive(content: readonly ProviderBlock[], used: readonly string[] = []) {
  let count = 0;
  return receiveCalls(content, used, [], () => `new${(count += 1)}`);
}

const use = (id: unknown): ProviderBlock =>
  ({ type: "tool_use", id, name: "bash", input: { command: "ls" } }) as ProviderBlock;

describe("an id that the provider accepts", () => {
  test.for(["toolu_01A", "a", "A-Z_9", "x".repeat(64)])("is kept: %s", (id) => {
    const block = use(id);
    const { content, calls } = receive([block]);
    expect(content[0]).toBe(block);
    expect(calls).toStrictEqual([call(id)]);
  });
});

describe("an id that the provider refuses is renamed, in the block and in the call", () => {
  const MALFORMED = ["", "has space", "ünï", "a.b", "a\n", "\na", "x".repeat(65), 7, null, undefined, {}];
  test.for(MALFORMED)("when it is empty or malformed: %j", (id) => {
    const { content, calls } = receive([use(id)]);
    expect(content).toEqual([{ ...use(id), id: "toolu_new1" }]);
    expect(calls).toEqual([call("toolu_new1")]);
  });

  test("when an earlier message used it", () => {
    const { content, calls } = receive([use("t1"), use("t2")], ["t1"]);
    expect(content.map((block) => block["id"])).toEqual(["toolu_new1", "t2"]);
    expect(calls.map(({ id }) => id)).toEqual(["toolu_new1", "t2"]);
  });

  test("when one response uses it twice: the first call keeps it", () => {
    const { calls } = receive([use("t1"), use("t1"), use("t1")]);
    expect(calls.map(({ id }) => id)).toEqual(["t1", "toolu_new1", "toolu_new2"]);
  });

  test("when another id was renamed to it", () => {
    const { calls } = receive([use(""), use("toolu_new1")]);
    expect(calls.map(({ id }) => id)).toEqual(["toolu_new1", "toolu_new2"]);
  });
});

describe("nothing else in the provider's blocks is touched", () => {
  test("other blocks, ids and unknown fields of theirs included, come back as they are", () => {
    const blocks: ProviderBlock[] = [
      { type: "thinking", thinking: "hm", signature: "s" },
      { type: "text", text: "Hello.", id: "" },
      { type: "server_tool_use", id: "t1", name: "web", input: {} },
    ];
    const { content, calls } = receive(blocks, ["t1"]);
    expect(calls).toEqual([]);
    for (const [index, block] of blocks.entries()) expect(content[index]).toBe(block);
  });

  test("a renamed block keeps its other fields", () => {
    const block = { ...use(""), cache_control: { type: "ephemeral" }, caller: "x" };
    expect(receive([block]).content).toEqual([{ ...block, id: "toolu_new1" }]);
  });

  test("a call without a name or an input is still one call", () => {
    const { content, calls } = receive([{ type: "tool_use", id: "t1" }]);
    expect(calls).toEqual([{ id: "t1", name: "", input: {} }]);
    expect(content).toEqual([{ type: "tool_use", id: "t1" }]);
    expect(receive([{ type: "tool_use", id: "t1", name: 3, input: null }]).calls).toEqual([
      { id: "t1", name: "", input: {} },
    ]);
    expect(receive([{ type: "tool_use", id: "t1", name: "x", input: 0 }]).calls[0]?.input).toBe(0);
  });
});

describe("in a conversation", () => {
  test("the result answers the renamed call, in the message that is stored", () => {
    const step = expectOutcome(requesting(), response([call("t1")], { usedToolCallIds: ["t1"] }));
    const { current } = inState(step, "tool_executing");
    expect(current.id).toMatch(/^toolu_[0-9a-f-]{36}$/u);
    expect(step.messages[0]?.content).toMatchObject([
      { type: "text", text: "Hello." },
      { type: "tool_use", id: current.id },
    ]);
  });

  test("the message chain stays valid when the model repeats an id", () => {
    const history = new History();
    history.give(say());
    history.respond([call("t1"), call("t1"), call("")]);
    for (let n = 0; n < 3; n += 1) history.finishTool();
    history.respond([call("t1")], { usedToolCallIds: ["t1"] });
    history.finishTool();
    history.respond();
    expect(outline(history.messages).filter((line) => line.endsWith("completed"))).toHaveLength(5);
  });
});
