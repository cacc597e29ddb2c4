/**
 * A server that asks for a token: how a person gives it, where the page keeps it, and that everything works with it,
 * on a phone in the local network, too.
 */
import type { BrowserContext, Page, Request } from "playwright-core";
import sharp from "sharp";
import { expect } from "vitest";
import { hold } from "../../local/scripted/cues.ts";
import { say, text } from "../../local/scripted/script.ts";
import { INSECURE_HOST } from "./browser.ts";
import { Conversations, on, untilState } from "./conversations.ts";
import { testWithStack } from "./stack.ts";

const TOKEN = "A-token+of/this~test.0123456789==";

const test = testWithStack({ apiToken: TOKEN, host: "0.0.0.0" });

const prompt = (page: Page) => ({
  heading: page.getByRole("heading", { name: "This server asks for a token" }),
  token: page.getByLabel("Token"),
  go: page.getByRole("button", { name: "Continue" }),
  refusal: page.getByRole("alert").getByText("The server did not accept the token."),
});

async function signIn(page: Page): Promise<void> {
  await prompt(page).token.fill(TOKEN);
  await page.keyboard.press("Enter");
}

/** Where the page could have kept something, each with all that is there. */
const kept = (page: Page): Promise<{ readonly [place: string]: string }> =>
  page.evaluate(async () => {
    const promised = <T>(request: IDBRequest<T>): Promise<T> =>
      new Promise((resolve, reject) => {
        request.onsuccess = () => resolve(request.result);
        request.onerror = () => reject(new Error("The database cannot be read."));
      });
    const databases = (await indexedDB.databases()).map(async ({ name = "" }) => {
      const database = await promised(indexedDB.open(name));
      const stores = [...database.objectStoreNames].map((store) =>
        database.transaction(store).objectStore(store),
      );
      return Promise.all(stores.flatMap((store) => [promised(store.getAllKeys()), promised(store.getAll())]));
    });
    return {
      address: location.href,
      history: JSON.stringify(history.state),
      cookies: document.cookie,
      "local storage": JSON.stringify(localStorage),
      databases: JSON.stringify(await Promise.all(databases)),
      caches: JSON.stringify("caches" in globalThis ? await caches.keys() : []),
      "name of the window": window.name,
      "session storage": JSON.stringify(sessionStorage),
    };
  });

/** The addresses that a profile asks for. */
function addressesOf(profile: BrowserContext): readonly string[] {
  const urls: string[] = [];
  profile.on("request", (request: Request) => void urls.push(request.url()));
  return urls;
}

test("the page asks for the token, says that one is wrong, and goes on with the right one; nobody else gets it", async ({
  visitor,
  stack,
}) => {
  const conversations = new Conversations(stack);
  const { url } = await conversations.start("Secret.", say(text("Nobody may read this.")));
  visitor.tolerate(/status of 401/);
  const addresses = addressesOf(visitor.context);
  const page = await visitor.open(url);
  const ask = prompt(page);
  await ask.heading.waitFor();
  expect(await ask.refusal.count()).toBe(0);
  expect(await ask.go.isDisabled()).toBe(true);
  expect(await page.getByText("Nobody may read this.").count()).toBe(0);
  // It is not shown to those who look over one's shoulder.
  expect(await ask.token.getAttribute("type")).toBe("password");

  await ask.token.fill("wrong");
  await ask.go.click();
  await ask.refusal.waitFor();
  await ask.token.fill(`  ${TOKEN} `);
  await page.keyboard.press("Enter");
  await on(page).transcript.getByText("Nobody may read this.").waitFor();
  await on(page).message.fill("A draft.");

  const { "session storage": session, ...others } = await kept(page);
  expect(session).toContain(TOKEN);
  for (const [place, content] of Object.entries(others)) expect(content, place).not.toContain(TOKEN);
  expect(await visitor.context.cookies()).toEqual([]);
  expect(addresses.length).toBeGreaterThan(3);
  expect(addresses.filter((address) => decodeURIComponent(address).includes(TOKEN))).toEqual([]);

  // This tab keeps it over a reload.
  await page.reload();
  await on(page).transcript.getByText("Nobody may read this.").waitFor();
});

test("each tab is asked once; then all are live, and a link leads on without another question", async ({
  visitor,
  stack,
}) => {
  const conversations = new Conversations(stack);
  const { url } = await conversations.start("Tabs.", say(text("One.")), say(text("Two.")));
  visitor.tolerate(/status of 401/);
  const first = await visitor.open(url);
  await signIn(first);
  await on(first).transcript.getByText("One.").waitFor();
  const second = await visitor.open(url);
  await prompt(second).heading.waitFor();
  // A tab without the token does not disturb the others.
  await first.reload();
  await on(first).transcript.getByText("One.").waitFor();
  await signIn(second);
  await on(second).transcript.getByText("One.").waitFor();
  await on(second).message.fill("Go on.");
  await on(second).send.click();
  for (const tab of [first, second]) await on(tab).transcript.getByText("Two.").waitFor();
  await on(first).list.getByRole("link", { name: "New", exact: true }).click();
  await first.getByRole("heading", { name: "New conversation" }).waitFor();
  await on(first)
    .list.getByRole("link", { name: /^Tabs\./ })
    .click();
  await on(first).transcript.getByText("Two.").waitFor();
});

test("images are shown, which are asked for with the token, too", async ({ visitor, stack }) => {
  const conversations = new Conversations(stack);
  const { id, url } = await conversations.start("Look.", say(text("Ready.")), say(text("Nice.")));
  await conversations.person.untilState(id, "idle");
  const data = await sharp({ create: { width: 30, height: 20, channels: 3, background: "#28a" } })
    .png()
    .toBuffer();
  const images = [{ mediaType: "image/png", data: data.toString("base64") }];
  await conversations.person.say(id, { text: "At this.", images });
  visitor.tolerate(/status of 401/);
  const page = await visitor.open(url);
  await signIn(page);
  const image = on(page).transcript.getByRole("img", { name: "Image, 30 by 20 pixels" });
  await expect.poll(() => image.evaluate((element) => (element as HTMLImageElement).naturalWidth)).toBe(30);
});

test("on a phone in the local network: the token, the list as a drawer, the composer, Stop", async ({
  visitor,
  stack,
}) => {
  const conversations = new Conversations(stack);
  const { id } = await conversations.start(
    "From the desk.",
    say(text("Begun.")),
    say(text("Well", hold(), ".")),
  );
  await conversations.person.untilState(id, "idle");
  visitor.tolerate(/status of 401/);
  // Of the one header that means nothing without HTTPS, the browser says so.
  visitor.tolerate(/Cross-Origin-Opener-Policy/);
  const profile = await visitor.another({
    viewport: { width: 390, height: 844 },
    deviceScaleFactor: 3,
    isMobile: true,
    hasTouch: true,
  });
  const origin = stack.url.replace("127.0.0.1", INSECURE_HOST);
  const page = await visitor.open(origin, profile);
  const at = on(page);
  // Without HTTPS the page has to do without some interfaces.
  expect(await page.evaluate(() => isSecureContext)).toBe(false);
  await prompt(page).token.fill(TOKEN);
  await prompt(page).go.tap();
  await page.getByRole("heading", { name: "New conversation" }).waitFor();

  const openList = page.getByRole("button", { name: "Show the list of conversations" });
  expect(await at.list.isVisible()).toBe(false);
  await openList.tap();
  await at.list.waitFor();
  await page.getByRole("button", { name: "Close the list" }).tap();
  await at.list.waitFor({ state: "hidden" });
  await openList.tap();
  await at.list.getByRole("link", { name: /^From the desk\./ }).tap();
  await at.list.waitFor({ state: "hidden" });
  await at.transcript.getByText("Begun.").waitFor();

  // Enter makes a new line, for there is no Shift.
  await at.message.tap();
  await page.keyboard.type("From");
  await page.keyboard.press("Enter");
  await page.keyboard.type("the garden.");
  expect(await at.message.inputValue()).toBe("From\nthe garden.");
  await at.send.tap();
  await untilState(page, "writes");
  await at.transcript.getByText("Well").waitFor();
  await at.stop.tap();
  await untilState(page, "ready");
  await at.transcript.getByText("stopped ·").waitFor();
  const messages = await conversations.person.messages(id);
  expect(messages.filter(({ type }) => type === "user").at(-1)?.content).toEqual([
    { type: "text", text: "From\nthe garden." },
  ]);

  // Nothing has to be moved sideways, and nothing that is pressed is cut off.
  const { scrollWidth, innerWidth } = await page.evaluate(() => ({
    scrollWidth: document.documentElement.scrollWidth,
    innerWidth: window.innerWidth,
  }));
  expect([innerWidth, scrollWidth]).toEqual([390, 390]);
  for (const button of await page.getByRole("main").getByRole("button").all()) {
    const box = await button.boundingBox();
    if (box !== null) expect(box.x + box.width, await button.innerText()).toBeLessThanOrEqual(390);
  }
});
