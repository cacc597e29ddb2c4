/** A page that is open while the server gets a newer build of it. */
import { randomUUID } from "node:crypto";
import type { Page } from "playwright-core";
import { expect } from "vitest";
import { say, text } from "../../local/scripted/script.ts";
import { Conversations, on, untilState } from "./conversations.ts";
import { testWithStack, type Stack } from "./stack.ts";

const test = testWithStack();

const CODE = "```ts\nconst answer: number = 42;\n```";

const offer = (page: Page) => page.getByText("The server has a newer version of this page.");
const colorsOf = (page: Page) =>
  on(page)
    .transcript.locator("code")
    .filter({ hasText: "answer" })
    .evaluate(
      (code) => new Set([...code.querySelectorAll("*")].map((part) => getComputedStyle(part).color)).size,
    );

/** Serves the same page under other names. */
function deploy({ files }: Stack): void {
  const index = files.get("index.html");
  if (index === undefined) throw new Error("There is no page.");
  const html = new TextDecoder().decode(index.content);
  const named = /(assets\/main-\w+)(\.js|\.css)/g;
  for (const [name, stem = "", extension = ""] of html.matchAll(named)) {
    const file = files.get(name);
    if (file !== undefined) files.set(`${stem}X${extension}`, file);
  }
  const content = new TextEncoder().encode(html.replaceAll(named, "$1X$2"));
  files.set("index.html", { ...index, etag: `W/"${randomUUID()}"`, content, compressed: [] });
}

/** Takes away what colours code. Returns the way back. */
function takeColorsAway({ files }: Stack): () => void {
  const taken = [...files].filter(([name]) => /^assets\/(highlight|typescript)-/.test(name));
  for (const [name] of taken) files.delete(name);
  return () => {
    for (const [name, file] of taken) files.set(name, file);
  };
}

test("what an old page cannot load any more makes it offer a reload; after it, all is there and no draft is lost", async ({
  visitor,
  stack,
}) => {
  const conversations = new Conversations(stack);
  visitor.tolerate(/status of 404|Failed to fetch dynamically imported module/);
  const { url } = await conversations.start("Begin.", say(text("Ready.")), say(text(CODE)));
  const page = await visitor.open(url);
  await on(page).transcript.getByText("Ready.").waitFor();
  deploy(stack);
  const bringColorsBack = takeColorsAway(stack);
  await on(page).message.fill("Show me.");
  await page.keyboard.press("Enter");
  await offer(page).waitFor();
  // It is there, but without colours.
  await on(page).transcript.getByText("const answer: number = 42;").waitFor();
  expect(await colorsOf(page).catch(() => 0)).toBeLessThan(2);
  await on(page).message.fill("And then");
  bringColorsBack();
  await page.getByRole("button", { name: "Reload" }).click();
  await expect.poll(() => colorsOf(page).catch(() => 0)).toBeGreaterThan(1);
  expect(await on(page).message.inputValue()).toBe("And then");
  expect(await offer(page).count()).toBe(0);
});

test("a page finds out when its server was started anew; one that was only away offers nothing", async ({
  visitor,
  stack,
}) => {
  const conversations = new Conversations(stack);
  visitor.tolerate(/ERR_|Failed to load/);
  const { url } = await conversations.start("Begin.", say(text("Ready.")));
  const page = await visitor.open(url);
  await untilState(page, "connected");
  const looks = () => stack.requests.filter((request) => request === "GET /").length;
  const before = looks();
  await stack.network.cut();
  await untilState(page, "connection lost");
  await stack.network.mend();
  await untilState(page, "connected");
  await expect.poll(looks).toBe(before + 1);
  expect(await offer(page).count()).toBe(0);

  await stack.network.cut();
  await untilState(page, "connection lost");
  deploy(stack);
  await stack.network.mend();
  await offer(page).waitFor();
});
