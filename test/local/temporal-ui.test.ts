/** Temporal's Web UI, which TEMPORAL_UI switches on, behind the checks of the API. */
import { randomUUID } from "node:crypto";
import { createServer, type IncomingMessage } from "node:http";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { historyToJSON } from "@temporalio/common/lib/proto-utils.js";
import { chromium } from "playwright-core";
import { describe, expect, onTestFinished, test } from "vitest";
import { createAccess } from "../../api/access/access.ts";
import { serveUi } from "../../api/temporal-ui/serve.ts";
import { freePort } from "../../local/ports.ts";

import { digestOfToken, type Role } from "../../protocol/access.ts";
import { portsOf } from "../support/ports.ts";
import { familyOf } from "../support/processes.ts";
import { startProduct } from "../support/product.ts";
import { findChromium, QUIET } from "../web/chromium.ts";

const SLOW = 180_000;
const program = findChromium();
const TOKEN = "t:0ken";
const KEY = new Uint8Array(32).fill(5);
const basic = (password: string): string => `Basic ${Buffer.from(`anybody:${password}`).toString("base64")}`;

test(
  "with TEMPORAL_UI a browser that gives the token gets pages and their assets, and can use them",
  async () => {
    const product = await startProduct({ env: { TEMPORAL_UI: "true", API_TOKEN: TOKEN } });
    onTestFinished(() => product.stop());
    const url = product.temporalUiUrl ?? "";
    const hidden = portsOf(familyOf(product.pid)).find(({ ip }) => ip !== "127.0.0.1")?.ip ?? "";
    expect(hidden).toMatch(/^127\./);
    const get = async (path: string, init: RequestInit = {}, authorization = basic(TOKEN)) => {
      const headers = new Headers(init.headers);
      headers.set("authorization", authorization);
      headers.set("sec-fetch-site", "same-origin");
      const response = await fetch(url + path, { redirect: "manual", ...init, headers });
      const body = await response.text();
      expect(`${JSON.stringify([...response.headers])} ${body}`, path).not.toContain(hidden);
      return { response, body };
    };

    const page = await get("/namespaces/default/workflows?query=any");
    expect(page.response.status).toBe(200);
    expect(page.response.headers.get("x-frame-options")).toBe("SAMEORIGIN");
    const assets = [...page.body.matchAll(/"(\/_app\/[^"]+\.(?:js|css))"/g)].map(([, path = ""]) => path);
    expect(assets).not.toEqual([]);
    for (const path of assets) {
      const { response, body } = await get(path);
      expect(response.headers.get("content-type"), path).toMatch(/^text\/(javascript|css)/);
      expect(body).not.toContain("<html");
    }

    const namespaces = JSON.parse((await get("/api/v1/namespaces")).body) as { namespaces: unknown[] };
    expect(namespaces.namespaces.length).toBeGreaterThan(0);
    const started = await product.temporal.workflow.start("none", { workflowId: "kept", taskQueue: "none" });
    const signal = await get("/api/v1/namespaces/default/workflows/kept/signal/any", {
      method: "POST",
      headers: { "content-type": "application/json", origin: url },
      body: JSON.stringify({
        input: { payloads: [{ metadata: { encoding: "anNvbi9wbGFpbg==" }, data: "e30=" }] },
      }),
    });
    expect(signal.response.status, signal.body).toBe(200);
    const { events } = await started.fetchHistory();
    expect(events?.map((event) => event.workflowExecutionSignaledEventAttributes?.signalName)).toContain(
      "any",
    );
    for (const path of ["/_app", "/css", "/index.html", "/auth/sso", "//evil.example/"]) {
      const { response } = await get(path);
      expect(response.headers.get("location") ?? "/", path).toMatch(/^[./](?!\/)/);
    }

    const bearer = await get("/", {}, `Bearer ${TOKEN}`);
    expect(bearer.response.status).toBe(200);
  },
  SLOW,
);

test.skipIf(program === null)(
  "its page shows in clear what conversations have, and only to who has the token",
  async () => {
    const product = await startProduct({ env: { TEMPORAL_UI: "true", API_TOKEN: TOKEN } });
    onTestFinished(() => product.stop());
    const url = product.temporalUiUrl ?? "";
    const ask = (body: object) =>
      fetch(`${product.url}/api/conversations`, {
        method: "POST",
        headers: { "content-type": "application/json", authorization: `Bearer ${TOKEN}` },
        body: JSON.stringify(body),
      });
    const [id, text] = [randomUUID(), `the words ${randomUUID()}`];
    expect((await ask({ id, cwd: product.cwd, title: "A title", message: { text } })).status).toBe(201);
    const payloads = JSON.stringify(
      historyToJSON(await product.temporal.workflow.getHandle(id).fetchHistory()),
    );
    expect(payloads).toContain(Buffer.from("binary/encrypted").toString("base64"));
    expect(Buffer.from(payloads).toString()).not.toContain(Buffer.from(text).toString("base64").slice(4, -4));

    const browser = await chromium.launch({ executablePath: program ?? "", args: [...QUIET] });
    onTestFinished(() => browser.close());
    const context = await browser.newContext({ httpCredentials: { username: "anybody", password: TOKEN } });
    const page = await context.newPage();
    const { runId } = await product.temporal.workflow.getHandle(id).describe();
    await page.goto(`${url}/namespaces/default/workflows/${id}/${runId}/history`);
    // The input of the workflow has the directory, as JSON.
    await page.getByText(product.cwd).first().waitFor({ state: "attached", timeout: 30_000 });

    const stranger = await fetch(`${url}/api/codec/decode`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ payloads: [] }),
    });
    expect(stranger.status).toBe(401);
  },
  SLOW,
);

/** The guarded UI in front of a server that records its requests. */
async function guarded(
  apiToken: string | null,
  anonymousRole: Role | null = apiToken === null ? "admin" : null,
) {
  const asked: IncomingMessage[] = [];
  const behind = createServer((incoming, outgoing) => {
    asked.push(incoming);
    incoming.resume().once("end", () => outgoing.writeHead(302, { location: "/there" }).end());
  });
  behind.listen(0, "127.0.0.1");
  await once(behind, "listening");
  const { port } = behind.address() as AddressInfo;
  const end = () => new Promise((resolve) => behind.close(resolve));
  const said: string[] = [];
  const ui = await serveUi({
    ...{ behind: `http://127.0.0.1:${port}`, host: "127.0.0.1", port: await freePort() },
    ...{ payloadKeys: [KEY], temporalNamespace: "default" },
    access: createAccess({
      ownerTokenDigest: apiToken === null ? null : digestOfToken(apiToken),
      ...{ apiTokensFile: null, anonymousRole, closing: new AbortController().signal },
      say: (line) => said.push(line),
    }),
    report: (id) => said.push(id),
  });
  onTestFinished(async () => {
    await ui.close(0);
    await end();
  });
  const get = (headers: Record<string, string> = {}, init: RequestInit = {}) =>
    fetch(`${ui.url}/page?x=1`, { redirect: "manual", headers, ...init });
  return { get, asked, end, said, url: ui.url };
}

describe("the guard of the Web UI", () => {
  test("asks a browser for the token and lets nothing through without it", async () => {
    const { get, asked } = await guarded(TOKEN);
    for (const authorization of [undefined, basic("wrong"), basic(""), "Bearer wrong", "Basic", "Basic !"]) {
      const response = await get(authorization === undefined ? {} : { authorization });
      expect(response.status).toBe(401);
      expect(response.headers.get("www-authenticate")).toBe('Basic realm="Temporal Web UI"');
    }
    expect(asked).toEqual([]);
    for (const authorization of [basic(TOKEN), `Bearer ${TOKEN}`]) {
      expect((await get({ authorization })).status).toBe(302);
    }
  });

  test("asks for it, too, where callers without a token may talk to agents", async () => {
    const { get, asked } = await guarded(TOKEN, "talk");
    expect((await get()).status).toBe(401);
    expect(asked).toEqual([]);
    expect((await get({ authorization: basic(TOKEN) })).status).toBe(302);
  });

  test.each([{ origin: "http://evil.example" }, { "sec-fetch-site": "cross-site" }])(
    "refuses a page of another origin, even with the token: %j",
    async (headers) => {
      for (const apiToken of [null, TOKEN]) {
        const { get, asked } = await guarded(apiToken);
        const response = await get({ authorization: basic(TOKEN), ...headers });
        expect(response.status).toBe(403);
        expect(asked).toEqual([]);
      }
    },
  );

  test("passes on a request unchanged except for the token, and an answer unchanged", async () => {
    const { get, asked, url } = await guarded(TOKEN);
    const headers = { authorization: basic(TOKEN), origin: url, "x-csrf-token": "one" };
    const response = await get(headers, { method: "POST", body: "words" });
    expect([response.status, response.headers.get("location")]).toEqual([302, "/there"]);
    const [request] = asked;
    expect(request).toMatchObject({ method: "POST", url: "/page?x=1" });
    expect(request?.headers).toMatchObject({ "x-csrf-token": "one" });
    expect(request?.headers.authorization).toBeUndefined();
    expect(`http://${request?.headers.host ?? ""}`).not.toBe(url);
  });

  test("says in a sentence that the UI does not answer", async () => {
    const { get, end, said } = await guarded(null);
    await end();
    const response = await get();
    expect(response.status).toBe(503);
    expect(await response.text()).toContain("does not answer");
    expect(said).toEqual([]);
  });
});
