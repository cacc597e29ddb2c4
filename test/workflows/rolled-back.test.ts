/**
 * A Temporal database that comes back older than Postgres (a backup, a disk that lost power). The rolled-back run makes
 * revisions with numbers that are taken already. None of them may pass as stored. Nothing that was answered is lost.
 */
import { randomUUID } from "node:crypto";
import { existsSync } from "node:fs";
import { copyFile, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, inject, test } from "vitest";
import { hold } from "../../local/scripted/cues.ts";
import { say } from "../../local/scripted/script.ts";
import { sendRestarted, type Announced } from "../../local/restart.ts";
import { startTemporal, type RunningTemporal } from "../../local/temporal/server.ts";
import { TestConversation } from "../support/conversation.ts";
import { startSystem, type System } from "../support/system.ts";
import { startWorkerProcess, type WorkerProcess } from "../support/worker-process.ts";

/** A system whose Temporal server can be restored to an earlier state. */
class Restorable {
  readonly system: System;
  readonly #file: string;
  readonly #port: number;
  #server: RunningTemporal;
  #worker: WorkerProcess | null = null;

  private constructor(system: System, server: RunningTemporal, file: string) {
    this.system = system;
    this.#server = server;
    this.#file = file;
    this.#port = Number(server.address.split(":")[1]);
  }

  static async start(): Promise<Restorable> {
    const folder = await mkdtemp(join(tmpdir(), "bedrock-temporal-"));
    const file = join(folder, "temporal.db");
    const server = await startTemporal({ binary: inject("temporalBinary"), dbFile: file });
    const system = await startSystem({ workers: 0, env: { TEMPORAL_ADDRESS: server.address } });
    system.defer(() => rm(folder, { recursive: true, force: true }));
    const restorable = new Restorable(system, server, file);
    system.defer(() => restorable.#server.stop());
    await restorable.startWorker();
    return restorable;
  }

  async startWorker(): Promise<void> {
    this.#worker = await startWorkerProcess(this.system);
  }

  /** Keeps a copy of the database as it is now. */
  async save(): Promise<void> {
    await this.#server.stop();
    await this.#copy("", ".saved");
    await this.#startServer();
  }

  /** Ends the worker and the server, and starts the server with the copy. No worker runs yet. */
  async restore(): Promise<void> {
    this.#worker?.signal("SIGKILL");
    await this.#worker?.exited;
    await this.#server.stop();
    await this.#copy(".saved", "");
    await this.#startServer();
  }

  /** Copies the write-ahead log too. SQLite makes the log's index anew. */
  async #copy(from: string, to: string): Promise<void> {
    await rm(`${this.#file}${to}-shm`, { force: true });
    await rm(`${this.#file}${to}-wal`, { force: true });
    await copyFile(`${this.#file}${from}`, `${this.#file}${to}`);
    if (existsSync(`${this.#file}${from}-wal`))
      await copyFile(`${this.#file}${from}-wal`, `${this.#file}${to}-wal`);
  }

  async #startServer(): Promise<void> {
    this.#server = await startTemporal({
      binary: inject("temporalBinary"),
      dbFile: this.#file,
      port: this.#port,
    });
  }
}

/** As `npm start` does, before a worker polls. */
function announceRestart({ config, temporal: client }: System): Promise<Announced> {
  const { databaseUrl, taskQueue } = config;
  return sendRestarted({ client, databaseUrl, taskQueue, policy: "idle" });
}

const textsOf = async (conversation: TestConversation): Promise<string[]> => {
  const messages = await conversation.messages();
  return messages.flatMap(({ type, content }) => (type === "user" ? [JSON.stringify(content)] : []));
};

test.each([
  ["after a Stop that changed nothing", true],
  ["at once", false],
])("a message is stored and answered although its revision number is taken, %s", async (_when, stops) => {
  const restorable = await Restorable.start();
  const { system } = restorable;
  const conversation = await TestConversation.open(system);
  const held = hold();
  const tag = system.model.script(randomUUID(), [say("One."), say("never stored ", held), say("Three.")]);
  await conversation.send(`first ${tag}`);
  await conversation.untilState("idle");
  await restorable.save();
  // The Stop draws a random number, as the restart does in the other history. So both draw the same revision id next.
  if (stops) await conversation.cancel();
  await conversation.send("message A");
  await held.reached;
  await restorable.restore();
  await announceRestart(system);
  await restorable.startWorker();
  await conversation.send("message B");
  await expect.poll(() => textsOf(conversation)).toHaveLength(3);
  await conversation.untilState("idle");
  const texts = await textsOf(conversation);
  expect(texts[1]).toContain("message A");
  expect(texts[2]).toContain("message B");
  await expect.poll(async () => JSON.stringify(await conversation.messages())).toContain("Three.");
});

/** Its row has a request in flight; its workflow was rolled back to the rest before. No worker runs. */
async function looksBusy() {
  const restorable = await Restorable.start();
  const { system } = restorable;
  const conversation = await TestConversation.open(system);
  const held = hold();
  const tag = system.model.script(randomUUID(), [say("One."), say("never stored ", held)]);
  await conversation.send(`first ${tag}`);
  await conversation.untilState("idle");
  await restorable.save();
  await conversation.send("second");
  await held.reached;
  await restorable.restore();
  return { restorable, conversation };
}

test("the start puts a conversation that only looks busy to idle, without a message", async () => {
  const { restorable, conversation } = await looksBusy();
  expect((await conversation.stored()).conversation.state.kind).toBe("llm_requesting");
  const announced = await announceRestart(restorable.system);
  await restorable.startWorker();
  await announced.atRest();
  await conversation.untilState("idle");
  expect(await textsOf(conversation)).toHaveLength(2);
});

test("a Stop puts a conversation that only looks busy to idle", async () => {
  const { restorable, conversation } = await looksBusy();
  await restorable.startWorker();
  await conversation.handle.signal("cancel", {});
  await conversation.untilState("idle");
});
