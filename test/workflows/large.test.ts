/** What is large stays within what Temporal takes in one piece: a conversation must not get stuck on it. */
import { WorkflowUpdateFailedError } from "@temporalio/client";
import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { hold } from "../../local/scripted/cues.ts";
import { say, toolCall } from "../../local/scripted/script.ts";
import { TestConversation, textOf } from "../support/conversation.ts";
import { startSystem } from "../support/system.ts";

const system = await startSystem();
const LINE = "a line of text\n";

test("long messages wait as far as there is room, and are refused beyond it", async () => {
  const conversation = await TestConversation.open(system);
  const held = hold();
  const tag = system.model.script(randomUUID(), (_request, n) => (n === 1 ? say("… ", held) : say("Yes.")));
  await conversation.send(`go ${tag}`);
  await held.reached;
  const sent = await Promise.allSettled(
    Array.from({ length: 10 }, (_, n) =>
      conversation.send(`${n} ${LINE.repeat(8_000)}`, { delivery: n % 2 === 0 ? "steer" : "followUp" }),
    ),
  );
  const refusals = sent.flatMap((answer) => {
    if (answer.status === "fulfilled") return [];
    const cause = (answer.reason as WorkflowUpdateFailedError).cause;
    return [cause !== undefined && "type" in cause ? cause.type : cause];
  });
  expect(refusals).toEqual(Array.from({ length: 6 }, () => "queue_full"));
  held.release();
  const stored = await conversation.until(
    ({ conversation: { state, queue } }) => state.kind === "idle" && queue.length === 0,
  );
  expect(stored.conversation.queue).toEqual([]);
  const said = (await conversation.types()).filter((type) => type === "user");
  expect(said).toHaveLength(5);
});

test("a call with a long input runs, and one that is too long is answered so", async () => {
  const conversation = await TestConversation.open(system);
  const content = LINE.repeat(30_000);
  const write = (path: string) => toolCall("write", { path, content });
  const tag = system.model.script(randomUUID(), [
    say("Now. ", write("long.txt"), write("never.txt"), toolCall("ls", {})),
    say("Written."),
  ]);
  await conversation.send(`go ${tag}`);
  await conversation.untilState("idle");
  expect(readFileSync(join(system.cwd, "long.txt"), "utf8")).toBe(content);
  const results = await conversation.results();
  expect(results.map(({ status }) => status)).toEqual(["completed", "failed", "completed"]);
  expect(textOf(results[1])).toMatch(/too long together.*smaller pieces/s);
  expect(textOf(results[2])).not.toContain("never.txt");
});

test("an answer that is too long to be kept is an error, not a stuck conversation", async () => {
  const conversation = await TestConversation.open(system);
  const tag = system.model.script(randomUUID(), [say(LINE.repeat(80_000)), say("In short.")]);
  await conversation.send(`go ${tag}`);
  expect((await conversation.untilState("error")).message).toContain("longer than");
  await conversation.send("Shorter, please.");
  await conversation.untilState("idle");
});
