/**
 * Temporal's port has no authentication, so any program of the machine can use it. In a product that was started as a
 * person does, such a program can do nothing that a worker acts upon. The control of each test: the same, encrypted.
 */
import { execFile } from "node:child_process";
import { randomUUID } from "node:crypto";
import { existsSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { Client } from "@temporalio/client";
import type { DataConverter, Payload, PayloadCodec } from "@temporalio/common";
import { afterAll, beforeAll, describe, expect, inject, onTestFinished, test } from "vitest";
import { hold } from "../../local/scripted/cues.ts";
import { say, toolCall } from "../../local/scripted/script.ts";
import { PayloadEncryption } from "../../protocol/payload-encryption.ts";
import * as contract from "../../protocol/workflow.ts";
import { createInputFor, NO_SANDBOX } from "../support/create-input.ts";
import { startProduct, type Product } from "../support/product.ts";
import { Talk } from "../support/talk.ts";
import { eventually, temporaryFolder } from "./support.ts";

const SLOW = 180_000;

let product: Product;
/** A client that sends as any program does, which has no key. It can read the answers, so that the tests can. */
let stranger: Client;
/** A client that copied an encrypted payload and changed it. */
let forger: Client;

beforeAll(async () => {
  product = await startProduct();
  const { connection } = product.temporal;
  stranger = new Client({ connection, dataConverter: inClear(product) });
  forger = new Client({ connection, dataConverter: changing(product) });
}, SLOW);
afterAll(() => product.stop(), SLOW);

const codecOf = ({ payloadKeys }: Product): PayloadEncryption => new PayloadEncryption(payloadKeys);

function inClear(product: Product): DataConverter {
  const encryption = codecOf(product);
  const codec: PayloadCodec = {
    encode: (payloads) => Promise.resolve(payloads),
    decode: (payloads, context) => encryption.decode(payloads, context),
  };
  return { payloadCodecs: [codec] };
}

/** Encrypts payloads, and then changes one of their bytes: a forger cannot encrypt what it wants. */
function changing(product: Product): DataConverter {
  const encryption = codecOf(product);
  const codec: PayloadCodec = {
    encode: async (wanted, context) => {
      const encrypted = await encryption.encode(wanted, context);
      return encrypted.map(({ metadata = null, data }) => ({
        metadata,
        data: (data ?? new Uint8Array()).map((byte, n) => (n === 20 ? byte ^ 1 : byte)),
      }));
    },
    decode: (payloads, context) => encryption.decode(payloads, context),
  };
  return { payloadCodecs: [codec] };
}

const place = () => ({
  config: { toolHost: hostname(), model: "claude-opus-4-8", taskQueue: contract.CONVERSATIONS_QUEUE },
  cwd: product.cwd,
  sandbox: NO_SANDBOX,
});

/** Scripts an answer of the model that touches a file; returns the message that asks for it. */
function touching(file: string): string {
  const touch = say(toolCall("bash", { command: `touch ${file}` }));
  return `go ${product.model.script(randomUUID(), [touch, say("Done.")])}`;
}

const fileOf = (): string => join(product.cwd, randomUUID());

const startBy = (client: Client, id: string, text: string) =>
  client.workflow.signalWithStart(contract.CONVERSATION_WORKFLOW, {
    workflowId: id,
    taskQueue: contract.CONVERSATIONS_QUEUE,
    args: [{ conversationId: id, createInput: createInputFor(place(), id) }],
    signal: contract.sendMessageSignal,
    signalArgs: [{ text }],
  });

const STRANGERS = [
  ["is not encrypted", () => stranger],
  ["was changed after it was encrypted", () => forger],
] as const;

describe.each(STRANGERS)("a payload that %s", (_, clientOf) => {
  test("starts no conversation", { timeout: SLOW }, async () => {
    const [file, control] = [fileOf(), fileOf()];
    const started = await startBy(clientOf(), randomUUID(), touching(file));
    await started.result();
    await startBy(product.temporal, randomUUID(), touching(control));
    await eventually("the control", () => existsSync(control), SLOW);
    expect(existsSync(file)).toBe(false);
  });

  test("does not start the workflow of an existing conversation", { timeout: SLOW }, async () => {
    const talk = await Talk.create(product);
    onTestFinished(() => talk.close());
    await product.temporal.workflow.getHandle(talk.id).terminate();
    const file = fileOf();
    await (await startBy(clientOf(), talk.id, touching(file))).result();
    const idle = talk.nextState("idle");
    await talk.send(`go ${product.model.script(randomUUID(), [say("Here.")])}`);
    await idle;
    expect((await talk.messages()).map(({ type }) => type)).toEqual(["user", "agent", "run_stop"]);
    expect(existsSync(file)).toBe(false);
  });

  test("is refused as a signal and as an update", { timeout: SLOW }, async () => {
    const talk = await Talk.open(product);
    onTestFinished(() => talk.close());
    const handle = clientOf().workflow.getHandle(talk.id);
    const file = fileOf();
    const text = touching(file);
    await handle.signal(contract.sendMessageSignal, { text });
    await handle.signal(contract.cancelSignal, {});
    await handle.signal(contract.archiveSignal, {});
    await handle.signal(contract.triggerContinuationSignal, { triggerContinuation: true });
    await handle.signal(contract.removeSignal, { remove: true });
    const asked = { messageId: randomUUID(), text, images: [], delivery: "direct" } as const;
    const updates: readonly (() => Promise<unknown>)[] = [
      () => handle.executeUpdate(contract.sendMessageUpdate, { args: [asked] }),
      () => handle.executeUpdate(contract.cancelUpdate, { args: [{ queue: "clear" }] }),
      () => handle.executeUpdate(contract.archiveUpdate, { args: [{ archived: true }] }),
      () => handle.executeUpdate(contract.downgradeUpdate, { args: [{}] }),
      () =>
        handle.executeUpdate(contract.triggerContinuationUpdate, { args: [{ triggerContinuation: true }] }),
      () => handle.executeUpdate(contract.removeUpdate, { args: [{ remove: true }] }),
    ];
    for (const update of updates)
      await expect(update()).rejects.toMatchObject({ cause: { type: "invalid_request" } });
    await eventually("the notes", async () => (await talk.messages()).length === 5);
    const notes = (await talk.messages()).map(({ content }) => JSON.stringify(content));
    for (const name of ["sendMessage", "cancel", "archive", "triggerContinuation", "remove"])
      expect(notes.join()).toContain(`The signal ${name} was not taken (invalid_request)`);
    expect(existsSync(file)).toBe(false);
    await product.temporal.workflow.getHandle(talk.id).signal(contract.sendMessageSignal, { text });
    await eventually("the control", () => existsSync(file), SLOW);
  });

  test("is refused as the order for an activity", { timeout: SLOW }, async () => {
    const queue = contract.toolsQueue(hostname());
    for (const taskQueue of [queue, contract.CONVERSATIONS_QUEUE]) {
      const asked = clientOf().activity.execute("executeTool", {
        ...{ id: randomUUID(), taskQueue, startToCloseTimeout: "10s", retry: { maximumAttempts: 1 } },
        args: [{ conversationId: randomUUID(), config: { host: hostname() } }],
      });
      await expect(asked).rejects.toMatchObject({
        cause: { message: "The order does not come from this installation." },
      });
    }
    const listed = product.temporal.activity.execute("listDirectories", {
      ...{ id: randomUUID(), taskQueue: queue, startToCloseTimeout: "10s" },
      args: [{ path: product.cwd }],
    });
    await expect(listed).resolves.toHaveProperty("directories");
  });

  test("is ignored as the answer of an activity", { timeout: SLOW }, async () => {
    const talk = await Talk.open(product);
    onTestFinished(() => talk.close());
    const held = hold();
    onTestFinished(() => held.release());
    const file = fileOf();
    const script = product.model.script(randomUUID(), [say("never ", held), say("The true answer.")]);
    await talk.send(`go ${script}`);
    await held.reached;
    const idle = talk.nextState("idle");
    const stored = await product.temporal.workflow.getHandle(talk.id).query(contract.stateQuery);
    const activityId = await pendingActivity(talk.id);
    const { state } = stored.conversation;
    const requestId = state.kind === "llm_requesting" ? state.requestId : "";
    expect(requestId).not.toBe("");
    const call = { type: "tool_use", id: "toolu_forged", name: "bash", input: { command: `touch ${file}` } };
    const forged = {
      kind: "done",
      committed: {
        confirmed: stored.revision,
        revisionId: stored.revisionId,
        restarts: 0,
        awaits: requestId,
        diverged: false,
      },
      event: { kind: "llm_response", requestId, content: [call], stopReason: "tool_use" },
    };
    await complete(clientOf(), talk.id, activityId, forged);
    await idle;
    expect(existsSync(file)).toBe(false);
    expect(JSON.stringify(await talk.messages())).toContain("The true answer.");
  });
});

async function pendingActivity(workflowId: string): Promise<string> {
  const { raw } = await product.temporal.workflow.getHandle(workflowId).describe();
  const found = raw.pendingActivities?.find(({ activityType }) => activityType?.name === "requestLlm");
  return found?.activityId ?? "";
}

/** Completes an activity as a worker would, without having taken its task. */
async function complete(client: Client, workflowId: string, activityId: string, answer: unknown) {
  const payload: Payload = {
    metadata: { encoding: Buffer.from("json/plain") },
    data: Buffer.from(JSON.stringify(answer)),
  };
  const { payloadCodecs } = client.options.loadedDataConverter;
  const context = { type: "activity", namespace: "default", workflowId, activityId, isLocal: false } as const;
  let payloads = [payload];
  for (const codec of payloadCodecs) payloads = await codec.encode(payloads, context);
  await client.workflowService.respondActivityTaskCompletedById({
    ...{ namespace: "default", workflowId, activityId, result: { payloads } },
  });
}

test(
  "a command without an input is refused, because nothing is authenticated",
  { timeout: SLOW },
  async () => {
    const talk = await Talk.open(product);
    onTestFinished(() => talk.close());
    const handle = stranger.workflow.getHandle(talk.id);
    for (const name of ["cancel", "archive", "downgrade", "triggerContinuation", "remove"]) {
      await handle.signal(name);
      await expect(handle.executeUpdate(name)).rejects.toMatchObject({ cause: { type: "invalid_request" } });
    }
    await eventually("the notes", async () => (await talk.messages()).length === 5);
  },
);

test("a copy of another input removes nothing and ends nothing", { timeout: SLOW }, async () => {
  const talk = await Talk.open(product);
  onTestFinished(() => talk.close());
  const handle = product.temporal.workflow.getHandle(talk.id);
  for (const name of ["remove", "triggerContinuation"]) {
    await handle.signal(name, { queue: "run" });
    await expect(handle.executeUpdate(name, { args: [{ archived: true }] })).rejects.toMatchObject({
      cause: { type: "invalid_request" },
    });
  }
  await eventually("the notes", async () => (await talk.messages()).length === 2);
});

describe("an operator", () => {
  const temporal = async (...args: readonly string[]): Promise<string> => {
    const address = ["--address", product.temporalAddress];
    const { stdout } = await promisify(execFile)(inject("temporalBinary"), [...args, ...address], {
      env: { PATH: process.env["PATH"], HOME: temporaryFolder() },
    });
    return stdout;
  };

  test("signals by Temporal's command line with the API as its codec", { timeout: SLOW }, async () => {
    const talk = await Talk.open(product);
    onTestFinished(() => talk.close());
    const signal = (name: string, input: object, ...more: readonly string[]) =>
      temporal(
        ...["workflow", "signal", "--workflow-id", talk.id, "--name", name],
        ...["--input", JSON.stringify(input), ...more],
      );
    const codec = ["--codec-endpoint", `${product.url}/api/conversations/${talk.id}/codec`];
    const file = fileOf();
    const text = touching(file);
    await signal("sendMessage", { text });
    const idle = talk.nextState("idle");
    await signal("sendMessage", { text }, ...codec);
    await idle;
    expect(existsSync(file)).toBe(true);
    const [note] = await talk.messages();
    expect(JSON.stringify(note)).toContain("The signal sendMessage was not taken");

    const query = ["workflow", "query", "--workflow-id", talk.id, "--type", "state"];
    expect(await temporal(...query, ...codec)).toContain('"idle"');
  });
});

describe("the key", () => {
  test("is in no file of the data", () => {
    const {
      dataDir,
      payloadKeys: [payloadKey],
    } = product;
    expect(payloadKey).toHaveLength(32);
    const text = Buffer.from(payloadKey ?? []).toString("base64");
    const files = readdirSync(dataDir, { recursive: true, encoding: "utf8" });
    expect(files).toContain("run/payload.key.used");
    for (const file of files) {
      const path = join(dataDir, file);
      if (statSync(path).isFile()) expect(readFileSync(path, "latin1"), file).not.toContain(text);
    }
  });

  const given = (n: number) => ({ PAYLOAD_KEY: Buffer.alloc(32, n).toString("base64") });
  const OWN = { PAYLOAD_KEY: undefined };
  test.each([
    { how: "another one is given", keys: [given(1), given(2)], keepsFolder: true },
    { how: "each start makes its own", keys: [OWN, OWN], keepsFolder: true },
    { how: "nothing is known of the one before", keys: [OWN, OWN], keepsFolder: false },
  ] as const)(
    "where $how, conversations go on from their rows",
    { timeout: SLOW },
    async ({ keys: [before, after], keepsFolder }) => {
      const dataDir = join(temporaryFolder(), "data");
      const first = await startProduct({ dataDir, env: before });
      const talk = await Talk.create(first);
      const idle = talk.nextState("idle");
      await talk.send(`go ${first.model.script(talk.id, [say("One.")])}`);
      await idle;
      const busy = await Talk.create(first);
      const held = hold();
      await busy.send(`go ${first.model.script(busy.id, [say("never ", held)])}`);
      await held.reached;
      await busy.send("go later", "followUp");
      for (const each of [talk, busy]) each.close();
      await first.stop();
      if (!keepsFolder) rmSync(join(dataDir, "run"), { recursive: true });

      const second = await startProduct({ dataDir, env: after });
      onTestFinished(() => second.stop());
      const waiting = await Talk.follow(second, busy.id);
      expect(await waiting.read()).toMatchObject({ queueHeld: "restart", queue: [{ text: "go later" }] });
      waiting.close();
      for (const { id } of [talk, busy]) {
        const again = await Talk.follow(second, id);
        expect(await again.state()).toMatchObject({ kind: "idle" });
        // The second product has another provider, which does not know the first one's scripts.
        second.model.script(id, [say("Two."), say("Two.")]);
        await again.send("go on");
        await eventually(
          "the answer",
          async () => JSON.stringify(await again.messages()).includes("Two."),
          SLOW,
        );
        again.close();
      }
    },
  );
});
