/**
 * Owns: what a browser visits in a test file: the built page, served by an API in this process on a whole system
 * (test/support/system.ts), with the scripted provider under the test's control. The browser reaches it through a proxy
 * that the test can break.
 */
import { expect } from "vitest";
import { readPage, type PageFile } from "../../api/page-files.ts";
import { serve } from "../../api/serve.ts";
import { Models } from "../../llm/models.ts";
import type { Role } from "../../protocol/access.ts";
import { NO_LIMITS, type SpendingLimits } from "../../protocol/spending.ts";
import { buildPage } from "../../local/build-web.mjs";
import { startApiOn, type TestApi } from "../api/support.ts";
import { startSystem, type System, type SystemOptions } from "../support/system.ts";
import { startProxy, type TcpProxy } from "../support/tcp-proxy.ts";
import { browserTest, hasNoBrowser } from "./browser.ts";

export type Stack = {
  /** The address for the browser. */
  readonly url: string;
  readonly system: System;
  /** The one that runs now. Its requests have the token. */
  readonly api: TestApi;
  /** Between the browser and the API: `cut` and `mend` are the end and the return of the API. */
  readonly network: TcpProxy;
  /** The page that the API serves. Another build may take its place. */
  readonly files: Map<string, PageFile>;
  /** What reached the API, in order: `GET /api/events`. */
  readonly requests: readonly string[];
  /** Kills the API: its connections break without a word, and what it knew is lost. Then another takes its place. */
  readonly restart: () => Promise<void>;
};

export type StackOptions = SystemOptions & {
  /** null, the default: no token is required. */
  readonly apiToken?: string | null;
  /** What callers without the token may do; nothing unless given. */
  readonly anonymousRole?: Role;
  /** The address that the API says it listens on; 127.0.0.1 unless given. One on all addresses serves any name. */
  readonly host?: string;
  /** Milliseconds between the heartbeats of streams; the API's own unless given. */
  readonly heartbeatMs?: number;
  /** Of the API; the worker has its own from `env`. */
  readonly spendingLimits?: SpendingLimits;
};

/**
 * A test with a `visitor` and a `stack`, which the tests of the file share. It is skipped where there is no Chromium, and
 * then nothing is started.
 */
export function testWithStack(options: StackOptions = {}) {
  return browserTest
    .extend("stack", { scope: "file" }, async ({}, { onCleanup }) => {
      const { stack, close } = await startStack(options);
      onCleanup(close);
      return stack;
    })
    .skipIf(hasNoBrowser);
}

async function startStack({
  apiToken = null,
  anonymousRole,
  host = "127.0.0.1",
  heartbeatMs,
  spendingLimits = NO_LIMITS,
  ...options
}: StackOptions) {
  const problem = await buildPage(() => undefined);
  if (problem !== null) throw new Error(problem);
  const system = await startSystem(options);
  const { scriptedModel: scripted, model: defaultModel } = system.config;
  const models = new Models({ scripted });
  const files = new Map(readPage());
  const requests: string[] = [];
  const start = async (port: number) => {
    const api = startApiOn(system, {
      ...{ apiToken, host, page: files, scripted, defaultModel, spendingLimits },
      ...(heartbeatMs === undefined ? {} : { heartbeatMs }),
      ...(anonymousRole === undefined ? {} : { anonymousRole }),
      models: () => Promise.resolve(models),
    });
    const listening = await serve(
      (request, env) => {
        requests.push(`${request.method} ${new URL(request.url).pathname}`);
        return api.api.fetch(request, env);
      },
      { host: "127.0.0.1", port },
      (_, error) => void api.reports.push(error),
    );
    return { api, listening };
  };
  const reports: unknown[] = [];
  let running = await start(0);
  const port = Number(new URL(running.listening.url).port);
  const network = await startProxy({ host: "127.0.0.1", port });
  const stack: Stack = {
    url: `http://127.0.0.1:${network.port}`,
    system,
    get api() {
      return authorized(running.api, apiToken);
    },
    network,
    files,
    requests,
    restart: async () => {
      network.drop();
      await running.listening.close(0);
      reports.push(...running.api.reports);
      running.api.stop();
      running = await start(port);
    },
  };
  const close = async (): Promise<void> => {
    await network.cut();
    await running.listening.close(0);
    expect([...reports, ...running.api.reports], "errors of the API").toEqual([]);
  };
  return { stack, close };
}

function authorized(api: TestApi, token: string | null): TestApi {
  if (token === null) return api;
  const authorization = `Bearer ${token}`;
  return {
    ...api,
    get: (path, init = {}) => {
      const headers = new Headers(init.headers);
      headers.set("authorization", authorization);
      return api.get(path, { ...init, headers });
    },
    send: (method, path, body, headers = {}) => api.send(method, path, body, { authorization, ...headers }),
  };
}
