/**
 * Workers that are stopped (SIGSTOP) past their heartbeat timeout and then wake: the fence of docs/architecture.md,
 * rule 2, and the check of the clock before the effect.
 */
import { expect, test } from "vitest";
import { hold } from "../../local/scripted/cues.ts";
import { say } from "../../local/scripted/script.ts";
import { TestConversation } from "../support/conversation.ts";
import { startSystem } from "../support/system.ts";
import { startWorkerProcess } from "../support/worker-process.ts";
import { countedTool } from "./counted-tool.ts";

test.concurrent(
  "a worker frozen between commit and effect past its heartbeat timeout does not run the tool when it wakes",
  { timeout: 60_000 },
  async () => {
    const { system, frozen, conversation, tool, unblock } = await frozenBeforeCommit();
    await unblock();
    await conversation.untilState("tool_executing");
    // Another worker goes on: the call's outcome is unknown, and the model reads so.
    await system.startWorker();
    await conversation.untilState("idle");
    frozen.signal("SIGCONT");
    await proveAwake(conversation);
    expect(tool.runs()).toBe(0);
    expect((await conversation.results()).map((result) => result.status)).toEqual(["interrupted"]);
  },
);

test.concurrent(
  "a worker frozen before its commit: another one runs the tool, and the first performs nothing when it wakes",
  { timeout: 60_000 },
  async () => {
    const { system, frozen, conversation, tool, unblock, commit } = await frozenBeforeCommit();
    await system.db.sql`select pg_terminate_backend(${commit})`;
    await unblock();
    await system.startWorker();
    await conversation.untilState("idle");
    frozen.signal("SIGCONT");
    await proveAwake(conversation);
    expect(tool.runs()).toBe(1);
    expect((await conversation.results()).map((result) => result.status)).toEqual(["completed"]);
    expect(await conversation.types()).toEqual([
      "user",
      "agent",
      "tool",
      "agent",
      "run_stop",
      "user",
      "agent",
      "run_stop",
    ]);
  },
);

/** A worker that was stopped while the commit that orders a tool waits for the row's lock. */
async function frozenBeforeCommit() {
  const system = await startSystem({ workers: 0 });
  const frozen = await startWorkerProcess(system);
  const conversation = await TestConversation.open(system, "unrestricted");
  const tool = countedTool(system);
  const held = hold();
  const tag = system.model.script(tool.name, [say("Now. ", held, tool.call), say("Done."), say("Here.")]);
  await conversation.send(`go ${tag}`);
  await held.reached;
  const unblock = await conversation.block();
  held.release();
  const [commit = 0] = await conversation.untilBlocked(1);
  frozen.signal("SIGSTOP");
  return { system, frozen, conversation, tool, unblock, commit };
}

/** Runs one more turn through both workers' queues: by its end the woken worker has done what it was about to do. */
async function proveAwake(conversation: TestConversation): Promise<void> {
  await conversation.send("again");
  await conversation.untilState("idle");
}
