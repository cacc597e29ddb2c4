/** The blocks of a stored message that may hold images. */
import { expect, test } from "vitest";
import { blocksOf, type MessageBody } from "../../machine/message.ts";
import { call, executing, idle, requesting } from "./states.ts";
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
