/** A conversation of thousands of messages: what is on the page of it, from the last message up to the very first. */
import type { Page } from "playwright-core";
import { expect } from "vitest";
import { hold } from "../../local/scripted/cues.ts";
import { say, text } from "../../local/scripted/script.ts";
import { CALLS_A_TURN, MESSAGES_A_TURN, storeLong } from "../support/long-conversation.ts";
import { Conversations, on, untilState } from "./conversations.ts";
import { testWithStack, type Stack } from "./stack.ts";

const SLOW = 180_000;
const MESSAGES = 5_000;
const TURNS = MESSAGES / MESSAGES_A_TURN;
/** The page's goal (docs/performance.md). */
const MOUNTED = 150;

const test = testWithStack();

const store = ({ system }: Stack, title: string, turns: number) =>
  storeLong(system.db, { title, host: system.config.toolHost, cwd: system.cwd, turns });

/** Rows have no role of their own: what is in them has. */
const rows = (page: Page) => on(page).transcript.locator(".row");

/** Goes to the beginning as a person does, and calls `look` on the way. */
async function toTheFirst(page: Page, first: string, look: () => Promise<void>): Promise<void> {
  const { transcript } = on(page);
  await transcript.focus();
  while (!(await transcript.getByText(first).isVisible())) {
    await page.keyboard.press("Home");
    await look();
  }
}

test(
  "of 5,000 messages with 3,000 calls few rows are mounted, from the last one up to the very first",
  async ({ visitor, stack }) => {
    expect(TURNS * CALLS_A_TURN).toBe(3_000);
    const { id, first, last } = await store(stack, "a long one", TURNS);
    const page = await visitor.open(`${stack.url}/c/${id}`);
    await on(page).transcript.getByText(last).waitFor();
    let most = 0;
    let loaded = 0;
    page.on("request", (request) => (loaded += Number(request.url().includes("/messages?"))));
    const count = async (): Promise<void> => {
      most = Math.max(most, await rows(page).count());
    };
    await toTheFirst(page, first, count);
    expect(most).toBeGreaterThan(3);
    expect(most).toBeLessThanOrEqual(MOUNTED);
    // Each message was asked for once: the last hundred came by themselves.
    expect(loaded).toBe(MESSAGES / 100 - 1);

    // All of it stays: the way back to the end, and to the beginning again, asks for nothing.
    await page.getByRole("button", { name: "To the end" }).click();
    await on(page).transcript.getByText(last).waitFor();
    await toTheFirst(page, first, count);
    expect(loaded).toBe(MESSAGES / 100 - 1);
    expect(most).toBeLessThanOrEqual(MOUNTED);
  },
  SLOW,
);

test(
  "a long conversation goes on: what is written now stands at its end, few rows are mounted",
  async ({ visitor, stack }) => {
    const conversations = new Conversations(stack);
    const { id, last } = await store(stack, "another long one", 60);
    const page = await visitor.open(`${stack.url}/c/${id}`);
    await on(page).transcript.getByText(last).waitFor();
    const held = hold();
    const tag = conversations.script(say(text("It goes on, ", held, "and on.")));
    await on(page).message.fill(`And now? ${tag}`);
    await on(page).send.click();
    await on(page).transcript.getByText("It goes on,").waitFor();
    expect(await rows(page).count()).toBeLessThanOrEqual(MOUNTED);
    held.release();
    await on(page).transcript.getByText("It goes on, and on.").waitFor();
    await untilState(page, "ready");
    expect(await on(page).transcript.getByText("It goes on, and on.").count()).toBe(1);
  },
  SLOW,
);
