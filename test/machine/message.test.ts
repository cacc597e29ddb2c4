/** What stored messages hold: blocks with images, and the diffs of calls that changed files. */
import { describe, expect, test } from "vitest";
import { blocksOf, type FileDiff, type MessageBody } from "../../machine/message.ts";
import { DIFFS_BYTES, jsonBytes } from "../../machine/size.ts";
import { call, cancellingTool, executing, idle, requesting } from "./states.ts";
import { cancel, response, say, toolDone } from "./events.ts";
import { expectOutcome } from "./support.ts";

const bodies = (messages: readonly MessageBody[]) =>
  Object.fromEntries(messages.map((message) => [message.type, blocksOf(message)]));

test("those of people, tools and the system are blocks; the model's own and the ends of runs are not", () => {
  const said = expectOutcome(idle, say("m1", { text: "hello" }));
  const answered = expectOutcome(requesting(), response([]));
  const done = expectOutcome(executing({ current: call("t1") }), toolDone());
  const stopped = expectOutcome(
    requesting({ retry: { at: "", errorKind: "network", message: "" } }),
    cancel(),
  );
  const noted = expectOutcome(idle, { kind: "noted", text: "note" });
  const seen = bodies([said, answered, done, stopped, noted].flatMap(({ messages }) => [...messages]));
  expect(seen).toMatchObject({
    user: [{ type: "text", text: "hello" }],
    note: [{ type: "text", text: "note" }],
    agent: [],
    run_stop: [],
  });
  expect(seen["tool"]).toEqual([{ type: "text", text: expect.any(String) as string }]);
});

describe("the diffs of a call", () => {
  const diff = (path: string, text = "@@ …"): FileDiff => ({
    ...{ path, change: "modified", diff: text },
    ...{ addedLines: 1, removedLines: 1, truncated: false },
  });
  const diffs = [diff("/a"), diff("/b")];
  const displayed = (messages: readonly MessageBody[]) =>
    messages.flatMap((message) => (message.type === "tool" ? [message.display] : []));

  test("are kept beside its result, whatever the status; a call without any has no display", () => {
    for (const status of ["completed", "failed", "interrupted"] as const) {
      const { messages } = expectOutcome(executing(), toolDone("done", { status, diffs }));
      expect(displayed(messages)).toEqual([{ diffs }]);
    }
    for (const fields of [{}, { diffs: [] }]) {
      const [message] = expectOutcome(executing(), toolDone("done", fields)).messages;
      expect(message).not.toHaveProperty("display");
    }
  });

  test("are kept when the call was stopped too late", () => {
    const { messages } = expectOutcome(cancellingTool([call("t2")]), toolDone("done", { diffs }));
    expect(displayed(messages)).toEqual([{ diffs }, undefined]);
  });

  test("are kept up to their limit: the rest of a list that is too long is dropped", () => {
    const many = Array.from({ length: 1_000 }, (_, n) => diff(`/${n}`, "\u0001".repeat(1_000)));
    const { messages } = expectOutcome(executing(), toolDone("done", { diffs: many }));
    const [display] = displayed(messages);
    const kept = display?.diffs ?? [];
    expect(kept).toEqual(many.slice(0, kept.length));
    expect(jsonBytes(kept)).toBeGreaterThan(DIFFS_BYTES - 7_000);
    expect(jsonBytes(kept)).toBeLessThan(DIFFS_BYTES + 100);
    const large = diff("/large", "x".repeat(DIFFS_BYTES));
    expect(displayed(expectOutcome(executing(), toolDone("done", { diffs: [large] })).messages)).toEqual([
      undefined,
    ]);
  });
});
