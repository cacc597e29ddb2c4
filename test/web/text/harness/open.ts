/**
 * Owns: building the test page, serving it with the page's Content-Security-Policy, and opening it in Chromium.
 * The worker is a program of its own, as in the page.
 */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { build, type BuildOptions } from "esbuild";
import { chromium, type Browser, type Page } from "playwright-core";
import { findChromium, QUIET } from "../../chromium.ts";

const ROOT = join(import.meta.dirname, "..", "..", "..", "..");
const POLICY = "default-src 'self'; style-src 'self'; script-src 'self'; img-src 'self' blob:";
const program = findChromium();
/** For `skipIf`. */
export const hasNoBrowser = program === null;

/** Paths and contents. */
type Files = ReadonlyMap<string, Uint8Array>;

const options: BuildOptions = {
  bundle: true,
  splitting: true,
  minify: true,
  format: "esm",
  target: "es2022",
  jsx: "automatic",
  write: false,
  outdir: ROOT,
  logLevel: "silent",
};

/**
 * @param settings.mode React reports its own findings in development
 * @param settings.worker the address that the page knows; the worker's, unless given
 */
export async function buildPage({
  mode = "development",
  worker: address = "/text-worker.js",
}: { readonly mode?: "development" | "production"; readonly worker?: string } = {}): Promise<Files> {
  const page = await build({
    ...options,
    entryPoints: [
      { in: join(import.meta.dirname, "page.tsx"), out: "page" },
      { in: join(import.meta.dirname, "page.css"), out: "style" },
    ],
    define: {
      "process.env.NODE_ENV": JSON.stringify(mode),
      TEXT_WORKER_URL: JSON.stringify(address),
    },
  });
  const worker = await build({
    ...options,
    entryPoints: [join(ROOT, "web", "text-worker.ts")],
  });
  return new Map(
    [...(page.outputFiles ?? []), ...(worker.outputFiles ?? [])].map(({ path, contents }) => [
      path.slice(ROOT.length),
      contents,
    ]),
  );
}

export type TestPage = {
  readonly page: Page;
  readonly browser: Browser;
  readonly origin: string;
  /** Addresses that the browser asked for. */
  readonly requests: readonly string[];
  /** Errors that the page threw or wrote to the console, and dialogs. */
  readonly problems: string[];
  close(): Promise<void>;
};

const HTML =
  '<!doctype html><html lang="en"><meta charset="utf-8"><title>Texts</title>' +
  '<link rel="stylesheet" href="/style.css">' +
  '<body><script type="module" src="/page.js"></script></body></html>';

/** @param flags more of them for Chromium */
export async function openPage(files: Files, flags: readonly string[] = []): Promise<TestPage> {
  const server = createServer((request, response) => {
    const path = new URL(request.url ?? "/", "http://localhost").pathname;
    const content = path === "/" ? HTML : files.get(path);
    const type = path === "/" ? "text/html" : path.endsWith(".css") ? "text/css" : "text/javascript";
    // Chromium asks for it in any case.
    const status = path === "/favicon.ico" ? 204 : content === undefined ? 404 : 200;
    response.writeHead(status, {
      "content-type": type,
      "content-security-policy": POLICY,
      "x-dns-prefetch-control": "off",
    });
    response.end(content);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const origin = `http://127.0.0.1:${port}`;
  const browser = await chromium.launch({
    executablePath: program ?? "",
    args: [...QUIET, ...flags],
  });
  const context = await browser.newContext();
  const requests: string[] = [];
  context.on("request", (request) => requests.push(request.url()));
  const page = await context.newPage();
  const problems: string[] = [];
  // A text that makes a component fail takes the whole page with it.
  page.on("pageerror", ({ message }) => problems.push(`an error: ${message}`));
  page.on("console", (message) => {
    if (message.type() === "error") problems.push(`in the console: ${message.text()}`);
  });
  page.on("dialog", (dialog) => {
    problems.push(`a dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  await page.goto(origin);
  await page.waitForFunction(() => "harness" in globalThis);
  return {
    ...{ page, browser, origin, requests, problems },
    close: async () => {
      await browser.close();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
