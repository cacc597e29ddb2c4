/**
 * The key of payloads is replaced while conversations work, by the steps of docs/security.md: the new key is added, then
 * made the first, then the old one is removed. Two workers are replaced one after the other at each step.
 */
import { Client } from "@temporalio/client";
import { historyToJSON } from "@temporalio/common/lib/proto-utils.js";
import { Worker } from "@temporalio/worker";
import { expect, inject, test } from "vitest";
import { say, toolCall, type Answer } from "../../local/scripted/script.ts";
import { dataConverterOf } from "../../protocol/payload-encryption.ts";
import { archiveUpdate } from "../../protocol/workflow.ts";
import { startWorker } from "../../worker.ts";
import { TestConversation } from "../support/conversation.ts";
import { startSystem, type System } from "../support/system.ts";
import { until } from "../support/waiting.ts";

const [OLD, NEW] = [Buffer.alloc(32, 1), Buffer.alloc(32, 2)];
const CONVERSATIONS = 4;
/** Tool rounds of a turn. A step takes as long as some of them. */
const ROUNDS = 12;

/** The ids of the keys in the history of the conversation's present run. */
async function keysIn({ handle }: TestConversation): Promise<ReadonlySet<string>> {
  const history = JSON.stringify(historyToJSON(await handle.fetchHistory()));
  return new Set([...history.matchAll(/"encryption-key-id\W+(\w+)/g)].map(([, id = ""]) => id));
}

async function replay(conversation: TestConversation, keys: readonly Uint8Array[]): Promise<void> {
  const options = {
    workflowBundle: { codePath: inject("bundlePath") },
    sinks: { runs: { began: { fn: () => undefined } } },
    dataConverter: dataConverterOf(keys),
  };
  await Worker.runReplayHistory(options, await conversation.handle.fetchHistory(), conversation.id);
}

/** A turn of several rounds. A request that its worker could not finish is made again, and takes the next answer. */
const TURN = [
  ...Array.from({ length: ROUNDS }, () => say(toolCall("bash", { command: "true" }))),
  say("Done."),
];
const SHORT = [say(toolCall("bash", { command: "true" })), say("Done.")];

/** Opens a conversation to which the model answers so, again and again. */
async function opened(system: System, answers: readonly Answer[]): Promise<TestConversation> {
  const conversation = await TestConversation.open(system);
  conversation.system.model.script(conversation.id, Array.from({ length: 8 }, () => answers).flat());
  return conversation;
}

/** Works through a turn; resolves when it is over. */
async function turn(conversation: TestConversation): Promise<void> {
  const ended = async () => (await conversation.types()).filter((type) => type === "run_stop").length;
  const before = await ended();
  await conversation.send(`go [[script:${conversation.id}]]`);
  await until(async () => (await ended()) > before);
}

test("a key is replaced while conversations work, and no turn is lost", { timeout: 120_000 }, async () => {
  const base = await startSystem({ workers: 0 });
  const bundle = () => Promise.resolve(inject("bundlePath"));
  const worker = (payloadKeys: readonly Uint8Array[]) =>
    startWorker({ ...base.config, payloadKeys }, bundle, { shutdownLimit: 20_000 });
  /** What an API has that knows these keys. */
  const by = (keys: readonly Uint8Array[]): System => ({
    ...base,
    temporal: new Client({ connection: base.temporal.connection, dataConverter: dataConverterOf(keys) }),
  });
  const workers = [await worker([OLD]), await worker([OLD])];
  base.defer(() => Promise.all(workers.map((each) => each.stop())));
  const busy = await Promise.all(Array.from({ length: CONVERSATIONS }, () => opened(by([OLD]), TURN)));
  const quiet = await opened(by([OLD]), SHORT);
  await turn(quiet);

  // The API may know the keys of the step before, or those of this one.
  for (const [before, keys] of [
    [[OLD], [OLD, NEW]],
    [
      [OLD, NEW],
      [NEW, OLD],
    ],
  ] as const) {
    const turns = busy.map(({ id }, n) => turn(new TestConversation(by(n % 2 === 0 ? before : keys), id)));
    for (const at of workers.keys()) {
      const next = await worker(keys);
      await workers[at]?.stop();
      workers[at] = next;
    }
    await Promise.all(turns);
  }
  // Workers that have just started read what the old key has encrypted, and go on with the new one.
  const shown = new TestConversation(by([NEW, OLD]), quiet.id);
  await turn(shown);
  expect((await keysIn(shown)).size).toBe(2);
  await replay(shown, [NEW, OLD]);
  await expect(replay(shown, [NEW])).rejects.toThrow();

  // No run that used the old key may be left. An archived conversation has none, and is begun again from its row.
  for (const { id } of [...busy, quiet])
    await by([NEW, OLD])
      .temporal.workflow.getHandle(id)
      .executeUpdate(archiveUpdate, { args: [{ archived: true }] });
  for (const at of workers.keys()) {
    const next = await worker([NEW]);
    await workers[at]?.stop();
    workers[at] = next;
  }
  const system = by([NEW]);
  await Promise.all(busy.map(({ id }) => turn(new TestConversation(system, id))));

  for (const { id } of busy) {
    const conversation = new TestConversation(system, id);
    const types = await conversation.types();
    expect(types.filter((type) => type === "run_stop")).toHaveLength(3);
    expect(types).not.toContain("note");
    expect(JSON.stringify(await conversation.messages())).not.toMatch(/"interrupted"|"error"/);
    expect((await keysIn(conversation)).size).toBe(1);
  }
});

test("a run that used a removed key is terminated, and its conversation goes on from its row", async () => {
  const base = await startSystem({ workers: 0 });
  const bundle = () => Promise.resolve(inject("bundlePath"));
  const by = (key: Uint8Array): System => ({
    ...base,
    temporal: new Client({ connection: base.temporal.connection, dataConverter: dataConverterOf([key]) }),
  });
  const first = await startWorker({ ...base.config, payloadKeys: [OLD] }, bundle);
  const before = await opened(by(OLD), SHORT);
  await turn(before);
  await first.stop();
  const second = await startWorker({ ...base.config, payloadKeys: [NEW] }, bundle);
  base.defer(() => second.stop());
  await before.handle.terminate();
  await turn(new TestConversation(by(NEW), before.id));
});
