/**
 * Every port that `npm start` opens gets the requests that a web page could send. A page of another origin can send but
 * not read. A page whose own name was made to resolve to this machine (DNS rebinding) can do both.
 */
import { randomUUID } from "node:crypto";
import { existsSync } from "node:fs";
import { request } from "node:http";
import { connect as connectHttp2 } from "node:http2";
import { hostname } from "node:os";
import { join } from "node:path";
import { WorkflowNotFoundError } from "@temporalio/client";
import { expect, onTestFinished, test } from "vitest";
import { createInputFor, NO_SANDBOX } from "../support/create-input.ts";
import { portsOf, type Port } from "../support/ports.ts";
import { familyOf } from "../support/processes.ts";
import { startProduct, type Product } from "../support/product.ts";
import { eventually } from "./support.ts";

const SLOW = 240_000;
const TOKEN = "the-token-of-this-test";

/** null: the connection was closed without an answer in HTTP/1.1. */
type Answer = {
  readonly status: number;
  readonly headers: NodeJS.Dict<string | string[]>;
  readonly body: string;
} | null;
type Asked = { readonly method: string; readonly path: string; readonly body?: string };

/** A part of the product that opens a port. */
type Part = {
  readonly name: string;
  /** Matches the command line of the process that listens. */
  readonly process: RegExp;
  /** Whether this port of that process is the part's. */
  readonly is: (port: Port) => Promise<boolean>;
  /** Why no web page can do anything with it. */
  readonly safe: string;
  /** Paths that are requested beside the orders that every port gets. */
  readonly paths: readonly string[];
  /** Whether an answer confirms `safe`; null: no page can name the port, so it gets no request. */
  readonly bears: ((answer: Answer, asked: Asked) => boolean) | null;
};

const refused = (answer: Answer): boolean => answer?.status === 403;
/** The port has nothing under this method and path. */
const isNoCall = (answer: Answer): boolean => [404, 405, 501].includes(answer?.status ?? 0);
const PROVIDERS = { "x-api-key": "any", "anthropic-version": "2023-06-01" };
const TEMPORAL = /temporal\S* server start-dev/;

const PARTS: readonly Part[] = [
  {
    name: "the API",
    process: /api\/main\.ts/,
    is: async (port) => (await body(port, "/healthz")).includes('"ok"'),
    safe: "It answers its own names and its own origin only.",
    paths: [
      ...["/", "/docs", "/icon.svg", "/openapi.json", "/metrics", "/healthz", "/readyz"],
      ...["/api/conversations", "/api/events"],
    ],
    bears: refused,
  },
  {
    name: "the Web UI's guard",
    process: /local\/main\.ts/,
    is: async (port) => (await body(port, "/", { authorization: `Bearer ${TOKEN}` })).includes("<html"),
    safe: "It makes the checks of the API before it passes anything on.",
    paths: ["/", "/api/v1/namespaces", "/api/v1/settings", "/namespaces/default/workflows"],
    bears: refused,
  },
  {
    name: "the Web UI itself",
    process: TEMPORAL,
    is: async (port) => (await body(port, "/")).includes("<html"),
    safe: "It listens on one of 16 million addresses, drawn anew at each start, and no web page can guess it.",
    paths: [],
    bears: null,
  },
  {
    name: "Temporal's HTTP API",
    process: TEMPORAL,
    is: async (port) => (await body(port, "/swagger.json")).includes("WorkflowService"),
    safe: "It takes calls for a name only that no browser sends, and its Nexus calls reach nobody: no worker polls.",
    paths: [
      "/api/v1/namespaces",
      "/api/v1/system-info",
      "/api/v1/namespaces/default/workflows",
      "/namespaces/default/nexus/callback",
      "/nexus/endpoints/__temporal_system/services/any/any",
      "/namespaces/default/task-queues/conversations/nexus-services/any/any",
    ],
    bears: (answer, { path }) =>
      path.startsWith("/api/") ? refused(answer) || isNoCall(answer) : (answer?.status ?? 0) >= 400,
  },
  {
    name: "Temporal's figures",
    process: TEMPORAL,
    is: async (port) => (await body(port, "/metrics")).startsWith("# HELP "),
    safe: "It takes no orders; a rebound page can read figures, and names of queues, hosts and folders in them.",
    paths: ["/metrics", "/debug/pprof/", "/api/v1/namespaces"],
    bears: (answer, { path }) =>
      path === "/metrics" ? answer?.body.startsWith("# HELP ") === true : answer?.status === 404,
  },
  {
    name: "Temporal's gRPC services",
    process: TEMPORAL,
    is: async (port) => (await ask(port, { method: "GET", path: "/" })) === null && (await speaksHttp2(port)),
    safe: "They speak HTTP/2 in clear text only, from the first byte on, which no browser does.",
    paths: ["/", "/temporal.api.workflowservice.v1.WorkflowService/ListNamespaces"],
    bears: (answer) => answer === null,
  },
  {
    name: "the scripted model",
    process: /local\/scripted\/main\.ts/,
    is: async (port) => (await body(port, "/v1/models", PROVIDERS)).includes("claude"),
    safe: "It makes up answers from what it is sent, and neither remembers anything nor runs anything.",
    paths: ["/v1/models", "/v1/messages", "/"],
    bears: (answer) => answer?.status === 401,
  },
];

/** Requests that a page of another origin may send without a preflight, and those of a page with a rebound name. */
function requestsOfPages(port: Port, path: string, orders: string | undefined) {
  const other = {
    origin: "http://evil.example",
    "sec-fetch-site": "cross-site",
    "sec-fetch-mode": "no-cors",
  };
  const name = `evil.example:${port.port}`;
  const rebound = { host: name, origin: `http://${name}`, "sec-fetch-site": "same-origin" };
  const post = { method: "POST", path, body: orders ?? "{}" };
  // Without it, a Nexus call would wait for a worker.
  const soon = { "request-timeout": "500ms" };
  return [
    { method: "GET", path, headers: other },
    { ...post, headers: { ...other, ...soon, "content-type": "text/plain" } },
    { method: "OPTIONS", path, headers: { ...other, "access-control-request-method": "POST" } },
    { method: "GET", path, headers: rebound },
    { ...post, headers: { ...rebound, ...soon, "content-type": "application/json" } },
  ];
}

function ask(
  port: Port,
  { method, path, body: sent, ...asked }: Asked & { headers?: object },
): Promise<Answer> {
  return new Promise((resolve) => {
    const headers = { ...asked.headers, connection: "close" };
    const sending = request({ host: port.ip, port: port.port, method, path, headers, timeout: 10_000 });
    sending.once("response", (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
      response.once("close", () => {
        resolve({ status: response.statusCode ?? 0, headers: response.headers, body: text });
      });
    });
    sending.once("error", () => resolve(null)).once("timeout", () => sending.destroy());
    sending.end(sent);
  });
}

const body = async (port: Port, path: string, headers: object = {}): Promise<string> =>
  (await ask(port, { method: "GET", path, headers }))?.body ?? "";

function speaksHttp2(port: Port): Promise<boolean> {
  return new Promise((resolve) => {
    const session = connectHttp2(`http://${port.ip}:${port.port}`);
    const say = (answer: boolean) => {
      resolve(answer);
      session.destroy();
    };
    session.once("remoteSettings", () => say(true)).once("error", () => say(false));
  });
}

async function partOf(port: Port): Promise<Part> {
  for (const part of PARTS) if (part.process.test(port.command) && (await part.is(port))) return part;
  throw new Error(
    `${port.command} listens on ${port.protocol} ${port.ip}:${port.port}, and nobody has said why that is safe. ` +
      "Close it, or have it refuse foreign pages; then add it to PARTS above, and to docs/security.md.",
  );
}

/** An order that Temporal's HTTP API once took from any page: an Unrestricted conversation with a command. */
function orders(product: Product, id: string, file: string): Asked {
  const config = { toolHost: hostname(), model: "scripted-demo", taskQueue: "conversations" };
  const createInput = createInputFor({ config, cwd: product.cwd, sandbox: NO_SANDBOX }, id);
  const message = { messageId: randomUUID(), text: `run: touch ${file}` };
  return {
    method: "POST",
    path: `/api/v1/namespaces/default/workflows/${id}/signal-with-start/sendMessage`,
    body: JSON.stringify({
      workflowType: { name: "conversation" },
      taskQueue: { name: config.taskQueue },
      workflowTaskTimeout: "2s",
      requestId: randomUUID(),
      input: [{ conversationId: id, createInput }],
      signalInput: [message],
    }),
  };
}

/** Runs a command of ours to its end, which gives any command that was ordered before the time to run. */
async function runCommandOfOurs({ url, cwd }: Product): Promise<void> {
  const headers = { "content-type": "application/json", authorization: `Bearer ${TOKEN}` };
  const id = randomUUID();
  const sent = await fetch(`${url}/api/conversations`, {
    method: "POST",
    headers,
    body: JSON.stringify({ id, cwd, message: { id: randomUUID(), text: "run: true" } }),
  });
  expect(sent.status).toBe(201);
  await eventually(
    "our own command",
    async () => {
      const shown = await fetch(`${url}/api/conversations/${id}`, { headers });
      return ((await shown.json()) as { state: { kind: string } }).state.kind === "idle";
    },
    SLOW,
  );
}

async function start(env: NodeJS.ProcessEnv): Promise<Product> {
  // The built-in model opens a port, too.
  const builtIn = { ANTHROPIC_API_KEY: undefined, ANTHROPIC_BASE_URL: undefined };
  const product = await startProduct({ env: { ...builtIn, API_TOKEN: TOKEN, ...env } });
  onTestFinished(() => product.stop());
  return product;
}

/** The processes close their files to others (local/closed-memory.mjs): only root sees which port is whose. */
const seesPorts = process.getuid?.() === 0;

test.skipIf(!seesPorts)(
  "no web page gets an order through any port, and an unlisted port fails this test",
  async () => {
    const product = await start({ TEMPORAL_UI: "true" });
    const ports = portsOf(familyOf(product.pid));
    const found = await Promise.all(ports.map(async (port) => ({ port, part: await partOf(port) })));
    expect(new Set(found.map(({ part }) => part.name))).toEqual(new Set(PARTS.map(({ name }) => name)));

    const attempts: { readonly id: string; readonly file: string }[] = [];
    for (const { port, part } of found) {
      expect(port, part.name).toMatchObject({
        protocol: "tcp",
        ip: expect.stringMatching(/^127\./) as string,
      });
      const attempt = { id: randomUUID(), file: join(product.cwd, randomUUID()) };
      attempts.push(attempt);
      const order = orders(product, attempt.id, attempt.file);
      const { bears } = part;
      if (bears === null) {
        expect(port.ip).not.toBe("127.0.0.1");
        continue;
      }
      for (const path of [order.path, ...part.paths]) {
        for (const asked of requestsOfPages(port, path, path === order.path ? order.body : undefined)) {
          const answer = await ask(port, asked);
          const how = `${part.name}: ${JSON.stringify(asked)} is answered ${JSON.stringify(answer)}`;
          expect(answer?.headers["access-control-allow-origin"], how).toBeUndefined();
          expect(bears(answer, asked), `${how}. Is this still so? ${part.safe}`).toBe(true);
        }
      }
    }

    await runCommandOfOurs(product);
    for (const { id, file } of attempts) {
      expect(existsSync(file)).toBe(false);
      await expect(product.temporal.workflow.getHandle(id).describe()).rejects.toThrow(WorkflowNotFoundError);
    }
  },
  SLOW,
);
