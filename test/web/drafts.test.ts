/**
 * What a person has written is never lost: drafts survive a reload, a message is sent when the server can be reached,
 * and once, and what is refused comes back.
 */
import type { Page } from "playwright-core";
import sharp from "sharp";
import { expect } from "vitest";
import { hold } from "../../local/scripted/cues.ts";
import { say, text } from "../../local/scripted/script.ts";
import type { Message } from "../../machine/message.ts";
import { Conversations, on, textOf, untilState } from "./conversations.ts";
import { testWithStack } from "./stack.ts";

const test = testWithStack();

/** In the browser: what is kept in the database of the page, as a text. Images become their sizes. */
const keptInDatabase = (): Promise<string> =>
  new Promise((resolve, reject) => {
    const opening = indexedDB.open("keyval-store");
    opening.onerror = () => reject(new Error("The database cannot be opened."));
    opening.onupgradeneeded = () => opening.transaction?.abort();
    opening.onsuccess = () => {
      const store = opening.result.transaction("keyval").objectStore("keyval");
      const reading = store.getAll();
      reading.onsuccess = () =>
        resolve(
          JSON.stringify(reading.result, (_, value: unknown) => (value instanceof Blob ? value.size : value)),
        );
    };
  });

async function picture(name: string, background: string) {
  const shape = { width: 60, height: 40, channels: 3, background } as const;
  return { name, mimeType: "image/png", buffer: await sharp({ create: shape }).png().toBuffer() };
}

const chooseImage = (page: Page, image: Awaited<ReturnType<typeof picture>>) =>
  page.getByRole("main").locator("input[type=file]").setInputFiles(image);

const saidIn = (messages: readonly Message[]): readonly string[] =>
  messages.flatMap((message) =>
    message.type === "user"
      ? message.content.flatMap((block) => (block.type === "text" ? [block.text] : []))
      : [],
  );

test("each conversation has a draft of its own, text and images, and so has a new one; they survive a reload", async ({
  visitor,
  stack,
}) => {
  const conversations = new Conversations(stack);
  const { person } = conversations;
  const tag = conversations.script(say(text("A blue one.")));
  const one = await person.create({ title: "The first one" });
  await person.create({ title: "The second one" });
  const page = await visitor.open(`${stack.url}/c/${one}`);
  const at = on(page);
  const image = (name: string) => page.getByRole("img", { name });
  const go = (name: string | RegExp) => at.list.getByRole("link", { name }).click();

  await at.message.fill(`What is this? ${tag}`);
  await chooseImage(page, await picture("blue.png", "#28a"));
  await image("blue.png").waitFor();
  await go(/^The second one/);
  await page.getByRole("heading", { level: 1, name: "The second one" }).waitFor();
  expect(await at.message.inputValue()).toBe("");
  expect(await image("blue.png").count()).toBe(0);
  await at.message.fill("Only a text.");
  await go("New");
  await page.getByLabel("First message").fill("Something new.");
  await chooseImage(page, await picture("red.png", "#a28"));
  await image("red.png").waitFor();
  await expect.poll(() => page.evaluate(keptInDatabase)).toMatch(/blue\.png.*red\.png|red\.png.*blue\.png/);

  await page.reload();
  await image("red.png").waitFor();
  expect(await page.getByLabel("First message").inputValue()).toBe("Something new.");
  await go(/^The second one/);
  await expect.poll(() => at.message.inputValue()).toBe("Only a text.");
  await page.reload();
  await go(/^The first one/);
  await image("blue.png").waitFor();
  expect(await at.message.inputValue()).toBe(`What is this? ${tag}`);

  await at.send.click();
  await at.transcript.getByText("A blue one.").waitFor();
  await page.reload();
  await at.transcript.getByRole("img", { name: "Image, 60 by 40 pixels" }).waitFor();
  expect(await at.message.inputValue()).toBe("");
  expect(await image("blue.png").count()).toBe(0);
});

test("messages to a server that cannot be reached are sent when it is back: in order, once, from another page, too", async ({
  visitor,
  stack,
}) => {
  const conversations = new Conversations(stack);
  const { id, url } = await conversations.start(
    "Begin.",
    say(text("Ready.")),
    ...Array.from({ length: 3 }, () => say(text("All read."))),
  );
  visitor.tolerate(/ERR_|Failed to load/);
  const page = await visitor.open(url);
  await untilState(page, "ready");
  await stack.network.cut();
  await on(page).message.fill("On the train.");
  await chooseImage(page, await picture("train.png", "#2a8"));
  await page.getByRole("img", { name: "train.png" }).waitFor();
  await on(page).message.press("Enter");
  for (const line of ["Better not.", "In a tunnel.", "At the station."]) {
    await on(page).message.fill(line);
    await on(page).message.press("Enter");
  }
  await on(page).waiting.getByText("At the station.").waitFor();
  await page.getByRole("button", { name: "Discard: Better not." }).click();
  await untilState(page, "connection lost");
  expect(await on(page).message.inputValue()).toBe("");
  await expect
    .poll(() => page.evaluate(keptInDatabase))
    .toMatch(/"text":"On the train\..*"blob":\d+.*In a tunnel\..*At the station\./);
  await page.close();

  await stack.network.mend();
  const again = await visitor.open(url);
  await on(again).transcript.getByText("At the station.").waitFor();
  await on(again).transcript.getByRole("img", { name: "Image, 60 by 40 pixels" }).waitFor();
  await on(again).transcript.getByText("All read.").last().waitFor();
  await on(again).waiting.waitFor({ state: "detached" });
  await again.reload();
  await on(again).transcript.getByText("All read.").last().waitFor();
  await expect.poll(() => again.evaluate(keptInDatabase)).not.toContain("On the train.");
  const said = saidIn(await conversations.person.messages(id));
  expect(said.slice(1)).toEqual(["On the train.", "In a tunnel.", "At the station."]);
});

test("it is patient: also after minutes without a server, a message goes as soon as there is one", async ({
  visitor,
  stack,
}) => {
  const conversations = new Conversations(stack);
  const { url } = await conversations.start("Begin.", say(text("Ready.")), say(text("At last.")));
  visitor.tolerate(/ERR_|Failed to load/);
  const page = await visitor.open(stack.url);
  await page.clock.install();
  await page.goto(url);
  await untilState(page, "ready");
  await stack.network.cut();
  let failures = 0;
  page.on("requestfailed", (request) => {
    if (request.method() === "POST" && request.url().endsWith("/messages")) failures++;
  });
  await on(page).message.fill("Hello?");
  await page.keyboard.press("Enter");
  for (const before of [0, 1, 2]) {
    await expect.poll(() => failures).toBeGreaterThan(before);
    await page.clock.fastForward(120_000);
  }
  await expect.poll(() => failures).toBeGreaterThan(5);
  await on(page).waiting.getByText("Sending:").waitFor();
  await stack.network.mend();
  await on(page).transcript.getByText("At last.").waitFor();
  expect((await textOf(page)).match(/Hello\?/g)).toHaveLength(1);
});

test("what is taken back before the server is there is never sent", async ({ visitor, stack }) => {
  const conversations = new Conversations(stack);
  const { id, url } = await conversations.start("Begin.", say(text("Ready.")), say(text("Read.")));
  visitor.tolerate(/ERR_|Failed to load/);
  const page = await visitor.open(url);
  await untilState(page, "ready");
  await stack.network.cut();
  for (const line of ["Not this.", "But this."]) {
    await on(page).message.fill(line);
    await on(page).message.press("Enter");
  }
  await page.getByRole("button", { name: "Discard: Not this." }).click();
  await on(page).waiting.getByText("Not this.").waitFor({ state: "detached" });
  await stack.network.mend();
  await on(page).transcript.getByText("Read.").waitFor();
  expect(saidIn(await conversations.person.messages(id)).slice(1)).toEqual(["But this."]);
});

test("a message whose answer was lost is not sent twice", async ({ visitor, stack }) => {
  const conversations = new Conversations(stack);
  const { id, url } = await conversations.start("Begin.", say(text("Ready.")), say(text("Once.")));
  visitor.tolerate(/ERR_FAILED/);
  const page = await visitor.open(url);
  await untilState(page, "ready");
  let tries = 0;
  await page.route("**/messages", async (route) => {
    if (tries++ > 0) return route.fallback();
    await route.fetch();
    await route.abort();
  });
  await on(page).message.fill("Do it.");
  await page.keyboard.press("Enter");
  await on(page).transcript.getByText("Once.").waitFor();
  await on(page).waiting.waitFor({ state: "detached" });
  expect(tries).toBe(2);
  expect(saidIn(await conversations.person.messages(id)).filter((line) => line === "Do it.")).toHaveLength(1);
});

test("a refused message comes back with the reason: to be sent again, changed, or discarded; a reload sends nothing", async ({
  visitor,
  stack,
}) => {
  const conversations = new Conversations(stack);
  const { id, url } = await conversations.start("Begin.", say(text("Well", hold(), ".")));
  visitor.tolerate(/status of 429/);
  const page = await visitor.open(url);
  const at = on(page);
  await untilState(page, "writes");
  const waiting = Array.from({ length: 32 }, (_, n) => `Number ${n}.`);
  for (const line of waiting) await conversations.person.say(id, { text: line, delivery: "followUp" });
  await at.waiting.getByText("Number 31.").waitFor();

  const refusal = at.waiting.getByRole("alert").filter({ hasText: "32 messages are waiting already." });
  const asked = () =>
    stack.requests.filter((request) => request === `POST /api/conversations/${id}/messages`);
  await at.message.fill("One too many.");
  await page.keyboard.press("Enter");
  await refusal.waitFor();
  await at.waiting.getByText("Not sent:").waitFor();
  const before = asked().length;
  await page.reload();
  await refusal.waitFor();
  expect(asked()).toHaveLength(before);

  // It comes before what is being written.
  await at.message.fill("And this.");
  await page.getByRole("button", { name: "Edit" }).click();
  expect(await at.message.inputValue()).toBe("One too many.\n\nAnd this.");
  await refusal.waitFor({ state: "detached" });

  await page.keyboard.press("Enter");
  await at.message.press("Enter");
  await refusal.waitFor();
  await page.getByRole("button", { name: "Take back: Number 0." }).click();
  await at.waiting.getByText("Number 0.").waitFor({ state: "detached" });
  await page.getByRole("button", { name: "Send again" }).click();
  await refusal.waitFor({ state: "detached" });
  await at.waiting.getByText("And this.").waitFor();
  await expect
    .poll(async () => JSON.stringify((await conversations.person.conversation(id))["queue"]))
    .toContain("One too many.\\n\\nAnd this.");

  await at.message.fill("Never mind.");
  await at.message.press("Enter");
  await refusal.waitFor();
  await page.getByRole("button", { name: "Discard: Never mind." }).click();
  await refusal.waitFor({ state: "detached" });
  await expect.poll(() => page.evaluate(keptInDatabase)).not.toContain("Never mind.");
  await page.reload();
  await at.waiting.getByText("And this.").waitFor();
  expect(await at.waiting.getByText("Never mind.").count()).toBe(0);
});
