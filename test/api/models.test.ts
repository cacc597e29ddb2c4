/**
 * Models in the running system (REQ-BED-022): the worker fetches the provider's list and the API offers it. A file of
 * the person overrides it, and a conversation's usage is measured against its model's limits.
 */
import { randomUUID } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { ModelRegistry } from "../../activities/model-registry.ts";
import { createModelRegistry } from "../../api/models.ts";
import { openDatabase } from "../../db/connect.ts";
import { createClient } from "../../llm/client.ts";
import { DEFAULT_MODEL, Models } from "../../llm/models.ts";
import { MODELS } from "../../local/scripted/models.ts";
import { answer, say, toolCall } from "../../local/scripted/script.ts";
import { sentImage } from "../support/images.ts";
import { startSystem } from "../support/system.ts";
import { until } from "../support/waiting.ts";
import { EventReader } from "./sse.ts";
import { bodyOf, problemOf, startApiOn } from "./support.ts";

const folder = mkdtempSync(join(tmpdir(), "bedrock-models-"));
afterAll(() => rmSync(folder, { recursive: true }));
const MODELS_FILE = join(folder, "models.json");
const SMALL = "claude-opus-4-5";
writeFileSync(
  MODELS_FILE,
  JSON.stringify({
    models: [
      { id: SMALL, contextWindow: 32_000, maxImages: 0 },
      { id: "mine", name: "My own" },
    ],
  }),
);

const system = await startSystem({ env: { MODELS_FILE } });
const { get, send } = startApiOn(system, { models: createModelRegistry(system.db, system.config) });

type Shown = { readonly [name: string]: unknown };

const offered = async () => (await bodyOf(await get("/api/models")))["models"] as readonly Shown[];
const learned = () => until(async () => (await system.db.sql`select from provider_models`).length > 0);

async function create(model: string): Promise<string> {
  const response = await send("POST", "/api/conversations", { cwd: system.cwd, model });
  expect(response.status).toBe(201);
  return String((await bodyOf(response))["id"]);
}

async function untilState(id: string, kind: string): Promise<void> {
  const events = new EventReader(await get(`/api/conversations/${id}/events`));
  await events.until(({ name, data }) => {
    const shown = (name === "snapshot" ? data["conversation"] : data) as Shown;
    return (shown["state"] as Shown | undefined)?.["kind"] === kind;
  });
  await events.cancel();
}

test("the provider's list is offered, with the file's models; one is the default", async () => {
  await learned();
  const models = await offered();
  expect(models.map(({ id }) => id)).toEqual([...MODELS.map(({ id }) => id), "mine"]);
  expect(models.filter((model) => model["default"] === true).map(({ id }) => id)).toEqual([DEFAULT_MODEL]);
  expect(models.find(({ id }) => id === SMALL)).toEqual({
    ...{ id: SMALL, name: "Claude Opus 4.5", contextWindow: 32_000, maxOutputTokens: 32_000 },
    ...{
      thinking: "none",
      maxImages: 0,
      price: { input: 5, output: 25, cacheRead: 0.5, cacheCreation: 6.25 },
      default: false,
      scripted: false,
    },
  });
  // Only the name of this model is known.
  expect(models.find(({ id }) => id === "mine")).toMatchObject({ name: "My own", contextWindow: 32_000 });
});

test("usage is measured against the model's own window: at 90 % of a small one the conversation ends", async () => {
  await learned();
  const id = await create(SMALL);
  const tokens = { cache_read_input_tokens: 0, cache_creation_input_tokens: 0, output_tokens: 10 };
  const tag = system.model.script(randomUUID(), ({ body }) =>
    body.tools === undefined
      ? say("Short.")
      : answer([toolCall("bash", { command: "true" })], { usage: { ...tokens, input_tokens: 28_790 } }),
  );
  await send("POST", `/api/conversations/${id}/messages`, { text: `go ${tag}` });
  await untilState(id, "context_exhausted");
  const { usage } = await bodyOf(await get(`/api/conversations/${id}`));
  expect(usage).toMatchObject({ contextWindow: 32_000 });
});

test("a model without vision reads a text in place of an image", async () => {
  await learned();
  const id = await create(SMALL);
  const key = randomUUID();
  const tag = system.model.script(key, [say("I cannot see it.")]);
  await send("POST", `/api/conversations/${id}/messages`, { text: tag, images: [await sentImage()] });
  await untilState(id, "idle");
  const sent = JSON.stringify(system.model.requestsOf(key)[0]?.body.messages);
  expect(sent).toContain("this model cannot see images");
  expect(sent).not.toContain("base64");
});

test("without a provider there is one model, and asking for another is refused", async () => {
  const models = new Models({ scripted: true });
  const [only] = models.list;
  const api = startApiOn(system, {
    ...{ scripted: true, defaultModel: only?.id ?? "", models: () => Promise.resolve(models) },
  });
  expect((await bodyOf(await api.get("/api/models")))["models"]).toMatchObject([
    { scripted: true, default: true },
  ]);
  const refused = await api.send("POST", "/api/conversations", { cwd: system.cwd, model: DEFAULT_MODEL });
  expect(await problemOf(refused)).toMatchObject({ status: 422, errors: [{ path: "model" }] });
});

test("a worker starts with the provider's list when the database cannot be read", async () => {
  const db = openDatabase("postgres://127.0.0.1:1/none");
  const client = createClient({ apiKey: "key", baseURL: system.model.url });
  const warnings: string[] = [];
  const registry = new ModelRegistry({
    ...{ db, client, file: [], scripted: false },
    warn: (sentence) => warnings.push(sentence),
  });
  await registry.start();
  expect(registry.current.of("claude-mythos-5").contextWindow).toBe(1_000_000);
  registry.stop();
  await db.close();
  expect(warnings).toContainEqual(expect.stringMatching(/stored list of models could not be read/));
});

test("with the database unreachable, the models of the file are offered", async () => {
  const nowhere = openDatabase("postgres://127.0.0.1:1/none");
  const models = createModelRegistry(nowhere, system.config);
  expect((await models()).list.map(({ id }) => id)).toContain("mine");
  await nowhere.close();
});
