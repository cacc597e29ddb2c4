/** The page as a browser loads it, before anything was done on it. */
import { expect } from "vitest";
import { testWithStack } from "./stack.ts";

/** Bytes, compressed by gzip: the page's goal (docs/performance.md). */
const FIRST_LOAD = 150 * 1024;

const test = testWithStack();

test("it loads from what was built, asks no other origin, and loads at most 150 KB of JavaScript first", async ({
  visitor,
  stack,
}) => {
  const page = await visitor.open(stack.url);
  await page.getByRole("main").waitFor();
  await page.evaluate(() => new Promise((resolve) => requestIdleCallback(resolve)));

  const scripts = stack.requests.filter((request) => /^GET \/assets\/.*\.js$/.test(request));
  expect(scripts.length).toBeGreaterThan(0);
  expect(new Set(scripts).size).toBe(scripts.length);
  const sizes = await Promise.all(
    scripts.map(async (request) => {
      const path = request.replace("GET ", "");
      const response = await fetch(stack.url + path, {
        method: "HEAD",
        headers: { "accept-encoding": "gzip" },
      });
      expect(response.headers.get("content-encoding"), path).toBe("gzip");
      return Number(response.headers.get("content-length"));
    }),
  );
  expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThanOrEqual(FIRST_LOAD);
});

test("its assets are loaded once: the next time, only the page itself is asked for", async ({
  visitor,
  stack,
}) => {
  await (await visitor.open(stack.url)).getByRole("main").waitFor();
  const before = stack.requests.length;
  await (await visitor.open(stack.url)).getByRole("main").waitFor();
  const asked = stack.requests.slice(before);
  expect(asked).toContain("GET /");
  expect(asked.filter((request) => request.startsWith("GET /assets/"))).toEqual([]);
});

test("it can be installed", async ({ visitor, stack }) => {
  const page = await visitor.open(stack.url);
  const debug = await visitor.context.newCDPSession(page);
  const { errors, url } = await debug.send("Page.getAppManifest");
  expect([url, errors]).toEqual([`${stack.url}/manifest.webmanifest`, []]);
  const { installabilityErrors } = await debug.send("Page.getInstallabilityErrors");
  // A profile of a test counts as a private window.
  expect(installabilityErrors.map(({ errorId }) => errorId).filter((id) => id !== "in-incognito")).toEqual(
    [],
  );
});

test("what another page's code could do in it, its policy refuses", async ({ visitor, stack }) => {
  visitor.tolerate(/Content Security Policy/);
  const page = await visitor.open(stack.url);
  const ran = await page.evaluate(
    async (url) => {
      const seen: string[] = [];
      const note = (what: string) => () => void seen.push(what);
      Object.assign(globalThis, { note });
      const script = document.createElement("script");
      script.textContent = "globalThis.note('inline script')()";
      document.body.append(script);
      const holder = document.createElement("div");
      holder.innerHTML = `<img src="/icon.svg" onload="globalThis.note('handler')()"><p id="styled" style="color: rgb(1, 2, 3)">`;
      document.body.append(holder);
      await fetch(`${url}/healthz`, { mode: "no-cors" }).then(
        note("fetch of another origin"),
        () => undefined,
      );
      await new Promise((resolve) => {
        const image = new Image();
        image.onload = resolve;
        image.onerror = resolve;
        image.src = "/icon.svg";
      });
      const styled = document.getElementById("styled");
      if (styled !== null && getComputedStyle(styled).color === "rgb(1, 2, 3)") seen.push("inline style");
      return seen;
    },
    stack.url.replace("127.0.0.1", "localhost"),
  );
  expect(ran).toEqual([]);
});
