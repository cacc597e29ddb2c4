/**
 * A reload in each state of a conversation (docs/machine.md, State): the page shows the same as before, and so does
 * another device; and the conversation goes on from there to its end.
 */
import type { Page } from "playwright-core";
import { expect } from "vitest";
import type { Answer } from "../../local/scripted/script.ts";
import { Conversations, on, textOf, untilState } from "./conversations.ts";
import { testWithStack, type Stack } from "./stack.ts";
import { WAYS } from "./states.ts";

const test = testWithStack();

/** A person watches each conversation from its beginning, so their page knows it by events and not by a snapshot. */
class Watched extends Conversations {
  readonly #stack: Stack;
  readonly #watch: (url: string) => Promise<unknown>;

  constructor(stack: Stack, watch: (url: string) => Promise<unknown>) {
    super(stack);
    this.#stack = stack;
    this.#watch = watch;
  }

  override async start(text: string, ...answers: readonly Answer[]) {
    const tag = this.script(...answers);
    const id = await this.person.create({ title: text });
    const url = `${this.#stack.url}/c/${id}`;
    await this.#watch(url);
    await this.person.say(id, { text: `${text} ${tag}` });
    return { id, url };
  }
}

/** What a person sees of a conversation; clocks are stopped. */
async function shownOn(page: Page): Promise<string> {
  const main = page.getByRole("main");
  const parts = await Promise.all([
    page.title(),
    textOf(page),
    on(page).waiting.or(page.getByText("A sub-agent takes no messages.")).allInnerTexts(),
    main.getByRole("button").allInnerTexts(),
    on(page).state.innerText(),
  ]);
  return parts
    .flat()
    .join("\n")
    .replaceAll(/(\d[\d.]* (ms|s|m|h)\b ?)+/g, "⌛ ");
}

test.for(Object.keys(WAYS))("a reload in the state %s", async (name, { visitor, stack }) => {
  const enter = WAYS[name];
  if (enter === undefined) throw new Error(name);
  const page = await visitor.open(stack.url);
  const conversations = new Watched(stack, async (url) => {
    await page.goto(url);
    await untilState(page, "ready");
  });
  const met = await enter({ stack, conversations });
  // A sub-agent's page can be opened only when there is one.
  if (page.url() !== met.url) await page.goto(met.url);
  await untilState(page, met.says);
  await expect.poll(() => shownOn(page)).toContain("connected");
  for (const text of met.shows) await expect.poll(() => page.getByRole("main").innerText()).toContain(text);
  const before = await shownOn(page);

  const device = await visitor.another();
  const [elsewhere] = await Promise.all([visitor.open(met.url, device), page.reload()]);
  for (const each of [page, elsewhere]) await expect.poll(() => shownOn(each).catch(() => "")).toBe(before);

  await met.goOn(page);
  await on(page).transcript.getByText(met.ends.shows).first().waitFor();
  await untilState(page, met.ends.says);
});
