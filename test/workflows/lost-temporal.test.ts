/** Temporal decides the present, Postgres keeps the past. So nothing is lost with Temporal's database (rule 10). */
import { randomUUID } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, inject, test } from "vitest";
import { hold } from "../../local/scripted/cues.ts";
import { say } from "../../local/scripted/script.ts";
import { startTemporal } from "../../local/temporal/server.ts";
import { TestConversation } from "../support/conversation.ts";
import { startSystem } from "../support/system.ts";

test("with Temporal's database deleted, every conversation goes on with its next message", async () => {
  const folder = await mkdtemp(join(tmpdir(), "bedrock-temporal-"));
  const binary = inject("temporalBinary");
  const first = await startTemporal({ binary, dbFile: join(folder, "first.db") });
  const system = await startSystem({ workers: 0, env: { TEMPORAL_ADDRESS: first.address } });
  system.defer(() => rm(folder, { recursive: true, force: true }));
  const worker = await system.startWorker();

  const idle = await TestConversation.open(system);
  const busy = await TestConversation.open(system);
  const held = hold();
  const idleTag = system.model.script(randomUUID(), [say("One."), say("Two.")]);
  const busyTag = system.model.script(randomUUID(), [say("never stored ", held), say("After.")]);
  await idle.send(`first ${idleTag}`);
  await idle.untilState("idle");
  await busy.send(`first ${busyTag}`);
  await held.reached;

  await worker.stop();
  await first.stop();
  const port = Number(first.address.split(":")[1]);
  const second = await startTemporal({ binary, dbFile: join(folder, "second.db"), port });
  system.defer(() => second.stop());
  await system.startWorker();

  await idle.send("second");
  await idle.untilState("idle");
  expect(await idle.types()).toEqual(["user", "agent", "run_stop", "user", "agent", "run_stop"]);
  await busy.send("second");
  await busy.untilState("idle");
  expect(await busy.types()).toEqual(["user", "note", "run_stop", "user", "agent", "run_stop"]);
});
