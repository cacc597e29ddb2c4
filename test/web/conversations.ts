/** Owns: what a test of the page needs of conversations: making them, and where things are on the page. */
import { randomUUID } from "node:crypto";
import type { Page } from "playwright-core";
import { expect } from "vitest";
import type { Answer as Scripted } from "../../local/scripted/script.ts";
import { Person } from "../api/person.ts";
import type { Stack } from "./stack.ts";

export class Conversations {
  readonly person: Person;
  readonly #stack: Stack;

  constructor(stack: Stack) {
    this.#stack = stack;
    this.person = new Person(stack.api, stack.system.cwd);
  }

  /** A tag that makes the model answer with these, one for each request. */
  script(...answers: readonly Scripted[]): string {
    return this.#stack.system.model.script(randomUUID(), [...answers]);
  }

  /** A conversation whose first message gets these answers. */
  async start(
    text: string,
    ...answers: readonly Scripted[]
  ): Promise<{ readonly id: string; readonly url: string }> {
    const tag = this.script(...answers);
    const id = await this.person.create({ title: text, message: { text: `${text} ${tag}` } });
    return { id, url: `${this.#stack.url}/c/${id}` };
  }
}

/** Where things are, by the names that a person sees or hears. */
export const on = (page: Page) => ({
  message: page.getByRole("textbox", { name: "Message" }),
  send: page.getByRole("button", { name: /^Send/ }),
  stop: page.getByRole("button", { name: /^Stop/ }),
  allow: page.getByRole("button", { name: /^Allow(ing …)?$/ }),
  deny: page.getByRole("button", { name: "Deny" }),
  state: page.getByRole("group", { name: "State" }),
  transcript: page.getByRole("region", { name: "Conversation" }),
  list: page.getByRole("navigation", { name: "Conversations" }),
  waiting: page.getByRole("group", { name: "Messages that wait" }),
});

/** Waits until the state line has this. */
export const untilState = (page: Page, words: string | RegExp): Promise<void> =>
  on(page).state.filter({ hasText: words }).waitFor({ timeout: 20_000 });

/** All that the conversation says, in its order. */
export const textOf = (page: Page): Promise<string> => on(page).transcript.innerText();

/** Once the page has put in a place to begin: a text that comes in the same moment would be added to it. */
export async function chooseDirectory(page: Page, path: string): Promise<void> {
  const directory = page.getByLabel("Directory");
  await expect.poll(() => directory.inputValue()).toMatch(/^\//);
  await directory.fill(path);
}

/** Presses a button of the approval, as soon as the card takes it. It stays where the decision is refused. */
export async function press(page: Page, button: "allow" | "deny"): Promise<void> {
  // Pages in the background are slow to draw.
  await page.bringToFront();
  const pressed = on(page)[button];
  // A click that has to wait scrolls about.
  await expect.poll(() => pressed.isEnabled()).toBe(true);
  await pressed.click();
}

/** The same, until the decision is made. */
export async function decide(page: Page, button: "allow" | "deny"): Promise<void> {
  await press(page, button);
  await on(page)[button].waitFor({ state: "detached" });
}
