/** The end of a full context on the page: the warning, the summary, and the ways to go on (REQ-BED-019, 020, 021). */
import { randomUUID } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { expect } from "vitest";
import { hold } from "../../local/scripted/cues.ts";
import { answer, fail, rateLimited, say, text, toolCall } from "../../local/scripted/script.ts";
import { Conversations, on, untilState } from "./conversations.ts";
import { testWithStack } from "./stack.ts";
import { used } from "./states.ts";

const test = testWithStack();

const SUMMARY = "# What was done\n\nAll but the **tests**: `npm test` fails.\n";

const warning = (page: Page) => page.getByText(/^The context is \d+ % full\./);
const wrapUp = (page: Page) => page.getByRole("button", { name: "Wrap up now" });
const ending = (page: Page) => page.getByRole("region", { name: "The context is used up" });
const withSummary = (page: Page) => page.getByRole("button", { name: "Go on with the summary" });
const without = (page: Page) => page.getByRole("button", { name: "Go on without it" });

test("from 80 % on the page warns; what wraps up waits for the agent, and then ends with the summary", async ({
  visitor,
  stack,
}) => {
  const conversations = new Conversations(stack);
  const go = join(stack.system.cwd, randomUUID());
  const { url } = await conversations.start(
    "Begin.",
    answer(["Not much."], used(0.79)),
    answer(["More.", toolCall("bash", { command: `until [ -e ${go} ]; do sleep 0.02; done` })], used(0.853)),
    answer(["Still more."], used(0.87)),
    say(SUMMARY),
  );
  const page = await visitor.open(url);
  const at = on(page);
  await untilState(page, "79 %");
  expect(await warning(page).count()).toBe(0);

  await at.message.fill("Go on.");
  await at.send.click();
  await page.getByText("The context is 85 % full.").waitFor();
  await untilState(page, "runs bash");
  await untilState(page, "85 %");
  expect(await wrapUp(page).isDisabled()).toBe(true);
  await writeFile(go, "");
  await untilState(page, "ready");
  await page.reload();
  await page.getByText("The context is 87 % full.").waitFor();

  await wrapUp(page).click();
  await ending(page).getByRole("heading", { name: "What was done" }).waitFor();
  await untilState(page, "context used up");
  expect(await warning(page).count()).toBe(0);
});

test("the summary stands out, once, and nothing more can be written; the conversation goes on from it in a new one", async ({
  visitor,
  stack,
}) => {
  const conversations = new Conversations(stack);
  const { id, url } = await conversations.start("First.", answer(["Much."], used(0.95)), say(SUMMARY));
  const page = await visitor.open(url);
  const at = on(page);
  const card = ending(page);
  await card.getByRole("heading", { name: "What was done" }).waitFor();
  await card.getByText("npm test", { exact: true }).waitFor();
  expect(await page.getByRole("main").getByText("npm test").count()).toBe(1);
  expect(await at.message.count()).toBe(0);
  // It is what one sees, without scrolling.
  const { height = 0 } = page.viewportSize() ?? {};
  const place = await card.boundingBox();
  expect(place?.y).toBeGreaterThan(0);
  expect((place?.y ?? 0) + (place?.height ?? height)).toBeLessThan(height);
  const inList = at.list.getByRole("link", { name: /^First\./ });
  await inList.getByText("context used up").waitFor();

  // Pressed twice, it goes on once.
  await withSummary(page).dblclick();
  await page.getByText("Begins with the summary of the conversation before").click();
  await at.transcript.getByText("npm test", { exact: true }).waitFor();
  await untilState(page, "ready");
  const next = new URL(page.url()).pathname.replace("/c/", "");
  expect(await conversations.person.conversation(id)).toMatchObject({ continuedTo: [next] });
  const tag = conversations.script(say("I see what is left."));
  await at.message.fill(`Now the tests. ${tag}`);
  await at.send.click();
  await at.transcript.getByText("I see what is left.").waitFor();
  const read = JSON.stringify(stack.system.model.requests.at(-1)?.json);
  expect(read).toContain("All but the **tests**");

  // There and back.
  await at.transcript.getByRole("link", { name: "First." }).click();
  await card.waitFor();
  await at.transcript.getByRole("link", { name: /^Now the tests\./ }).click();
  await at.transcript.getByText("I see what is left.").waitFor();
  await page.goBack();
  await card.waitFor();
});

test("it goes on without the summary, too; a page that is open elsewhere gets the link", async ({
  visitor,
  stack,
}) => {
  const conversations = new Conversations(stack);
  const { url } = await conversations.start("Alone.", answer(["Much."], used(0.95)), say(SUMMARY));
  const page = await visitor.open(url);
  const other = await visitor.open(url, await visitor.another());
  await without(page).click();
  await on(page).transcript.getByRole("link", { name: "Alone." }).waitFor();
  await untilState(page, "ready");
  expect(await page.getByText("Begins with").count()).toBe(0);
  const tag = conversations.script(say("I know nothing."));
  await on(page).message.fill(`What was it? ${tag}`);
  await page.keyboard.press("Enter");
  await on(page).transcript.getByText("I know nothing.").waitFor();
  expect(JSON.stringify(stack.system.model.requests.at(-1)?.json)).not.toContain("All but");
  await on(other)
    .transcript.getByRole("link", { name: /^What was it\?/ })
    .click();
  await on(other).transcript.getByText("I know nothing.").waitFor();
});

test("what waits goes along, and what was being written, too", async ({ visitor, stack }) => {
  const conversations = new Conversations(stack);
  const held = hold();
  const { url } = await conversations.start(
    "Begin.",
    answer([text("Much", held, ".")], used(0.95)),
    say(SUMMARY),
  );
  const tag = conversations.script(say("Then that is done."));
  const page = await visitor.open(url);
  const at = on(page);
  await untilState(page, "writes");
  await page.getByRole("button", { name: "Afterwards" }).click();
  await at.message.fill(`Then that. ${tag}`);
  await page.keyboard.press("Enter");
  await at.message.fill("And never this.");
  await page.keyboard.press("Enter");
  // Both are on the server, and not on their way any more.
  await expect.poll(() => at.waiting.getByText("After this:").count()).toBe(2);
  await at.message.fill("I was just writing");
  held.release();

  await ending(page).getByText("2 messages will go along.").waitFor();
  await page.getByRole("button", { name: "Take back: And never this." }).click();
  await ending(page).getByText("1 message will go along.").waitFor();
  await withSummary(page).click();
  await at.waiting.getByText("They came along from the conversation before.").waitFor();
  await at.waiting.getByText("Then that.").waitFor();
  expect(await at.message.inputValue()).toBe("I was just writing");
  await page.getByRole("button", { name: "Let them go on" }).click();
  await at.transcript.getByText("Then that is done.").waitFor();
  await at.transcript.getByRole("link", { name: "Begin." }).click();
  await ending(page).waitFor();
  expect(await ending(page).getByText("will go along").count()).toBe(0);
  expect(await at.waiting.count()).toBe(0);
});

test("a message that comes too late is refused, shown with the reason, and goes along as the new draft", async ({
  visitor,
  stack,
}) => {
  const conversations = new Conversations(stack);
  const held = hold();
  const { id, url } = await conversations.start(
    "Begin.",
    answer([text("Much", held, ".")], used(0.95)),
    say(SUMMARY),
  );
  const page = await visitor.open(url);
  await untilState(page, "writes");
  visitor.tolerate(/ERR_|Failed to load/);
  await stack.network.cut();
  await on(page).message.fill("But mind the docs.");
  await page.keyboard.press("Enter");
  await page.getByText("Sending:").waitFor();
  held.release();
  await conversations.person.untilState(id, "context_exhausted");
  await stack.network.mend();
  await ending(page).waitFor();
  await on(page).waiting.getByRole("alert").waitFor();
  await on(page).waiting.getByText("This conversation's context is exhausted.").waitFor();
  await page.reload();
  await on(page).waiting.getByText("Not sent:").waitFor();
  await withSummary(page).click();
  await untilState(page, "ready");
  expect(await on(page).message.inputValue()).toBe("But mind the docs.");
});

test.for([
  ["no summary could be written", "failed", "The continuation summary could not be generated."],
  ["the person stopped it", "cancelled", "Continuation cancelled by user."],
] as const)(
  "where %s, it says so, and goes on from the last requests",
  async ([, how, says], { visitor, stack }) => {
    const conversations = new Conversations(stack);
    const { id, url } = await conversations.start(
      "Write the parser.",
      answer(["Much."], used(0.95)),
      how === "failed" ? fail("invalid_request_error") : rateLimited(50),
    );
    const page = await visitor.open(url);
    if (how === "cancelled") {
      await untilState(page, "will ask again for a summary");
      await page.keyboard.press("Escape");
    }
    await ending(page).getByText(says).waitFor();
    expect(await conversations.person.conversation(id)).toMatchObject({ state: { source: how } });
    await page.getByRole("button", { name: "Go on with the last requests" }).click();
    await page.getByText("Begins with an excerpt of the conversation before").click();
    await page
      .getByRole("listitem")
      .getByText(/^Write the parser\./)
      .waitFor();
  },
);
