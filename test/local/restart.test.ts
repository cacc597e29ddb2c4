/** Which conversations a system restart signals. Not here: how they react (test/machine/restart.test.ts). */
import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { Client, Connection } from "@temporalio/client";
import { expect, inject, onTestFinished, test, vi } from "vitest";
import { sendRestarted, stillAtWork, type Announced } from "../../local/restart.ts";
import { hold } from "../../local/scripted/cues.ts";
import { say } from "../../local/scripted/script.ts";
import { startTemporal } from "../../local/temporal/server.ts";
import type { RestartPolicy } from "../../config.ts";
import { TestConversation } from "../support/conversation.ts";
import { startSystem, type System } from "../support/system.ts";
import { eventually, temporaryFolder } from "./support.ts";

const announce = (system: System, policy: RestartPolicy, client = system.temporal): Promise<Announced> => {
  const { databaseUrl, taskQueue } = system.config;
  return sendRestarted({ client, databaseUrl, taskQueue, policy });
};

/**
 * Opens a conversation in the middle of a request and an idle one, then stops the worker.
 *
 * @param next the model's answer to the next request
 */
async function interrupted(
  system: System,
  next = say("Asked again."),
): Promise<{ busy: TestConversation; idle: TestConversation }> {
  const worker = await system.startWorker();
  const idle = await TestConversation.open(system);
  const busy = await TestConversation.open(system);
  const held = hold();
  const tag = system.model.script(randomUUID(), [say("never stored", held), next]);
  await busy.send(`first ${tag}`);
  await held.reached;
  await worker.stop();
  expect((await busy.stored()).conversation.state.kind).toBe("llm_requesting");
  return { busy, idle };
}

test("with the policy idle, a working conversation is idle before the system is ready", async () => {
  const system = await startSystem({ workers: 0 });
  const { busy, idle } = await interrupted(system);
  const { told, atRest } = await announce(system, "idle");
  expect(told).toBe(2);
  const reports: string[] = [];
  const resting = atRest({ report: (sentence) => reports.push(sentence) });
  // 50 seconds later it still waits.
  const now = performance.now.bind(performance);
  const clock = vi.spyOn(performance, "now").mockImplementation(() => now() + 50_000);
  const before = reports.length;
  await eventually("two more looks", () => reports.length > before + 1);
  clock.mockRestore();
  await system.startWorker();
  expect(await resting).toBe(0);
  expect(new Set(reports)).toEqual(new Set(["waiting for 1 conversation to come to rest"]));
  expect((await busy.stored()).conversation.state.kind).toBe("idle");
  expect(await busy.types()).toEqual(["user", "note", "run_stop"]);
  expect(await idle.types()).toEqual([]);
});

test("the wait for conversations that do not come to rest has a limit, and can be interrupted", async () => {
  const system = await startSystem({ workers: 0 });
  await interrupted(system);
  const { atRest } = await announce(system, "idle");
  expect(await atRest({ within: 300 })).toBe(1);
  expect(stillAtWork(1)).toMatch(/after 60 s 1 conversation .*The start goes on/);
  const stop = new AbortController();
  expect(await atRest({ report: () => stop.abort(), signal: stop.signal })).toBe(1);
});

test("a conversation that was at rest since counts no more, although a client has given it work again", async () => {
  const system = await startSystem({ workers: 0 });
  const held = hold();
  const { busy } = await interrupted(system, say("never said", held));
  const { atRest } = await announce(system, "idle");
  await system.startWorker();
  await busy.untilState("idle");
  await busy.send("again");
  await held.reached;
  expect((await busy.stored()).conversation.state.kind).toBe("llm_requesting");
  expect(await atRest()).toBe(0);
});

test("with the policy resume, a working conversation goes on", async () => {
  const system = await startSystem({ workers: 0 });
  const { busy } = await interrupted(system);
  const { atRest } = await announce(system, "resume");
  await system.startWorker();
  await atRest();
  await busy.untilState("idle");
  expect(await busy.types()).toEqual(["user", "agent", "run_stop"]);
});

test("conversations of another installation on the same server get no signal", async () => {
  const [here, elsewhere] = [await startSystem(), await startSystem()];
  for (const system of [here, elsewhere]) {
    const { id } = await TestConversation.open(system);
    const query = `WorkflowId = "${id}"`;
    await eventually("a listed one", async () => (await system.temporal.workflow.count(query)).count === 1);
  }
  expect((await announce(here, "idle")).told).toBe(1);
});

test("a conversation that was at work when Temporal's database was lost becomes idle", async () => {
  const folder = temporaryFolder();
  const binary = inject("temporalBinary");
  const first = await startTemporal({ binary, dbFile: join(folder, "first.db") });
  const system = await startSystem({ workers: 0, env: { TEMPORAL_ADDRESS: first.address } });
  const { busy } = await interrupted(system);
  await first.stop();
  const port = Number(first.address.split(":")[1]);
  const second = await startTemporal({ binary, dbFile: join(folder, "second.db"), port });
  system.defer(() => second.stop());

  const connection = await Connection.connect({ address: second.address });
  onTestFinished(() => connection.close());
  const { told, atRest } = await announce(system, "idle", new Client({ connection }));
  expect(told).toBe(1);
  await system.startWorker();
  await atRest();
  expect((await busy.stored()).conversation.state.kind).toBe("idle");
  expect(await busy.types()).toEqual(["user", "note", "run_stop"]);
});
