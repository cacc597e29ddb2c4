/** Large contents stay within what Temporal takes in one piece, so that no conversation gets stuck or is ended. */
import type { WorkflowUpdateFailedError } from "@temporalio/client";
import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { hold } from "../../local/scripted/cues.ts";
import { say, toolCall, type Part } from "../../local/scripted/script.ts";
import type { Conversation } from "../../machine/conversation.ts";
import { DIFF_BYTES, jsonBytes } from "../../machine/size.ts";
import { sendMessageSignal } from "../../protocol/workflow.ts";
import { TestConversation, textOf } from "../support/conversation.ts";
import { outcomesIn, spawnFamily } from "../support/family.ts";
import { startSystem } from "../support/system.ts";
import { until } from "../support/waiting.ts";

const system = await startSystem();
const LINE = "a line of text\n";
/** Bytes that Temporal takes in one piece. */
const LIMIT = 2 * 1024 * 1024;

type Shown = { readonly conversation: Conversation };

/** A conversation in the middle of a request. Its later answers are short. */
async function asking(...first: readonly Part[]) {
  const conversation = await TestConversation.open(system, "unrestricted");
  const held = hold();
  let asked: string | null = null;
  const tag = system.model.script(randomUUID(), ({ body }) => {
    const messages = JSON.stringify(body.messages);
    asked ??= messages;
    // A request that is lost in a busy process is asked again.
    return asked === messages ? say("… ", held, ...first) : say("Yes.");
  });
  await conversation.send(`go ${tag}`);
  await held.reached;
  return { conversation, release: () => held.release() };
}

const finished = (conversation: TestConversation) =>
  conversation.until(({ conversation: { state, queue } }) => state.kind === "idle" && queue.length === 0);

/** The bytes of each activity input, in the last run or in the given one. */
async function inputsOf(conversation: TestConversation, runId = ""): Promise<number[]> {
  const inputs: number[] = [];
  let token: Uint8Array = new Uint8Array();
  do {
    const page = await system.temporal.connection.workflowService.getWorkflowExecutionHistory({
      namespace: system.config.temporalNamespace,
      execution: { workflowId: conversation.id, runId },
      // The whole history at once may be more than a client takes.
      maximumPageSize: 5,
      nextPageToken: token,
    });
    for (const { activityTaskScheduledEventAttributes: scheduled } of page.history?.events ?? []) {
      if (scheduled == null) continue;
      const payloads = scheduled.input?.payloads ?? [];
      inputs.push(payloads.reduce((sum, payload) => sum + (payload.data?.length ?? 0), 0));
    }
    token = page.nextPageToken;
  } while (token.length > 0);
  return inputs;
}

const largestInput = async (conversation: TestConversation): Promise<number> =>
  Math.max(...(await inputsOf(conversation)));

describe("messages that wait", () => {
  test("are queued as long as there is room, and refused beyond it", async () => {
    const { conversation, release } = await asking();
    const sent = await Promise.allSettled(
      Array.from({ length: 10 }, (_, n) =>
        conversation.send(`${n} ${LINE.repeat(7_000)}`, { delivery: n % 2 === 0 ? "steer" : "followUp" }),
      ),
    );
    const refusals = sent.flatMap((answer) => {
      if (answer.status === "fulfilled") return [];
      const cause = (answer.reason as WorkflowUpdateFailedError).cause;
      return [cause !== undefined && "type" in cause ? cause.type : cause];
    });
    expect(refusals).toEqual(Array.from({ length: 7 }, () => "queue_full"));
    release();
    await finished(conversation);
    const said = (await conversation.types()).filter((type) => type === "user");
    expect(said).toHaveLength(4);
  });

  test("are all stored afterwards when they come while Postgres is blocked", async () => {
    const { conversation, release } = await asking();
    const unblock = await conversation.block();
    const accepted = Array.from({ length: 16 }, (_, n) =>
      conversation.send(`${n} ${LINE.repeat(1_000)}`, { delivery: "followUp" }),
    );
    await conversation.untilBlocked(1);
    await until(async () => (await conversation.handle.query<{ revision: number }>("state")).revision > 12);
    await unblock();
    await Promise.all(accepted);
    release();
    await finished(conversation);
    const said = (await conversation.types()).filter((type) => type === "user");
    expect(said).toHaveLength(17);
    expect((await conversation.handle.describe()).status.name).toBe("RUNNING");
    expect(await largestInput(conversation)).toBeLessThan(LIMIT);
  });

  test("are each stored once when the row has diverged, and none waits for room for ever", async () => {
    const { conversation, release } = await asking();
    const unblock = await conversation.block(
      (sql) => sql`update conversations set revision_id = 'another' where id = ${conversation.id}`,
    );
    const accepted = Array.from({ length: 16 }, (_, n) =>
      conversation.send(`${n} ${LINE.repeat(1_000)}`, { delivery: "followUp" }),
    );
    const { handle } = conversation;
    const waiting = async () => (await handle.query<Shown>("state")).conversation.queue.length;
    await until(async () => (await waiting()) === 16);
    release();
    // The answer has come, and a request has been ordered that no commit has room for.
    await until(async () => (await waiting()) === 15);
    const { runId } = await handle.describe();
    await unblock();
    await Promise.all(accepted);
    await finished(conversation);
    const ids = (await conversation.messages()).filter(({ type }) => type === "user").map(({ id }) => id);
    expect(new Set(ids).size).toBe(17);
    expect(ids).toHaveLength(17);
    // An input that was not stored is not sent again and again.
    const large = (await inputsOf(conversation, runId)).filter((bytes) => bytes > LIMIT / 10);
    expect(new Set(large).size).toBe(large.length);
    expect(await largestInput(conversation)).toBeLessThan(LIMIT);
  });

  test("a signal's text and images are bounded like those of the API", async () => {
    const { conversation, release } = await asking();
    const image = { type: "image", hash: "h".repeat(600_000), mediaType: "image/png", width: 1, height: 1 };
    for (const input of [
      { text: "see", images: [image] as never },
      { text: "x".repeat(500_000), delivery: "steer" as const },
    ])
      await conversation.handle.signal(sendMessageSignal, input);
    await conversation.until(({ conversation: { sequence } }) => sequence === 3);
    expect(await conversation.types()).toEqual(["user", "note", "note"]);
    release();
    await finished(conversation);
  });
});

describe("an answer", () => {
  test("runs its call with a long input; a call that is too long fails and says so", async () => {
    const content = LINE.repeat(20_000);
    const path = randomUUID();
    const write = (to: string) => toolCall("write", { path: to, content });
    const { conversation, release } = await asking(write(path), write(`${path}.never`), toolCall("ls", {}));
    release();
    await finished(conversation);
    expect(readFileSync(join(system.cwd, path), "utf8")).toBe(content);
    const results = await conversation.results();
    expect(results.map(({ status }) => status)).toEqual(["completed", "failed", "completed"]);
    expect(textOf(results[1])).toMatch(/too long together.*smaller pieces/s);
    expect(textOf(results[2])).not.toContain("never");
  });

  test.for([
    ["a text that is too long", [LINE.repeat(60_000)]],
    ["thousands of calls", Array.from({ length: 1_000 }, () => toolCall("nope", {}))],
    ["a call with a name that is too long", [toolCall("n".repeat(100_000), {})]],
  ] as const)("%s is an error, and the next message goes on", async ([, parts]) => {
    const { conversation, release } = await asking(...parts);
    release();
    expect((await conversation.untilState("error")).message).toContain("could not be kept");
    await conversation.send("Shorter, please.");
    await finished(conversation);
  });

  test("fits in one piece with the largest allowed contents of every kind", async () => {
    const names = Array.from({ length: 250 }, () => toolCall("n".repeat(200), {}));
    const { conversation, release } = await asking(
      toolCall("write", { path: randomUUID(), content: `${"x".repeat(98)}\n`.repeat(3_190) }),
      "y".repeat(330_000),
      ...names,
    );
    await conversation.send("z".repeat(370_000), { delivery: "followUp" });
    release();
    await finished(conversation);
    const results = await conversation.results();
    expect(results.map(({ status }) => status)).toEqual(["completed", ...names.map(() => "failed")]);
    const [written] = (await conversation.messages()).flatMap((message) =>
      message.type === "tool" ? [message.display] : [],
    );
    expect(jsonBytes(written)).toBeGreaterThan(DIFF_BYTES - 1_000);
    const largest = await largestInput(conversation);
    expect(largest).toBeGreaterThan(LIMIT / 2);
    expect(largest).toBeLessThan(LIMIT);
  });
});

test.for(["漢", "\u0001", "x"])(
  "the reports of 16 sub-agents fit at their maximum length, in %j",
  async (character) => {
    const text = character.repeat(16_384);
    const submit = say(toolCall("submit_result", { result: text }));
    const family = await spawnFamily(
      system,
      Array.from({ length: 16 }, () => ({ script: [submit] })),
    );
    expect(outcomesIn((await family.report()).text)).toHaveLength(16);
    await family.parent.untilState("idle");
    expect((await family.parent.handle.describe()).status.name).toBe("RUNNING");
    expect(await largestInput(family.parent)).toBeLessThan(LIMIT);
  },
);
