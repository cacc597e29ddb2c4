/**
 * Owns: a person's browser in a test: the system's Chromium, one for each file, with a fresh profile for each test. A
 * test fails when a page throws, writes an error to the console, opens a dialog of the browser, or asks another origin
 * for anything.
 * Not here: what the browser visits (stack.ts).
 */
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { chromium, type BrowserContext, type BrowserContextOptions, type Page } from "playwright-core";
import { expect, test as base } from "vitest";
import { findChromium, QUIET } from "./chromium.ts";

export type Visitor = {
  /** The profile. Tabs in it share storage and workers. */
  readonly context: BrowserContext;
  /** Opens a tab, in this profile or in another. Requests to the origin of this address are no problem from now on. */
  readonly open: (url: string, profile?: BrowserContext) => Promise<Page>;
  /** Another profile, as on another device. It is watched, too. */
  readonly another: (options?: BrowserContextOptions) => Promise<BrowserContext>;
  /** A problem that matches is meant to be. */
  readonly tolerate: (problem: RegExp) => void;
  /** What has happened that fails the test. */
  readonly problems: () => readonly string[];
};

const program = findChromium();
/** For `skipIf`. */
export const hasNoBrowser = program === null;

/** Hosts that Chromium asks of its own accord, which no switch ends for good. Of a page, Playwright would report them. */
const OWN = /^(https?:\/\/)?([\w-]+\.)*(google|googleapis|gstatic|gvt1)\.com[:/]/;

/**
 * A name for 127.0.0.1 that counts as insecure, as the address of a machine in the local network does: browsers keep some
 * of their interfaces from its pages.
 */
export const INSECURE_HOST = "bedrock.test";

/** A test with a `visitor`. */
export const browserTest = base
  .extend("started", { scope: "file" }, async ({}, { onCleanup }) => {
    const shared: string[] = [];
    const report = (problem: string): void => void shared.push(problem);
    const outside = await startOutside(report);
    const browser = await chromium.launch({
      executablePath: program ?? "",
      args: [
        ...QUIET,
        `--host-resolver-rules=MAP ${INSECURE_HOST} 127.0.0.1`,
        `--proxy-bypass-list=${INSECURE_HOST}`,
        `--proxy-server=127.0.0.1:${outside.port}`,
      ],
    });
    onCleanup(async () => {
      await browser.close();
      await outside.close();
    });
    return { browser, shared };
  })
  .extend("visitor", async ({ started: { browser, shared } }, { onCleanup }): Promise<Visitor> => {
    const found: string[] = [];
    const report = (problem: string): void => void found.push(problem);
    const origins = new Set<string>();
    const meant: RegExp[] = [];
    const contexts: BrowserContext[] = [];
    const another = async (options: BrowserContextOptions = {}): Promise<BrowserContext> => {
      const context = await browser.newContext(options);
      contexts.push(context);
      watch(context, origins, report);
      return context;
    };
    // What all profiles share belongs to the test that runs now.
    shared.length = 0;
    const problems = (): readonly string[] =>
      [...found, ...shared].filter((problem) => !meant.some((pattern) => pattern.test(problem)));
    onCleanup(async () => {
      await Promise.all(contexts.map((context) => context.close()));
      expect(problems(), "problems in the browser").toEqual([]);
    });
    const context = await another();
    return {
      context,
      another,
      problems,
      tolerate: (problem) => void meant.push(problem),
      open: async (url, profile = context) => {
        origins.add(new URL(url).origin);
        const page = await profile.newPage();
        await page.goto(url);
        return page;
      },
    };
  });

/** Reports what the pages of a profile do wrong. */
function watch(
  context: BrowserContext,
  origins: ReadonlySet<string>,
  report: (problem: string) => void,
): void {
  context.on("console", (message) => {
    if (message.type() === "error") report(`console: ${message.text()} (${message.location().url})`);
  });
  context.on("weberror", (error) => report(`error: ${error.error().stack ?? error.error().message}`));
  context.on("dialog", (dialog) => {
    report(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  context.on("request", (request) => {
    const { protocol, origin } = new URL(request.url());
    if (/^(https?|wss?):$/.test(protocol) && !origins.has(origin)) report(`request: ${request.url()}`);
  });
}

/**
 * The world beyond this machine: a proxy that lets nothing through, and knows what was asked for. So shared workers
 * count, too, whose requests Playwright does not report.
 */
async function startOutside(report: (problem: string) => void): Promise<{
  readonly port: number;
  readonly close: () => Promise<void>;
}> {
  const note = (url = ""): void => (OWN.test(url) ? undefined : report(`request: ${url}`));
  const server = createServer(({ url }, response) => {
    note(url);
    response.writeHead(403).end();
  });
  server.on("connect", ({ url }, socket) => {
    note(url);
    // The browser may go without reading it, and nobody else listens here any more.
    socket.on("error", () => undefined);
    socket.end("HTTP/1.1 403 Forbidden\r\n\r\n");
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return {
    port,
    close: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}
