/** Workers that die with a request: asked again elsewhere, without a word lost (REQ-BED-006, 007). */
import { randomUUID } from "node:crypto";
import { expect, test } from "vitest";
import { hold } from "../../local/scripted/cues.ts";
import { say } from "../../local/scripted/script.ts";
import { TestConversation } from "../support/conversation.ts";
import { startSystem } from "../support/system.ts";
import { startWorkerProcess } from "../support/worker-process.ts";

test("a worker killed in a request: another asks again, and the attempt does not count", async () => {
  const system = await startSystem({ workers: 0 });
  const killed = await startWorkerProcess(system);
  const conversation = await TestConversation.open(system);
  const name = randomUUID();
  const held = hold();
  const tag = system.model.script(name, [say("half an ", held), say("A whole answer.")]);
  await conversation.send(`go ${tag}`);
  await held.reached;
  await system.startWorker();
  killed.signal("SIGKILL");
  const again = await system.model.nextRequest(name, 2);
  expect(again.n).toBe(2);
  const { state } = (await conversation.stored()).conversation;
  if (state.kind === "llm_requesting") expect(state.attempt).toBe(1);
  await conversation.untilState("idle");
  const texts = JSON.stringify(await conversation.messages());
  expect(texts).toContain("A whole answer.");
  expect(texts).not.toContain("half an");
});

test("a worker that is shut down in a request is not the person's Stop", async () => {
  const system = await startSystem({ workers: 0 });
  const first = await system.startWorker();
  const conversation = await TestConversation.open(system);
  const name = randomUUID();
  const held = hold();
  const tag = system.model.script(name, [say("half an ", held), say("A whole answer.")]);
  await conversation.send(`go ${tag}`);
  await held.reached;
  await system.startWorker();
  await first.stop();
  await conversation.untilState("idle");
  expect(await conversation.types()).toEqual(["user", "agent", "run_stop"]);
});
