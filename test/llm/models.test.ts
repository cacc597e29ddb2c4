/** The model registry: the facts about a model, their sources, and defaults for unknown ones (REQ-BED-022). */
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { createClient } from "../../llm/client.ts";
import { readFacts } from "../../llm/model-facts.ts";
import { readModelsFile } from "../../llm/models-file.ts";
import { DEFAULT_MODEL, MIN_WINDOW, Models, responseTokensOf, SCRIPTED_MODEL } from "../../llm/models.ts";
import { fetchModels } from "../../llm/provider-models.ts";
import { costOf } from "../../llm/price.ts";
import { NO_TOKENS } from "../../machine/conversation.ts";
import type { TokenUsage } from "../../machine/message.ts";
import { MODELS } from "../../local/scripted/models.ts";
import { startScriptedServer } from "../../local/scripted/server.ts";

const windowOf = (models: Models, id: string): number => models.of(id).contextWindow;
const idsOf = (models: Models): string[] => models.list.map(({ id }) => id);

describe("the list of models", () => {
  test("has built-in models, the default among them and none of them scripted", () => {
    expect(idsOf(new Models())).toContain(DEFAULT_MODEL);
    expect(new Models().list.some((model) => model.scripted)).toBe(false);
  });

  test("has one model for the scripted provider, labelled as such", () => {
    const provided = [{ id: "claude-new" }];
    expect(new Models({ scripted: true, provided }).list).toMatchObject([
      { id: SCRIPTED_MODEL, scripted: true },
    ]);
  });

  test("has the provider's models in place of the built-in ones, and the file's models as well", () => {
    const models = new Models({ provided: [{ id: "claude-new" }], file: [{ id: "mine" }] });
    expect(idsOf(models)).toEqual(["claude-new", "mine"]);
    // A built-in model keeps its facts although the provider does not list it.
    expect(windowOf(models, "claude-opus-4-5")).toBe(200_000);
  });
});

describe("REQ-BED-022: limits", () => {
  test("windows differ; an unknown model gets the smallest, and no optional feature", () => {
    const models = new Models();
    const known = models.list.map((model) => model.contextWindow);
    expect(new Set(known).size).toBeGreaterThan(1);
    expect(models.of("something-new")).toEqual({
      id: "something-new",
      name: "something-new",
      contextWindow: Math.min(...known),
      maxOutputTokens: Math.min(...models.list.map((model) => model.maxOutputTokens)),
      thinking: "none",
      maxImages: 100,
      price: null,
      scripted: false,
    });
  });

  test("a listed model without a known window gets the smallest known one, the file's included", () => {
    const provided = [{ id: "listed", maxOutputTokens: 32_000 }];
    const file = [{ id: "mine", contextWindow: 32_000, maxOutputTokens: 64_000 }];
    expect(windowOf(new Models({ provided }), "listed")).toBe(200_000);
    expect(windowOf(new Models({ provided, file }), "listed")).toBe(32_000);
    // An answer cannot be longer than the window.
    expect(new Models({ file }).of("mine").maxOutputTokens).toBe(32_000);
  });

  test("a dated id has the limits of its family, unless it is known itself", () => {
    const dated = "claude-sonnet-4-5-20250929";
    expect(windowOf(new Models(), dated)).toBe(windowOf(new Models(), "claude-sonnet-4-5"));
    const file = [{ id: dated, contextWindow: 500_000 }];
    expect(windowOf(new Models({ file }), dated)).toBe(500_000);
    expect(windowOf(new Models({ file }), "claude-sonnet-4-5")).toBe(200_000);
  });

  test("the file's limits for a family override the provider's for its dated members", () => {
    const provided = [{ id: "claude-haiku-4-5-20251001", contextWindow: 200_000 }];
    const file = [{ id: "claude-haiku-4-5", contextWindow: 50_000 }];
    expect(windowOf(new Models({ provided, file }), "claude-haiku-4-5-20251001")).toBe(50_000);
  });

  test("each fact of the file overrides the provider's, and each of the provider the built-in one", () => {
    const id = "claude-opus-4-5";
    const provided = [{ id, contextWindow: 400_000, maxOutputTokens: 100_000, name: undefined }];
    const file = [{ id, contextWindow: 300_000, maxImages: 7 }];
    expect(new Models({ provided, file }).of(id)).toMatchObject({
      ...{ name: "Claude Opus 4.5", contextWindow: 300_000, maxOutputTokens: 100_000, maxImages: 7 },
    });
  });

  test("REQ-BED-019: an answer fits beside a context just below the threshold", () => {
    for (const model of new Models({ file: [{ id: "tiny", contextWindow: MIN_WINDOW }] }).list) {
      expect(responseTokensOf(model)).toBeLessThanOrEqual(model.contextWindow * 0.1);
    }
  });
});

describe("the provider's list", () => {
  test("is read completely from /v1/models by the SDK", async () => {
    const server = await startScriptedServer();
    onTestFinished(() => server.close());
    const client = createClient({ apiKey: "key", baseURL: server.url });
    const provided = await fetchModels(client, AbortSignal.timeout(10_000));
    const models = new Models({ provided });
    expect(idsOf(models)).toEqual(MODELS.map(({ id }) => id));
    for (const { id, name, contextWindow, maxOutput, thinking } of MODELS) {
      expect(models.of(id)).toMatchObject({
        ...{ name, contextWindow, maxOutputTokens: maxOutput },
        thinking: thinking === "manual" ? "none" : "adaptive",
      });
    }
  });

  test("a window that is too small counts as the minimum, nonsense is left out, and an endless list ends", async () => {
    let pages = 0;
    const server = createServer((request, response) => {
      const page = new URL(request.url ?? "/", "http://x").searchParams.get("after_id") ?? "0";
      const data =
        page === "0"
          ? [
              {
                type: "model",
                id: "tiny",
                display_name: "Tiny",
                max_input_tokens: 2_000,
                max_tokens: "many",
              },
              {
                type: "model",
                id: "odd",
                display_name: 7,
                max_input_tokens: null,
                capabilities: { thinking: 1 },
              },
            ]
          : [{ type: "model", id: `id with blanks ${++pages}` }];
      response.setHeader("content-type", "application/json");
      response.end(JSON.stringify({ data, has_more: true, first_id: "a", last_id: String(pages + 1) }));
    }).listen(0, "127.0.0.1");
    onTestFinished(() => void server.close());
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    const client = createClient({ apiKey: "key", baseURL: `http://127.0.0.1:${port}` });
    expect(await fetchModels(client, AbortSignal.timeout(30_000))).toEqual([
      { id: "tiny", name: "Tiny", contextWindow: MIN_WINDOW },
      { id: "odd" },
    ]);
    expect(pages).toBeLessThan(1_100);
  });

  test("agrees with the built-in facts", async () => {
    const server = await startScriptedServer();
    onTestFinished(() => server.close());
    const client = createClient({ apiKey: "key", baseURL: server.url });
    const provided = new Models({ provided: await fetchModels(client, AbortSignal.timeout(10_000)) });
    for (const { id, contextWindow, maxOutputTokens } of new Models().list) {
      expect(provided.of(id)).toMatchObject({ contextWindow, maxOutputTokens });
    }
  });

  test("a model with a nonsensical fact is left out, the others count", () => {
    expect(readFacts([{ id: "a", contextWindow: -5 }, { id: "b", contextWindow: 50_000 }, 7, null])).toEqual([
      { id: "b", contextWindow: 50_000 },
    ]);
    expect(readFacts("nonsense")).toEqual([]);
  });
});

describe("prices", () => {
  test("are built in for every model that is offered without a list, and unknown for one that nobody knows", () => {
    const models = new Models();
    for (const { id, price } of models.list) expect(price, id).not.toBeNull();
    expect(models.of("claude-haiku-4-5-20251001").price).toEqual(models.of("claude-haiku-4-5").price);
    expect(models.of("something-new").price).toBeNull();
    expect(new Models({ scripted: true }).list.map(({ price }) => price?.output)).toEqual([0]);
  });

  test("a price of the file replaces a built-in one as a whole", () => {
    const price = { input: 1, output: 2, cacheRead: 3, cacheCreation: 4 };
    const models = new Models({ file: [{ id: "claude-haiku-5-5", price }] });
    expect(models.of("claude-haiku-5-5").price).toEqual(price);
  });

  test("make whole billionths of a dollar of each kind of token; a long prompt has its own", () => {
    const cost = (id: string, usage: Partial<TokenUsage>): number => {
      const { price } = new Models().of(id);
      if (price === null) throw new Error(`${id} has no price`);
      return costOf(price, { ...NO_TOKENS, ...usage });
    };
    const million = 1_000_000;
    expect(cost("claude-opus-5-5", { inputTokens: million })).toBe(4e9);
    expect(cost("claude-opus-5-5", { outputTokens: million })).toBe(20e9);
    expect(cost("claude-opus-5-5", { cacheReadTokens: million })).toBe(2e8);
    expect(cost("claude-opus-5-5", { cacheCreationTokens: million })).toBe(5e9);
    expect(cost("claude-haiku-5-5", { cacheReadTokens: 1, cacheCreationTokens: 1 })).toBe(10 + 125);
    // The prompt is what is read of the cache, too, and the answer has the same rate.
    const prompt = { inputTokens: 1, cacheReadTokens: 99_999 };
    expect(cost("claude-haiku-5-5", { ...prompt, outputTokens: 10 })).toBe(100 + 99_999 * 10 + 5_000);
    expect(cost("claude-haiku-5-5", { ...prompt, inputTokens: 2, outputTokens: 10 })).toBe(
      2 * 500 + 99_999 * 50 + 25_000,
    );
  });
});

describe("the file", () => {
  const file = (text: string): string => {
    const folder = mkdtempSync(join(tmpdir(), "bedrock-models-"));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    writeFileSync(join(folder, "models.json"), text);
    return join(folder, "models.json");
  };

  test("may have what docs/spending.md shows of a price", () => {
    const page = readFileSync(join(import.meta.dirname, "..", "..", "docs", "spending.md"), "utf8");
    const [, example = ""] = /```json\n([^]*?)```/.exec(page) ?? [];
    const [model] = readModelsFile(file(example));
    expect(new Models({ file: model === undefined ? [] : [model] }).of("my-model").price).toEqual({
      ...{ input: 3, output: 15, cacheRead: 0.3, cacheCreation: 3.75 },
    });
  });

  test("may state any fact of a model", () => {
    const models = [
      { id: "mine", contextWindow: 32_000 },
      { id: "claude-opus-5-5", maxImages: 0 },
    ];
    expect(readModelsFile(file(JSON.stringify({ models })))).toEqual(models);
  });

  test.each([
    ["nothing there", null, /cannot be read \(ENOENT\)/],
    ["no JSON", "{", /is no JSON/],
    ["no list", '{"modles":[]}', /no list of models.*models/s],
    ["a window that is no number", '{"models":[{"id":"a","contextWindow":"200k"}]}', /contextWindow/],
    ["a window without room", '{"models":[{"id":"a","contextWindow":1000}]}', /4000/],
    ["a price that is only partly known", '{"models":[{"id":"a","price":{"input":1}}]}', /price/],
    [
      "a price below 0",
      '{"models":[{"id":"a","price":{"input":-1,"output":1,"cacheRead":0,"cacheCreation":0}}]}',
      /price/,
    ],
    [
      "a price with too many decimals",
      '{"models":[{"id":"a","price":{"input":0.0001,"output":1,"cacheRead":0,"cacheCreation":0}}]}',
      /three decimals/,
    ],
    ["a fact that nobody knows", '{"models":[{"id":"a","windw":1000}]}', /windw/],
  ])("is refused with a sentence and its path: %s", (_, text, sentence) => {
    const path = text === null ? "/nowhere/models.json" : file(text);
    expect(() => readModelsFile(path)).toThrow(sentence);
    expect(() => readModelsFile(path)).toThrow(path);
  });
});
