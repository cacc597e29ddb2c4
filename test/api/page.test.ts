/** The page as the API serves it: which request gets which file, how long it is kept, what a browser may do with it. */
import { createHash } from "node:crypto";
import { brotliDecompressSync, gunzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { readPage } from "../../api/page-files.ts";
import { buildPage } from "../../local/build-web.mjs";
import { connectTo } from "./raw.ts";
import { problemOf, serveApi, startApi } from "./support.ts";

/** The page needs no database. */
const databaseUrl = "postgres://nobody@127.0.0.1:1/none";
const HTML = { accept: "text/html,application/xhtml+xml,*/*;q=0.8" };
const NAVIGATION = { ...HTML, "sec-fetch-mode": "navigate", "sec-fetch-dest": "document" };

expect(await buildPage(() => undefined)).toBeNull();
const files = readPage();
if (files === null) throw new Error("as was just built");

const open = await startApi({ databaseUrl, page: files });
const guarded = await startApi({ databaseUrl, page: files, apiToken: "secret" });
const unbuilt = await startApi({ databaseUrl, page: null });

const index = await (await open.get("/")).text();
const assetsIn = (html: string) => [...html.matchAll(/"(\/assets\/[^"]+)"/g)].map(([, path = ""]) => path);
const [script = ""] = assetsIn(index).filter((path) => path.endsWith(".js"));
const directives = (response: Response) =>
  new Map(
    (response.headers.get("content-security-policy") ?? "").split("; ").map((directive) => {
      const [name = "", ...values] = directive.split(" ");
      return [name, values.join(" ")];
    }),
  );

describe("files", () => {
  test.each([
    ["/", "text/html; charset=utf-8"],
    ["/docs", "text/html; charset=utf-8"],
    ["/manifest.webmanifest", "application/manifest+json"],
    ["/icon.svg", "image/svg+xml"],
    ["/icon-waiting.svg", "image/svg+xml"],
    ["/icon-192.png", "image/png"],
    ["/icon-512.png", "image/png"],
    ["/icon-maskable-512.png", "image/png"],
    ["/icon-touch-180.png", "image/png"],
  ])("%s has the type %s, and is asked for anew each time", async (path, type) => {
    const response = await open.get(path);
    expect([response.status, response.headers.get("content-type")]).toEqual([200, type]);
    expect(response.headers.get("cache-control")).toBe("no-cache");
    const again = { headers: { "if-none-match": `"other", ${response.headers.get("etag") ?? ""}` } };
    const unchanged = await open.get(path, again);
    expect([unchanged.status, await unchanged.text()]).toEqual([304, ""]);
    expect((await open.get(path, { headers: { "if-none-match": '"other"' } })).status).toBe(200);
  });

  test("the page's assets exist, are kept for ever, and their names change with their content", async () => {
    const docs = await (await open.get("/docs")).text();
    const assets = [...assetsIn(index), ...assetsIn(docs)];
    expect(assets.filter((path) => path.endsWith(".js")).length).toBeGreaterThan(1);
    expect(assets.filter((path) => path.endsWith(".css")).length).toBeGreaterThan(1);
    for (const path of assets) {
      const response = await open.get(path);
      expect(response.status, path).toBe(200);
      expect(response.headers.get("cache-control")).toBe("public, max-age=31536000, immutable");
      expect(response.headers.get("content-type")).toMatch(/^text\/(javascript|css); charset=utf-8$/);
      expect(path).toMatch(/-[A-Z0-9]{8}\.(js|css)$/);
    }
  });

  test("the manifest names icons that exist, in the sizes that they have", async () => {
    const manifest = (await (await open.get("/manifest.webmanifest")).json()) as {
      readonly icons: readonly { readonly src: string; readonly type: string; readonly sizes: string }[];
    };
    for (const { src, type, sizes } of manifest.icons) {
      const response = await open.get(src);
      expect(response.headers.get("content-type"), src).toBe(type);
      if (type !== "image/png") continue;
      const header = new DataView(await response.arrayBuffer());
      expect(`${header.getUint32(16)}x${header.getUint32(20)}`, src).toBe(sizes);
    }
    expect(manifest.icons.map(({ sizes }) => sizes)).toEqual(expect.arrayContaining(["192x192", "512x512"]));
  });

  test.each([
    ["br", "gzip, deflate, br, zstd", brotliDecompressSync],
    ["gzip", "gzip, deflate", gunzipSync],
    ["gzip", "br;q=0, gzip;q=0.5", gunzipSync],
    [null, "identity", (sent: Uint8Array) => sent],
    [null, "", (sent: Uint8Array) => sent],
  ] as const)(
    "is sent as %s to who accepts %j, with the same content",
    async (encoding, accepted, decode) => {
      const response = await open.get(script, { headers: { "accept-encoding": accepted } });
      const sent = new Uint8Array(await response.arrayBuffer());
      expect(response.headers.get("content-encoding")).toBe(encoding);
      expect(response.headers.get("vary")).toBe("accept-encoding");
      expect(response.headers.get("content-length")).toBe(String(sent.byteLength));
      const plain = new Uint8Array(await (await open.get(script)).arrayBuffer());
      expect(digest(decode(sent))).toBe(digest(plain));
      if (encoding !== null) expect(sent.byteLength).toBeLessThan(plain.byteLength / 2);
    },
  );

  test("a HEAD has the headers of the GET, and no body, over a socket too", async () => {
    const { url } = await serveApi(open);
    for (const path of ["/", script]) {
      const got = await fetch(url + path);
      await got.arrayBuffer();
      const head = await fetch(url + path, { method: "HEAD" });
      expect(head.status).toBe(200);
      for (const name of [
        "content-type",
        "etag",
        "cache-control",
        "content-security-policy",
        "content-length",
      ])
        expect(head.headers.get(name), name).toBe(got.headers.get(name));
      expect(await head.text()).toBe("");
    }
  });
});

describe("the page's own paths", () => {
  test.each(["/new", "/c/018f2c1e-0000-7000-8000-000000000000", "/c/x/requests", "/c/x?view=rounds"])(
    "%s gets the page from a browser, and a problem from a client",
    async (path) => {
      const response = await open.get(path, { headers: NAVIGATION });
      expect([response.status, await response.text()]).toEqual([200, index]);
      expect(response.headers.get("vary")).toBe("accept, accept-encoding");
      expect(await problemOf(await open.get(path))).toMatchObject({ status: 404, code: "not_found" });
      const posted = await open.send("POST", path, {}, HTML);
      expect(await problemOf(posted)).toMatchObject({ status: 404, code: "not_found" });
    },
  );

  test("no path of the API gets the page, even from a browser", async () => {
    const { paths } = (await (await open.get("/openapi.json")).json()) as { readonly paths: object };
    for (const path of [...Object.keys(paths), "/api", "/api/", "/api/unknown", "/openapi.json"]) {
      const response = await guarded.get(path.replaceAll(/\{\w+\}/g, "x"), { headers: NAVIGATION });
      expect(response.headers.get("content-type"), path).toMatch(/json/);
      await response.body?.cancel();
    }
    const unknown = await open.get("/api/unknown", { headers: NAVIGATION });
    expect(await problemOf(unknown)).toMatchObject({ status: 404, code: "not_found" });
  });

  test.each([
    "/index.html",
    "/docs.html",
    "/current",
    "/assets",
    "/assets/",
    "/assets/nothing.js",
    `${script}.br`,
    "/favicon.ico",
    "/.env",
    "/.git/config",
    "/package.json",
    "/../package.json",
    "/assets/../../../package.json",
    "/assets/..%2f..%2f..%2fpackage.json",
    "/assets/%2e%2e/%2e%2e/%2e%2e/package.json",
    "/assets/..\\..\\package.json",
    "//etc/passwd",
    "/%00",
  ])("%s is no file", async (path) => {
    const response = await open.get(path);
    expect(await problemOf(response)).toMatchObject({ status: 404, code: "not_found" });
    // What no client cleans up before it sends it.
    const client = await connectTo((await serveApi(open)).url);
    await client.write(`GET ${path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n`);
    await client.closed;
    expect(client.received()).toMatch(/^HTTP\/1\.1 40[04] /);
  });
});

describe("who gets it", () => {
  test("everybody on this machine, without a token: the page, the reference, and the contract", async () => {
    for (const path of ["/", "/docs", script, "/icon.svg", "/manifest.webmanifest", "/openapi.json"])
      expect((await guarded.get(path)).status, path).toBe(200);
    expect((await guarded.get("/c/x", { headers: NAVIGATION })).status).toBe(200);
    for (const path of ["/api/models", "/metrics", "/unknown", "/assets/nothing.js", "/package.json"]) {
      expect((await guarded.get(path)).status, path).toBe(401);
    }
    expect((await guarded.get("/api/models", { headers: NAVIGATION })).status).toBe(401);
    expect((await guarded.send("POST", "/", {})).status).toBe(401);
  });

  test.each(["/", "/docs", "/c/x", script, "/icon.svg", "/openapi.json"])(
    "%s: no page with a rebound name, and no page of another origin",
    async (path) => {
      const rebound = await open.get(path, { headers: { ...HTML, host: "evil.example" } });
      expect(await problemOf(rebound)).toMatchObject({ status: 403, code: "forbidden_origin" });
      const foreign = await open.get(path, { headers: { ...HTML, origin: "https://evil.example" } });
      expect(await problemOf(foreign)).toMatchObject({ status: 403, code: "forbidden_origin" });
      const noCors = { ...HTML, "sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors" };
      expect((await open.get(path, { headers: noCors })).status).toBe(403);
      const link = { ...NAVIGATION, "sec-fetch-site": "cross-site" };
      expect((await open.get(path, { headers: link })).status).toBe(200);
    },
  );
});

describe("what a browser may do with it", () => {
  test("load code, styles and data from this origin only; be in no frame; use no device", async () => {
    for (const path of ["/", "/docs", ...assetsIn(index), "/icon.svg"]) {
      const response = await open.get(path);
      const policy = directives(response);
      expect(policy.get("default-src"), path).toBe("'none'");
      for (const name of ["script-src", "style-src", "connect-src", "worker-src"])
        expect(policy.get(name), `${path} ${name}`).toBe("'self'");
      for (const name of ["base-uri", "form-action", "frame-ancestors"])
        expect(policy.get(name), `${path} ${name}`).toBe("'none'");
      expect(policy.get("img-src"), path).toBe(path === "/docs" ? "'self' data:" : "'self' blob:");
      expect(response.headers.get("referrer-policy")).toBe("no-referrer");
      expect(response.headers.get("cross-origin-opener-policy")).toBe("same-origin");
      expect(response.headers.get("cross-origin-resource-policy")).toBe("same-origin");
      expect(response.headers.get("permissions-policy")).toContain("camera=()");
      expect(response.headers.get("x-content-type-options")).toBe("nosniff");
    }
  });

  test("nothing with an answer of the API that it shows by itself", async () => {
    for (const path of ["/api/models", "/openapi.json", "/api/unknown"])
      expect(directives(await open.get(path))).toEqual(
        new Map([
          ["default-src", "'none'"],
          ["frame-ancestors", "'none'"],
        ]),
      );
  });
});

test("where the page is not built, it says what to do, and the API works", async () => {
  for (const [path, headers] of [
    ["/", {}],
    ["/docs", {}],
    ["/c/x", NAVIGATION],
  ] as const) {
    const response = await unbuilt.get(path, { headers });
    expect(response.status).toBe(503);
    expect(response.headers.get("content-type")).toMatch(/^text\/plain/);
    expect(await response.text()).toContain("`npm start` builds it");
  }
  expect((await unbuilt.get("/icon.svg")).status).toBe(404);
  expect((await unbuilt.get("/api/models")).status).toBe(200);
});

test("whatever is asked for, the metrics get few labels", async () => {
  const { get } = await startApi({ databaseUrl, page: files });
  for (const path of ["/", "/docs", script, "/assets/nothing.js"]) await get(path);
  for (let n = 0; n < 20; n++) {
    await get(`/c/${n}`, { headers: NAVIGATION });
    await get(`/unknown-${n}.js`);
  }
  const metrics = await (await get("/metrics")).text();
  const routes = new Set([...metrics.matchAll(/route="([^"]*)"/g)].map(([, route = ""]) => route));
  expect(routes).toEqual(new Set(["/*", "unknown"]));
});

const digest = (content: Uint8Array): string => createHash("sha256").update(content).digest("hex");
