/** Owns: the API in a test: the real app on a real database, with the real Temporal or none that can be reached. */
import { afterAll } from "vitest";
import { createAccess } from "../../api/access/access.ts";
import { createApp, type Api } from "../../api/app.ts";
import type { Deps } from "../../api/deps.ts";
import { createHub, type Hub } from "../../api/events/hub.ts";
import { serve } from "../../api/serve.ts";
import { connectWorkflows, type Workflows } from "../../api/workflow.ts";
import { type Database, openDatabase } from "../../db/connect.ts";
import { listen, type Notifications } from "../../db/notifications.ts";
import { sendOrder } from "../../db/orders.ts";
import { DEFAULT_MODEL, Models } from "../../llm/models.ts";
import { digestOfToken, type Role } from "../../protocol/access.ts";
import { NO_LIMITS } from "../../protocol/spending.ts";
import { createLog } from "../../observability/log.ts";
import { createApiMetrics } from "../../observability/metrics.ts";
import { NO_SPANS } from "../../observability/spans.ts";
import { freshDatabase } from "../support/database.ts";
import type { System } from "../support/system.ts";

/** Nothing listens there. */
const NOWHERE = "127.0.0.1:1";

export type TestApi = {
  readonly api: Api;
  /** The url of its database. */
  readonly url: string;
  readonly db: Database;
  readonly notifications: Notifications;
  readonly hub: Hub;
  readonly workflows: Workflows;
  /** Ends open streams as the end of the process does. */
  readonly stop: () => void;
  /** What was reported to the log. */
  readonly reports: unknown[];
  /** What was said of tokens in the log. */
  readonly said: readonly string[];
} & Requests;

export type Requests = {
  readonly get: (path: string, init?: RequestInit) => Promise<Response>;
  /** With a JSON body, if there is one. */
  readonly send: (
    method: string,
    path: string,
    body?: unknown,
    headers?: Record<string, string>,
  ) => Promise<Response>;
};

export const requestsBy = (get: Requests["get"]): Requests => ({
  get,
  send: (method, path, body, headers = {}) =>
    get(path, {
      method,
      ...(body === undefined
        ? { headers }
        : {
            headers: { "content-type": "application/json", ...headers },
            body: typeof body === "string" ? body : JSON.stringify(body),
          }),
    }),
});

/** Serves the same API on a socket, as network clients reach it. */
export async function serveApi({ api, reports }: TestApi): Promise<Requests & { readonly url: string }> {
  const address = { host: "127.0.0.1", port: 0 };
  const listening = await serve(
    (request, env) => api.fetch(request, env),
    address,
    (_, error) => void reports.push(error),
  );
  ends.unshift(() => listening.close(0));
  const { url } = listening;
  return { url, ...requestsBy((path, init) => fetch(url + path, init)) };
}

type Overrides = Partial<Deps> & Who & { readonly databaseUrl?: string };

/** Who may call; unless given, everybody may everything. */
type Who = {
  /** The owner's token. Then nobody may call without one, unless `anonymousRole` says so. */
  readonly apiToken?: string | null;
  readonly anonymousRole?: Role | null;
  readonly apiTokensFile?: string;
};

const ends: (() => Promise<unknown>)[] = [];
afterAll(() => Promise.all(ends.map((end) => end())));

/** An API for reads, streams and refusals, which need no workflow: it cannot reach Temporal. */
export async function startApi(overrides: Overrides = {}): Promise<TestApi> {
  const databaseUrl = overrides.databaseUrl ?? (await freshDatabase());
  const temporal = { address: NOWHERE, namespace: "default", taskQueue: "none", payloadKeys: [] };
  const started = apiOn(databaseUrl, temporal, "nowhere", overrides);
  if (overrides.databaseUrl === undefined) await started.notifications.ready;
  return started;
}

/** An API on a whole system with workflows, workers and tools. */
export function startApiOn({ config }: Pick<System, "config">, overrides: Partial<Deps> & Who = {}): TestApi {
  const temporal = {
    address: config.temporalAddress,
    namespace: config.temporalNamespace,
    taskQueue: config.taskQueue,
    payloadKeys: config.payloadKeys,
  };
  return apiOn(config.databaseUrl, temporal, config.toolHost, overrides);
}

function apiOn(
  url: string,
  temporal: Parameters<typeof connectWorkflows>[0],
  toolHost: string,
  { apiToken = null, apiTokensFile, ...given }: Partial<Deps> & Who,
): TestApi {
  const db = openDatabase(url, { max: 6, applicationName: "test api" });
  const notifications = listen(url);
  ends.push(() => notifications.close().then(() => db.close()));
  const workflows = connectWorkflows(temporal);
  ends.push(() => workflows.close());
  const closing = new AbortController();
  const reports: unknown[] = [];
  const models = new Models();
  const hub = createHub(notifications, (conversationId) =>
    sendOrder(db, { kind: "tell_again", conversationId }),
  );
  const hasTokens = apiToken !== null || apiTokensFile !== undefined;
  const { anonymousRole = hasTokens ? null : "admin", ...overrides } = given;
  const said: string[] = [];
  const access = createAccess({
    ownerTokenDigest: apiToken === null ? null : digestOfToken(apiToken),
    apiTokensFile: apiTokensFile ?? null,
    anonymousRole,
    say: (line) => said.push(line),
    closing: closing.signal,
  });
  const api = createApp({
    db,
    workflows,
    toolHost,
    toolHosts: [toolHost],
    hub,
    streams: { send: (order) => sendOrder(db, order), onOrder: notifications.onOrder },
    models: () => Promise.resolve(models),
    defaultModel: DEFAULT_MODEL,
    scripted: false,
    spendingLimits: NO_LIMITS,
    host: "127.0.0.1",
    access,
    payloadKeys: temporal.payloadKeys,
    temporalNamespace: temporal.namespace,
    page: null,
    closing: closing.signal,
    metrics: createApiMetrics(),
    log: createLog({ service: "api", level: "silent", format: "json", secrets: [] }),
    spans: NO_SPANS,
    report: (_, error) => void reports.push(error),
    ...overrides,
  });
  return {
    api,
    url,
    db,
    notifications,
    hub,
    workflows,
    reports,
    said,
    stop: () => closing.abort(),
    ...requestsBy(async (path, init) => api.request(path, init)),
  };
}

export type Answer = { readonly [name: string]: unknown };

export const bodyOf = async (response: Response): Promise<Answer> => (await response.json()) as Answer;

export type ProblemAnswer = Answer & {
  readonly status: number;
  readonly code: unknown;
  readonly detail: string;
};

/** The problem document of a response; throws if it is none. */
export async function problemOf(response: Response): Promise<ProblemAnswer> {
  const type = response.headers.get("content-type");
  if (type !== "application/problem+json") throw new Error(`not a problem: ${response.status} ${type ?? ""}`);
  const body = (await response.json()) as ProblemAnswer;
  if (body.status !== response.status) throw new Error(`${body.status} in the body of a ${response.status}`);
  return body;
}
