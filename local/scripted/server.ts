/**
 * Owns: the HTTP server that speaks Anthropic's Messages API: routes, bodies, the course of one exchange.
 * It answers from scripts and refuses what the API refuses. It is the peer of the tests and, with the demo as
 * its only script, the model of `npm start` without a key.
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { demo } from "./demo.ts";
import { errorBody, refusal, type Json, type MessagesRequest, type Refusal } from "./messages.ts";
import { newId } from "./ids.ts";
import { describeModel, listModels, MODELS, type Model } from "./models.ts";
import { perform, sendJson, type Exchange } from "./perform.ts";
import { Recorder, RecordedRequest } from "./recorder.ts";
import type { Answer } from "./script.ts";
import { scriptOf, Scripts, scriptTag, type Handler } from "./scripts.ts";
import { errorSteps, stepsOf } from "./steps.ts";
import { countTokens, PromptCache } from "./usage.ts";
import { validateHeaders, validateRequest, type Endpoint } from "./validate.ts";

export const MAX_BODY_BYTES = 32 * 1024 * 1024;

export type ScriptedServerOptions = {
  /** Default 0: any free port. */
  readonly port?: number;
  /** Default 127.0.0.1. */
  readonly host?: string;
  /** The only key that is accepted; default: any. */
  readonly apiKey?: string;
  readonly models?: readonly Model[];
  /** Answers requests without a script; default: the demo agent. */
  readonly fallback?: Handler;
  /** How many of the latest requests `requests` keeps; default: all. A server that runs for long should keep fewer. */
  readonly remember?: number;
};

export type ScriptedServer = {
  /** The SDK's `baseURL`. */
  readonly url: string;
  readonly port: number;
  /** Every request to /v1/messages and /v1/messages/count_tokens, in order of arrival. */
  readonly requests: readonly RecordedRequest[];
  /** Scripts the conversations whose text has the returned tag, such as `[[script:name]]`. */
  readonly script: (name: string, script: Handler | readonly Answer[]) => string;
  /** The requests of one script. */
  readonly requestsOf: (key: string | null) => readonly RecordedRequest[];
  /** The `n`th request to /v1/messages of a script, counted from 1; by default the next one. */
  readonly nextRequest: (key: string | null, n?: number) => Promise<RecordedRequest>;
  /** The first request, past or future, for which the predicate holds; evaluated at arrivals and at ends. */
  readonly waitFor: (predicate: (request: RecordedRequest) => boolean) => Promise<RecordedRequest>;
  /** Cuts open connections and ends; safe to call twice. */
  readonly close: () => Promise<void>;
};

export async function startScriptedServer(options: ScriptedServerOptions = {}): Promise<ScriptedServer> {
  const { port = 0, host = "127.0.0.1", apiKey, models = MODELS, fallback = demo } = options;
  const recorder = new Recorder(options.remember ?? Number.POSITIVE_INFINITY);
  const scripts = new Scripts(fallback);
  const cache = new PromptCache();
  const ending = new AbortController();

  const server = createServer((request, response) => {
    void handle(request, response).catch(() => response.destroy());
  });
  // The server never closes an idle connection that the client still holds in its pool.
  server.keepAliveTimeout = 0;

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const arrivedAt = performance.now();
    const requestId = newId("req");
    response.setHeader("request-id", requestId);
    const refuse = (reason: Refusal): void =>
      sendJson(response, reason.status, errorBody(reason.type, reason.message, requestId));
    const denied = validateHeaders(request.headers, apiKey);
    const path = new URL(request.url ?? "/", "http://localhost").pathname;
    const endpoint = request.method === "POST" ? ENDPOINTS[path] : undefined;
    if (endpoint === undefined) {
      const found = request.method === "GET" ? findModels(path, models) : null;
      request.resume();
      if (denied !== null) refuse(denied);
      else if (found === null)
        refuse(refusal("not_found_error", `Not found: ${request.method ?? ""} ${path}`));
      else sendJson(response, 200, found);
      return;
    }
    const body = await readBody(request);
    if (body === null) {
      refuse(refusal("request_too_large", "Request exceeds the maximum size"));
      return;
    }
    const json = parse(body);
    const refused =
      denied ??
      (json === undefined
        ? refusal("invalid_request_error", "The request body is not valid JSON")
        : validateRequest(json, endpoint, models));
    const key = refused === null ? scriptOf(json as unknown as MessagesRequest) : findTag(body);
    const n = recorder.count(endpoint, key);
    const recorded = new RecordedRequest({
      ...{ id: requestId, endpoint, key, n, arrivedAt },
      ...{ headers: request.headers, json: json ?? null, refusal: refused },
    });
    const exchange = follow(recorded, response);
    recorder.add(recorded);
    if (refused !== null) refuse(refused);
    else if (endpoint === "count_tokens")
      sendJson(response, 200, { input_tokens: countTokens(recorded.body) });
    else await answer(recorded, exchange);
  }

  async function answer(recorded: RecordedRequest, exchange: Exchange): Promise<void> {
    const { body, key, n, id } = recorded;
    const answer = await scripts.answer({ body, key }, n);
    const { model, stream = false } = body;
    if (answer.kind === "error") return perform(errorSteps(answer, id), exchange);
    const { usage, use } = cache.read(body);
    recorded.cacheUse = use;
    await perform(stepsOf(answer, { model, stream }, usage), exchange);
  }

  /** Watches a response to its end. */
  function follow(recorded: RecordedRequest, response: ServerResponse): Exchange {
    let cut = false;
    const over = new AbortController();
    response.once("close", () => {
      over.abort();
      const closed = cut || ending.signal.aborted ? "cut" : "client_closed";
      recorded.finish(response.writableFinished ? "answered" : closed);
    });
    return {
      response,
      requestId: recorded.id,
      signal: AbortSignal.any([over.signal, ending.signal]),
      cut: () => {
        cut = true;
        response.destroy();
      },
    };
  }

  const requestsOf = (key: string | null): RecordedRequest[] =>
    recorder.requests.filter((request) => request.endpoint === "messages" && request.key === key);

  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, host, resolve);
  });
  const address = server.address() as AddressInfo;
  return {
    url: `http://${host}:${address.port}`,
    port: address.port,
    requests: recorder.requests,
    script: (name, script) => {
      scripts.add(name, script);
      return scriptTag(name);
    },
    requestsOf,
    nextRequest: (key, n = requestsOf(key).length + 1) =>
      recorder.waitFor(
        (request) => request.endpoint === "messages" && request.key === key && request.n === n,
      ),
    waitFor: (predicate) => recorder.waitFor(predicate),
    close: async () => {
      ending.abort();
      recorder.close();
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      server.closeAllConnections();
      await closed;
    },
  };
}

const ENDPOINTS: { readonly [path: string]: Endpoint | undefined } = {
  "/v1/messages": "messages",
  "/v1/messages/count_tokens": "count_tokens",
};

function findModels(path: string, models: readonly Model[]): object | null {
  if (path === "/v1/models") return listModels(models);
  const model = models.find(({ id }) => path === `/v1/models/${id}`);
  return model === undefined ? null : describeModel(model);
}

/**
 * null when it is too large. It is read to its end all the same: a client that is still sending would see a
 * reset instead of the 413.
 */
async function readBody(request: IncomingMessage): Promise<string | null> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size <= MAX_BODY_BYTES) chunks.push(chunk);
  }
  return size > MAX_BODY_BYTES ? null : Buffer.concat(chunks).toString();
}

function parse(body: string): Json | undefined {
  try {
    return JSON.parse(body) as Json;
  } catch {
    return undefined;
  }
}

/** The script of a refused request, whose shape is unknown. */
const findTag = (body: string): string | null => /\[\[script:([^\]"\\]+)\]\]/.exec(body)?.[1] ?? null;
