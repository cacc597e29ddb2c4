/**
 * The whole tour by keyboard alone: not one call of the mouse. After each key the focus is on something that can be seen
 * to have it.
 */
import { join } from "node:path";
import type { Locator, Page } from "playwright-core";
import { expect } from "vitest";
import { hold } from "../../local/scripted/cues.ts";
import { say, text, toolCall } from "../../local/scripted/script.ts";
import { Conversations, on, textOf, untilState } from "./conversations.ts";
import { testWithStack } from "./stack.ts";

const test = testWithStack();

/** More Tab stops than any view here has. */
const MOST_STOPS = 80;

/** In the browser: what is wrong with the focus; null: it is on an element, and can be seen there. */
function problemOfFocus(): string | null {
  const element = document.activeElement;
  if (element === null || element === document.body) return "nothing has the focus";
  const name = `${element.tagName} ${element.ariaLabel ?? element.textContent.slice(0, 40)}`;
  const { left, right, top, bottom } = element.getBoundingClientRect();
  if (right <= 0 || bottom <= 0 || left >= innerWidth || top >= innerHeight) return `${name}: out of view`;
  // The box of the message shows the focus of its text.
  const shown = [element, element.parentElement].some((part) => {
    if (part === null) return false;
    const { outlineStyle, outlineWidth } = getComputedStyle(part);
    return outlineStyle !== "none" && parseFloat(outlineWidth) >= 1;
  });
  return shown ? null : `${name}: no outline`;
}

class Keyboard {
  readonly #page: Page;

  constructor(page: Page) {
    this.#page = page;
  }

  async press(...keys: readonly string[]): Promise<void> {
    for (const key of keys) {
      await this.#page.keyboard.press(key);
      await expect.poll(() => this.#page.evaluate(problemOfFocus), { message: `after ${key}` }).toBeNull();
    }
  }

  type(words: string): Promise<void> {
    return this.#page.keyboard.type(words);
  }

  /** Goes to it by Tab, or by Shift+Tab. */
  async goTo(target: Locator, key: "Tab" | "Shift+Tab" = "Tab"): Promise<void> {
    await target.waitFor();
    for (let stops = 0; stops < MOST_STOPS; stops++) {
      if (await hasFocus(target)) return;
      await this.press(key);
    }
    throw new Error(`${String(target)} is not among the ${MOST_STOPS} next stops.`);
  }

  async activate(target: Locator, key: "Tab" | "Shift+Tab" = "Tab"): Promise<void> {
    await this.goTo(target, key);
    await this.press("Enter");
  }
}

const hasFocus = (target: Locator): Promise<boolean> =>
  target.evaluateAll((elements) => elements.some((element) => element === document.activeElement));

const untilFocused = (target: Locator): Promise<void> =>
  expect.poll(() => hasFocus(target), { message: `${String(target)} has the focus` }).toBe(true);

/** In the browser: role and name of what has the focus. */
function focused(): string {
  const element = document.activeElement;
  if (element === null || element === document.body) return "nothing";
  const labels = element instanceof HTMLInputElement ? [...(element.labels ?? [])] : [];
  const name = element.ariaLabel ?? labels[0]?.textContent ?? element.textContent;
  return `${element.role ?? element.tagName.toLowerCase()}: ${name.trim()}`;
}

test("from nothing to an approved change: begin, read, steer, follow up, take back, stop, release, allow", async ({
  visitor,
  stack,
}) => {
  const conversations = new Conversations(stack);
  const [first, second] = [hold(), hold()];
  const file = join(stack.system.cwd, "hello.txt");
  const tag = conversations.script(
    say(text("I begin", first, ".")),
    say(text("I heard you", second, ".")),
    say(text("Now I ask."), toolCall("request_mode_upgrade", { reason: "To write hello.txt." })),
    say(toolCall("write", { path: file, content: "Hello.\n" })),
    say(text("It is written.")),
  );
  const page = await visitor.open(stack.url);
  const at = on(page);
  const keys = new Keyboard(page);

  // The box for the first message has the focus from the beginning.
  await untilFocused(page.getByRole("textbox", { name: "First message" }));
  await keys.type(`Say hello. ${tag}`);
  const directory = page.getByRole("combobox", { name: "Directory" });
  await keys.goTo(directory, "Shift+Tab");
  await expect.poll(() => directory.inputValue()).not.toBe("");
  await keys.press("Control+A");
  await keys.type(stack.system.cwd);
  await keys.activate(page.getByRole("button", { name: "Start" }));
  await untilState(page, "writes");
  await untilFocused(at.message);

  await keys.goTo(at.transcript, "Shift+Tab");
  await keys.press("Home", "PageDown", "End");
  await keys.goTo(at.message);
  await keys.type("But first this.");
  await keys.press("Enter");
  await at.waiting.getByText("But first this.").waitFor();
  first.release();
  await at.transcript.getByText("I heard you").waitFor();
  await at.transcript.getByText("But first this.").waitFor();

  await keys.activate(page.getByRole("button", { name: "Afterwards" }));
  await keys.goTo(at.message, "Shift+Tab");
  for (const message of ["Then that.", "And never this."]) {
    await keys.type(message);
    await keys.press("Enter");
    await at.waiting.getByText(message).waitFor();
  }
  await keys.activate(page.getByRole("button", { name: "Take back: And never this." }), "Shift+Tab");
  await at.waiting.getByText("And never this.").waitFor({ state: "detached" });
  await untilFocused(at.message);

  await keys.press("Escape");
  await at.waiting.getByText("Held since you stopped the agent.").waitFor();
  await untilState(page, "ready");
  await keys.activate(page.getByRole("button", { name: "Let them go on" }), "Shift+Tab");
  await at.deny.waitFor();
  await untilFocused(at.message);

  await keys.goTo(at.allow, "Shift+Tab");
  // A press counts only when the card has been there for a moment.
  await expect
    .poll(async () => {
      if (await hasFocus(at.allow)) await keys.press("Enter");
      return at.allow.count();
    })
    .toBe(0);
  await untilFocused(at.message);
  await at.transcript.getByText("It is written.").waitFor();
  const said = await textOf(page);
  expect(said.indexOf("But first this.")).toBeLessThan(said.indexOf("Then that."));
  expect(said).not.toContain("And never this.");
});

test("reading: groups, diffs, the requests and back, and the links between conversations", async ({
  visitor,
  stack,
}) => {
  const conversations = new Conversations(stack);
  const child = conversations.script(say(toolCall("submit_result", { result: "Forty-two." })));
  const { id, url } = await conversations.start(
    "Read and write.",
    say(text("I look."), toolCall("ls", { path: "." }), toolCall("find", { pattern: "*.ts" })),
    say(toolCall("spawn_agents", { tasks: [{ task: `Compute it ${child}` }] })),
    say(toolCall("request_mode_upgrade", { reason: "To write." })),
    say(toolCall("write", { path: "read.txt", content: "one\ntwo\n" })),
    say(text("Done with it.")),
  );
  const page = await visitor.open(url);
  const at = on(page);
  const keys = new Keyboard(page);
  await at.allow.waitFor();
  await keys.press("Tab", "Enter");
  await untilFocused(at.message);
  // The shortcut works while one writes, and takes nothing of what is written.
  await keys.type("A draft.");
  await expect
    .poll(async () => {
      await keys.press("Control+Shift+A");
      return conversations.person.stateOf(id);
    })
    .not.toBe("awaiting_mode_approval");
  await at.transcript.getByText("Done with it.").waitFor();
  await untilFocused(at.message);
  expect(await at.message.inputValue()).toBe("A draft.");

  const changed = page.getByRole("region", { name: "Change of read.txt" });
  const group = page.getByRole("button", { name: "Changed 1 file" });
  await changed.waitFor();
  await keys.activate(group, "Shift+Tab");
  await changed.waitFor({ state: "detached" });
  await keys.press("Enter");
  await changed.getByText("two").waitFor();
  await keys.goTo(page.getByRole("button", { name: "Looked at 2 places" }), "Shift+Tab");
  await keys.press("Space");
  await page.getByRole("region", { name: "Looked at 2 places" }).getByText("*.ts").waitFor();

  const requests = page.getByRole("link", { name: "Requests" });
  await keys.activate(requests, "Shift+Tab");
  await untilFocused(requests);
  await keys.activate(page.getByRole("table").getByRole("button", { name: "1", exact: true }));
  await page.getByRole("heading", { name: "What it answered" }).waitFor();
  await keys.activate(page.getByRole("link", { name: "Steps" }), "Shift+Tab");
  await at.transcript.getByText("Done with it.").waitFor();

  await keys.activate(page.getByRole("link", { name: /^Compute it/ }));
  await page.getByText("A sub-agent takes no messages.").waitFor();
  await keys.activate(at.transcript.getByRole("link", { name: "Read and write." }));
  await at.transcript.getByText("Done with it.").waitFor();
  await untilFocused(at.message);
});

test("the list: its menu, a new title, archive and delete, each with its way back", async ({
  visitor,
  stack,
}) => {
  const conversations = new Conversations(stack);
  const { id, url } = await conversations.start("Old title", say(text("Well", hold(), ".")));
  const page = await visitor.open(url);
  const at = on(page);
  const keys = new Keyboard(page);
  await untilState(page, "writes");
  const more = (title: string) => page.getByRole("button", { name: `More about ${title}` });
  const item = (name: string) => page.getByRole("menuitem", { name });

  await keys.activate(more("Old title"));
  await untilFocused(item("Rename"));
  await keys.press("ArrowUp");
  await untilFocused(item("Delete"));
  await keys.press("Home", "ArrowDown");
  await untilFocused(item("Archive"));
  // This Escape is for the menu, not for the agent.
  await keys.press("Escape");
  await item("Archive").waitFor({ state: "hidden" });
  await untilFocused(more("Old title"));

  await keys.press("Enter");
  await untilFocused(item("Rename"));
  await keys.press("Enter");
  await untilFocused(page.getByRole("textbox", { name: "Title" }));
  await keys.type("New title");
  await keys.press("Enter");
  const entry = at.list.getByRole("link", { name: /New title/ });
  await untilFocused(entry);
  expect(stack.requests).toContain(`PATCH /api/conversations/${id}`);
  expect(stack.requests).not.toContain(`POST /api/conversations/${id}/cancel`);

  for (const [downs, isDone] of [
    [["ArrowDown"], "“New title” is archived."],
    [["ArrowDown", "ArrowDown"], "“New title” will be deleted with its sub-agents."],
  ] as const) {
    await keys.activate(more("New title"));
    await untilFocused(item("Rename"));
    await keys.press(...downs, "Enter");
    await page.getByText(isDone).waitFor();
    // It comes to the person, who could not reach it in time.
    await untilFocused(page.getByRole("button", { name: "Undo" }));
    await entry.waitFor({ state: "detached" });
    await keys.press("Enter");
    await untilFocused(at.list);
    await entry.waitFor();
  }
});

test("the order of the stops is that of the page, and its first one skips the list", async ({
  visitor,
  stack,
}) => {
  const conversations = new Conversations(stack);
  const { id, url } = await conversations.start(
    "Ask for more.",
    say(text("I look."), toolCall("ls", { path: "." })),
    say(toolCall("request_mode_upgrade", { reason: "To write." })),
  );
  await conversations.person.untilState(id, "awaiting_mode_approval");
  await conversations.person.say(id, { text: "Then that.", delivery: "followUp" });
  const page = await visitor.open(url);
  const at = on(page);
  const keys = new Keyboard(page);
  await at.waiting.waitFor();
  await keys.press("Tab", "Enter");
  await untilFocused(at.message);

  await page.reload();
  await at.waiting.waitFor();
  const stops: string[] = [];
  const step = async () => {
    await keys.press("Tab");
    stops.push(await page.evaluate(focused));
  };
  while (!(await hasFocus(at.list.getByRole("searchbox")))) await step();
  // The conversations of other tests are in the list, too.
  await keys.type("Ask for more");
  await expect.poll(() => at.list.getByRole("button").count()).toBe(1);
  while (!(await hasFocus(at.stop))) await step();
  expect(stops).toEqual([
    "a: Skip to the message",
    "a: Bedrock",
    "a: New",
    "input: Search conversations",
    expect.stringMatching(/^a: Ask for more\./),
    "button: More about Ask for more.",
    "input: Show archived",
    "input: Notify me",
    "a: API",
    "a: Steps",
    "a: Requests",
    expect.stringMatching(/^region: Conversation/),
    expect.stringMatching(/^button: ▸ Listed a directory/),
    "button: Deny",
    "button: Allow",
    "button: Send now",
    "button: Take back: Then that.",
    "textarea: Message",
    "button: Add images",
    "button: Steer",
    "button: Afterwards",
    "button: Stop Esc",
  ]);
});

test("what goes by itself takes no focus along: a decision of somebody else, a list that sorts itself anew", async ({
  visitor,
  stack,
}) => {
  const conversations = new Conversations(stack);
  const other = await conversations.start("The other one", say("Ready."), say("Ready again."));
  await conversations.person.untilState(other.id, "idle");
  const { id, url } = await conversations.start(
    "Who decides?",
    say(toolCall("request_mode_upgrade", { reason: "To write." })),
    say(text("I go on.")),
  );
  const page = await visitor.open(url);
  const at = on(page);
  const keys = new Keyboard(page);
  await keys.goTo(at.deny);
  const { state } = (await conversations.person.conversation(id)) as { state: { toolCall: { id: string } } };
  const decision = { decision: "deny", toolCallId: state.toolCall.id };
  await conversations.person.order("POST", `/api/conversations/${id}/approval`, decision);
  await at.transcript.getByText("I go on.").waitFor();
  // Not the box for a message: the key that was meant for the card would send a draft.
  await untilFocused(at.transcript);

  const entry = at.list.getByRole("link", { name: /Who decides\?/ });
  await keys.goTo(entry, "Shift+Tab");
  await conversations.person.say(other.id, { text: "Go on." });
  await expect
    .poll(async () => {
      const titles = await at.list.getByRole("link", { name: /The other one|Who decides/ }).allTextContents();
      return titles.map((title) => title.startsWith("The other one"));
    })
    .toEqual([true, false]);
  await untilFocused(entry);
});

test("at 200 % the list is behind a button: it takes the focus, and gives it back", async ({
  visitor,
  stack,
}) => {
  const conversations = new Conversations(stack);
  const { url } = await conversations.start("A small window", say("Ready."));
  const small = await visitor.another({ viewport: { width: 640, height: 360 } });
  const page = await visitor.open(url, small);
  const at = on(page);
  const keys = new Keyboard(page);
  await untilState(page, "ready");
  const open = page.getByRole("button", { name: "Show the list of conversations" });
  await keys.activate(open);
  await untilFocused(at.list);
  await keys.activate(page.getByRole("button", { name: "Close the list" }));
  await at.list.waitFor({ state: "hidden" });
  await untilFocused(at.message);
  await keys.activate(open, "Shift+Tab");
  await keys.activate(at.list.getByRole("link", { name: /A small window/ }));
  await untilFocused(at.message);
});

testWithStack({ apiToken: "the-token-of-this-test" })(
  "the token is asked for once, and then the focus is in the first message",
  async ({ visitor, stack }) => {
    visitor.tolerate(/status of 401/);
    const page = await visitor.open(stack.url);
    const keys = new Keyboard(page);
    await untilFocused(page.getByLabel("Token"));
    await keys.type("the-token-of-this-test");
    await keys.press("Enter");
    await untilFocused(page.getByRole("textbox", { name: "First message" }));
  },
);
