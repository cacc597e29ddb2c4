/** The typed client against the real API, workflows and tools. */
import { randomUUID } from "node:crypto";
import { expect, onTestFinished, test, vi } from "vitest";
import { serve } from "../../api/serve.ts";
import {
  createCalls,
  createClient,
  newId,
  Refused,
  Unreachable,
  type Client,
  type LoadedConversation,
} from "../../client/index.ts";
import { REQUEST_DEADLINE_MS, UPLOAD_DEADLINE_MS } from "../../protocol/timing.ts";
import { freePort } from "../../local/ports.ts";
import { hold } from "../../local/scripted/cues.ts";
import { say, text } from "../../local/scripted/script.ts";
import { serveApi, startApiOn } from "../api/support.ts";
import { startSystem } from "../support/system.ts";

const system = await startSystem();
const api = startApiOn(system);
const { url } = await serveApi(api);

const isAtRest = ({ conversation, messages }: LoadedConversation) =>
  conversation.state.kind === "idle" && messages.at(-1)?.type === "run_stop";

function connect(at = url): Client {
  const client = createClient({ url: at, token: null });
  onTestFinished(() => client.end());
  return client;
}

async function until(client: Client, id: string, holds: (model: LoadedConversation) => boolean) {
  return vi.waitFor(() => {
    const model = client.models.conversation(id);
    if (model.kind !== "loaded" || !holds(model)) throw new Error(JSON.stringify(model).slice(0, 300));
    return model;
  }, 30_000);
}

const create = async (client: Client, json: object = {}) => {
  const body = { id: newId(), cwd: system.cwd, ...json };
  return (await client.persist((routes) => routes.conversations.$post({ json: body }))).id;
};

test("a conversation is created, followed while it is written, and stands in the list of every client", async () => {
  const [first, second] = [connect(), connect()];
  const held = hold();
  const tag = system.model.script(randomUUID(), [say(text("Hel", held, "lo."))]);
  const id = await create(first, { message: { id: "m1", text: `Say hello. ${tag}` } });
  for (const client of [first, second]) {
    client.open(id);
    const { conversation } = await until(client, id, ({ answer }) => answer?.blocks[0]?.text === "Hel");
    expect(conversation.state.kind).toBe("llm_requesting");
  }
  held.release();
  for (const client of [first, second]) {
    const { messages, answer } = await until(client, id, isAtRest);
    expect(messages.map(({ type }) => type)).toEqual(["user", "agent", "run_stop"]);
    expect(answer).toBeNull();
    await vi.waitFor(() => expect(client.models.list.conversations.get(id)?.state.kind).toBe("idle"), 10_000);
  }
});

test("who comes after an API has died goes on by number: no message is missed, none comes twice", async () => {
  const port = await freePort();
  const serveAgain = () =>
    serve(
      (request) => api.api.fetch(request),
      { host: "127.0.0.1", port },
      () => undefined,
    );
  let listening = await serveAgain();
  onTestFinished(() => listening.close(0));
  const client = connect(`http://127.0.0.1:${port}`);
  const tag = system.model.script(randomUUID(), [say(text("First.")), say(text("Second."))]);
  const id = await create(client, { message: { text: `One ${tag}` } });
  client.open(id);
  await until(client, id, isAtRest);
  await listening.close(0);
  await vi.waitFor(() => expect(client.models.link.kind).toBe("lost"), 10_000);
  // The message is repeated under its id until the server answers.
  const sent = client.persist((routes) =>
    routes.conversations[":id"].messages.$post({ param: { id }, json: { id: "m2", text: `Two ${tag}` } }),
  );
  listening = await serveAgain();
  expect((await sent).messageId).toBe("m2");
  const { messages } = await until(client, id, (model) => isAtRest(model) && model.messages.length > 5);
  expect(messages.map(({ type, sequence }) => [type, sequence])).toEqual([
    ["user", 1],
    ["agent", 2],
    ["run_stop", 3],
    ["user", 4],
    ["agent", 5],
    ["run_stop", 6],
  ]);
});

test("a refusal has the server's code and sentence; no answer is told apart from it", async () => {
  const client = connect();
  const refused = client.call((routes) =>
    routes.conversations.$post({ json: { id: newId(), cwd: "relative" } }),
  );
  await expect(refused).rejects.toBeInstanceOf(Refused);
  await expect(refused).rejects.toMatchObject({ problem: { code: "invalid_cwd", status: 422 } });
  const nobody = createCalls({ url: `http://127.0.0.1:${await freePort()}`, token: null });
  await expect(nobody.call((routes) => routes.models.$get())).rejects.toBeInstanceOf(Unreachable);
});

test("a message with images may take as long on its way as the server lets it; a small call is given up sooner", async () => {
  const limits = vi.spyOn(AbortSignal, "timeout");
  onTestFinished(() => limits.mockRestore());
  const client = connect();
  const id = await create(client);
  const send = (size: number) =>
    client
      .call((routes) =>
        routes.conversations[":id"].messages.$post({
          param: { id },
          json: { text: "Look.", images: [{ mediaType: "image/png", data: "A".repeat(size) }] },
        }),
      )
      .catch(() => undefined);
  const allowed = () => Math.max(...limits.mock.calls.flat());
  await send(100);
  expect(allowed()).toBeGreaterThan(REQUEST_DEADLINE_MS);
  expect(allowed()).toBeLessThan(UPLOAD_DEADLINE_MS);
  await send(100_000);
  expect(allowed()).toBeGreaterThan(UPLOAD_DEADLINE_MS + REQUEST_DEADLINE_MS);
});

test("a conversation that is not there is gone, and one that is deleted goes", async () => {
  const client = connect();
  client.open("nobody");
  await vi.waitFor(() => expect(client.models.conversation("nobody").kind).toBe("gone"), 10_000);
  const id = await create(client);
  client.open(id);
  await until(client, id, () => true);
  await client.call((routes) => routes.conversations[":id"].$delete({ param: { id } }));
  await vi.waitFor(() => expect(client.models.conversation(id).kind).toBe("gone"), 10_000);
  await vi.waitFor(() => expect(client.models.list.conversations.has(id)).toBe(false), 10_000);
});
