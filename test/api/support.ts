/** Owns: the API in a test: the real app on a real database, with the real Temporal or none that can be reached. */
import { afterAll } from "vitest";
import { createApp, type Api } from "../../api/app.ts";
import type { Deps, Models } from "../../api/deps.ts";
import { createHub, type Hub } from "../../api/events/hub.ts";
import { createMetrics } from "../../api/metrics.ts";
import { connectWorkflows } from "../../api/workflow.ts";
import { openDatabase, type Database } from "../../db/connect.ts";
import { listen, type Notifications } from "../../db/notifications.ts";
import { listModels, windowOf } from "../../llm/models.ts";
import { freshDatabase } from "../support/database.ts";
import type { System } from "../support/system.ts";

/** Nothing listens there. */
const NOWHERE = "127.0.0.1:1";

export type TestApi = {
  readonly api: Api;
  /** Of its database. */
  readonly url: string;
  readonly db: Database;
  readonly notifications: Notifications;
  readonly hub: Hub;
  readonly models: Models;
  /** Ends open streams as the end of the process does. */
  readonly stop: () => void;
  /** What was reported to the log. */
  readonly reports: unknown[];
  readonly get: (path: string, init?: RequestInit) => Promise<Response>;
  /** With a JSON body, if there is one. */
  readonly send: (
    method: string,
    path: string,
    body?: unknown,
    headers?: Record<string, string>,
  ) => Promise<Response>;
};

type Overrides = Partial<Deps> & { readonly databaseUrl?: string };

const ends: (() => Promise<unknown>)[] = [];
afterAll(() => Promise.all(ends.map((end) => end())));

/** Reads, streams and refusals need no workflow: Temporal cannot be reached here. */
export async function startApi(overrides: Overrides = {}): Promise<TestApi> {
  const databaseUrl = overrides.databaseUrl ?? (await freshDatabase());
  const db = openDatabase(databaseUrl, { max: 6, applicationName: "test api" });
  const notifications = listen(databaseUrl);
  ends.push(() => notifications.close().then(() => db.close()));
  if (overrides.databaseUrl === undefined) await notifications.ready;
  const temporal = { address: NOWHERE, namespace: "default", taskQueue: "none" };
  return apiOn(databaseUrl, db, notifications, temporal, "nowhere", overrides);
}

/** The whole thing: workflows, workers, tools. */
export function startApiOn(system: System, overrides: Partial<Deps> = {}): TestApi {
  const { config, db, notifications } = system;
  const temporal = {
    address: config.temporalAddress,
    namespace: config.temporalNamespace,
    taskQueue: config.taskQueue,
  };
  return apiOn(config.databaseUrl, db, notifications, temporal, config.toolHost, overrides);
}

function apiOn(
  url: string,
  db: Database,
  notifications: Notifications,
  temporal: Parameters<typeof connectWorkflows>[0],
  toolHost: string,
  overrides: Partial<Deps>,
): TestApi {
  const workflows = connectWorkflows(temporal);
  ends.push(() => workflows.close());
  const closing = new AbortController();
  const reports: unknown[] = [];
  const list = listModels({ scripted: false });
  const models = { list, defaultId: list[0]?.id ?? "", windowOf };
  const hub = createHub(notifications);
  const api = createApp({
    db,
    workflows,
    toolHost,
    hub,
    models,
    scripted: false,
    host: "127.0.0.1",
    apiToken: null,
    closing: closing.signal,
    metrics: createMetrics(),
    report: (_, error) => void reports.push(error),
    ...overrides,
  });
  const get: TestApi["get"] = async (path, init) => api.request(path, init);
  return {
    api,
    url,
    db,
    notifications,
    hub,
    models,
    reports,
    stop: () => closing.abort(),
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
  };
}

export type Answer = { readonly [name: string]: unknown };

export const bodyOf = async (response: Response): Promise<Answer> => (await response.json()) as Answer;

export type ProblemAnswer = Answer & {
  readonly status: number;
  readonly code: unknown;
  readonly detail: string;
};

/** A problem document, checked to be one. */
export async function problemOf(response: Response): Promise<ProblemAnswer> {
  const type = response.headers.get("content-type");
  if (type !== "application/problem+json") throw new Error(`not a problem: ${response.status} ${type ?? ""}`);
  const body = (await response.json()) as ProblemAnswer;
  if (body.status !== response.status) throw new Error(`${body.status} in the body of a ${response.status}`);
  return body;
}
