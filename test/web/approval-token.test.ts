/**
 * A server where callers without a token may talk, and not approve, as `npm start` is: the page asks for the token with
 * the decision, takes it from the link that `npm start` shows, and keeps it for its tab.
 */
import type { Page } from "playwright-core";
import { expect } from "vitest";
import { say, text, toolCall } from "../../local/scripted/script.ts";
import { axeFindings } from "./axe.ts";
import { Conversations, decide, on, press, untilState } from "./conversations.ts";
import { testWithStack } from "./stack.ts";

const TOKEN = "A-token+of/the~owner.0123456789==";
const test = testWithStack({ apiToken: TOKEN, anonymousRole: "talk" });

const asks = () => say(toolCall("request_mode_upgrade", { reason: "I have to write a file." }));

const question = (page: Page) => ({
  token: page.getByLabel("Your token"),
  go: page.getByRole("button", { name: "Decide with it" }),
  back: page.getByRole("button", { name: "Not now" }),
  problem: page.getByRole("alert"),
});

test("the page asks for the token where a decision needs it, says that one is wrong, and keeps the right one for its tab", async ({
  visitor,
  stack,
}) => {
  const conversations = new Conversations(stack);
  const { id, url } = await conversations.start(
    "Begin.",
    asks(),
    say(text("Thanks.")),
    asks(),
    say(text("Again.")),
  );
  visitor.tolerate(/status of 40[13]/);
  const page = await visitor.open(url);
  await untilState(page, "waits for you");
  await press(page, "allow");
  const ask = question(page);
  await ask.token.waitFor();
  expect(await ask.token.evaluate((element) => element === document.activeElement)).toBe(true);
  expect(await ask.token.getAttribute("type")).toBe("password");
  expect(await ask.go.isDisabled()).toBe(true);
  expect(await axeFindings(page)).toEqual([]);
  await ask.token.fill("wrong");
  await ask.go.click();
  await expect.poll(() => ask.problem.innerText()).not.toBe("");
  expect(await conversations.person.stateOf(id)).toBe("awaiting_mode_approval");
  await ask.back.click();
  await press(page, "allow");
  await ask.token.fill(` ${TOKEN} `);
  await page.keyboard.press("Enter");
  await untilState(page, /^UNRESTRICTED/);
  await on(page).transcript.getByText("Thanks.").waitFor();
  expect(page.url()).toBe(url);
  expect(await page.evaluate(() => JSON.stringify([localStorage, document.cookie]))).not.toContain(TOKEN);

  await page.getByRole("button", { name: "Restrict again" }).click();
  await untilState(page, /^RESTRICTED/);
  await page.reload();
  await on(page).message.fill("Once more.");
  await on(page).send.click();
  await untilState(page, "waits for you");
  await decide(page, "allow");
  await on(page).transcript.getByText("Again.").waitFor();
});

test("to deny needs no token", async ({ visitor, stack }) => {
  const conversations = new Conversations(stack);
  const { url } = await conversations.start("Begin.", asks(), say(text("Then I do without.")));
  const page = await visitor.open(url);
  await decide(page, "deny");
  await on(page).transcript.getByText("Then I do without.").waitFor();
  await untilState(page, /^RESTRICTED/);
});

test("the link that npm start shows gives the tab its token: at once, in a tab that is open, too; no address keeps it", async ({
  visitor,
  stack,
}) => {
  const conversations = new Conversations(stack);
  const link = `${stack.url}/#token=${encodeURIComponent(TOKEN)}`;
  for (const isOpen of [false, true]) {
    const { url } = await conversations.start("Begin.", asks(), say(text("Thanks.")));
    const page = await visitor.open(isOpen ? url : link, await visitor.another());
    // A link in the bar of a tab that is open changes nothing but the hash.
    if (isOpen) await page.evaluate((hash) => void (location.hash = hash), new URL(link).hash);
    else await page.getByRole("heading", { name: "New conversation" }).waitFor();
    await expect.poll(() => page.url()).not.toContain("token");
    if (!isOpen) await page.goto(url);
    await untilState(page, "waits for you");
    await decide(page, "allow");
    await on(page).transcript.getByText("Thanks.").waitFor();
    await untilState(page, /^UNRESTRICTED/);
    // Neither does the history of the browser.
    for (let step = 0; step < 3; step++) {
      await page.goBack({ timeout: 2_000 }).catch(() => null);
      expect(page.url()).not.toContain("token");
    }
  }
});
