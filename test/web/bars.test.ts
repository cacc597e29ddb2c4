/** What the page promises whatever happens (docs/web.md): approvals, lost connections, many tabs. */
import { expect, vi } from "vitest";
import { hold } from "../../local/scripted/cues.ts";
import { say, text, toolCall } from "../../local/scripted/script.ts";
import { Conversations, decide, on, textOf, untilState } from "./conversations.ts";
import { testWithStack } from "./stack.ts";

const test = testWithStack();

const asks = () => say(text("I ask."), toolCall("request_mode_upgrade", { reason: "I want to write." }));

test("an approval that comes while one types: nothing that is typed approves, and no character is lost", async ({
  visitor,
  stack,
}) => {
  const conversations = new Conversations(stack);
  const held = hold();
  const { id, url } = await conversations.start(
    "Begin.",
    say(text("Well", held, "."), toolCall("request_mode_upgrade", { reason: "To write." })),
  );
  const page = await visitor.open(url);
  const at = on(page);
  await untilState(page, "writes");
  await at.message.click();
  const keys = ["y", "1", " ", "a", "Y", "Shift+Enter", "o", "k"];
  let typed = "";
  for (let n = 0; n < 300; n++) {
    const key = keys[n % keys.length] ?? "y";
    await page.keyboard.press(key);
    typed += key === "Shift+Enter" ? "\n" : key;
    if (n === 100) held.release();
  }
  await at.allow.waitFor();
  expect(await at.message.inputValue()).toBe(typed);
  expect(await conversations.person.stateOf(id)).toBe("awaiting_mode_approval");
  // Enter sends what was typed, as a steer; it decides nothing.
  await page.keyboard.press("Enter");
  await at.waiting.waitFor();
  expect(await conversations.person.stateOf(id)).toBe("awaiting_mode_approval");
  await decide(page, "deny");
});

test("a press on what stood there before the card decides nothing", async ({ visitor, stack }) => {
  const conversations = new Conversations(stack);
  await visitor.context.addInitScript(() => {
    const observer = new MutationObserver(() => {
      const buttons = document.querySelectorAll<HTMLButtonElement>(".approve button");
      if (buttons.length === 0) return;
      observer.disconnect();
      for (const button of buttons) button.click();
      Object.assign(globalThis, { pressed: true });
    });
    observer.observe(document, { childList: true, subtree: true });
  });
  const { id, url } = await conversations.start("Press at once.", asks(), say(text("I go on.")));
  const page = await visitor.open(url);
  await page.waitForFunction(() => "pressed" in globalThis);
  await expect.poll(() => on(page).allow.isEnabled()).toBe(true);
  expect(await conversations.person.stateOf(id)).toBe("awaiting_mode_approval");
  await decide(page, "deny");
  await on(page).transcript.getByText("I go on.").waitFor();
});

test("text that streams comes also while somebody types without a pause", async ({ visitor, stack }) => {
  const conversations = new Conversations(stack);
  const [first, second] = [hold(), hold()];
  const { url } = await conversations.start("Begin.", say(text("Early,", first, " late,", second, " over.")));
  const page = await visitor.open(url);
  const at = on(page);
  await at.transcript.getByText("Early,").waitFor();
  await at.message.click();
  let typed = "";
  const type = async (): Promise<void> => {
    await page.keyboard.press("k");
    typed += "k";
  };
  while (typed.length < 20) await type();
  first.release();
  while (!(await at.transcript.getByText("late,").isVisible())) await type();
  expect(await at.message.inputValue()).toBe(typed);
  second.release();
  await at.transcript.getByText("over.").waitFor();
});

test("a pending approval is in list, title and icon; decided elsewhere, it closes by itself", async ({
  visitor,
  stack,
}) => {
  const conversations = new Conversations(stack);
  const { id } = await conversations.start("Ask me.", asks(), say(text("I go on.")));
  const page = await visitor.open(stack.url);
  await on(page).list.getByRole("heading", { name: "Waits for you" }).waitFor();
  await vi.waitFor(async () => {
    expect(await page.title()).toBe("● Approval needed — Ask me.");
    expect(await page.locator("link[rel=icon]").getAttribute("href")).toBe("/icon-waiting.svg");
  });
  await on(page)
    .list.getByRole("link", { name: /Ask me\./ })
    .click();
  await on(page).deny.waitFor();
  const { state } = (await conversations.person.conversation(id)) as { state: { toolCall: { id: string } } };
  const decision = { decision: "deny", toolCallId: state.toolCall.id };
  await conversations.person.order("POST", `/api/conversations/${id}/approval`, decision);
  await on(page).deny.waitFor({ state: "detached" });
  await on(page).transcript.getByText("I go on.").waitFor();
  await vi.waitFor(async () => expect(await page.title()).toBe("Ask me."));
});

test("who wants it gets a notification of an approval while they look elsewhere, once; a click leads there", async ({
  visitor,
  stack,
}) => {
  const conversations = new Conversations(stack);
  await visitor.context.addInitScript(() => {
    let isHidden = false;
    let permission = "default";
    const shown: { title: string; body: string; onclick: () => void }[] = [];
    class Shown {
      static get permission() {
        return permission;
      }
      static requestPermission() {
        permission = Reflect.get(globalThis, "answer") === "block" ? "denied" : "granted";
        return Promise.resolve(permission);
      }
      onclick = (): void => undefined;
      constructor(title: string, { body }: { body: string }) {
        shown.push({ title, body, onclick: () => this.onclick() });
      }
    }
    Object.defineProperty(document, "hidden", { get: () => isHidden });
    Object.assign(globalThis, {
      Notification: Shown,
      shown,
      hide: (hides: boolean) => {
        isHidden = hides;
        document.dispatchEvent(new Event("visibilitychange"));
      },
    });
  });
  const page = await visitor.open(stack.url);
  const shown = () => page.evaluate<[string, string][]>("shown.map(({ title, body }) => [title, body])");
  const wish = on(page).list.getByRole("checkbox", { name: "Notify me" });
  const asked = async (title: string): Promise<void> => {
    const { id } = await conversations.start(title, asks(), say(text("I go on.")));
    await on(page).list.getByRole("link", { name: title }).waitFor();
    await conversations.person.untilState(id, "awaiting_mode_approval");
    await vi.waitFor(async () => expect(await page.title()).toContain("●"));
  };

  // The browser blocks it: it is said, and nothing is switched on.
  await page.evaluate("answer = 'block'");
  await wish.click();
  await page.getByText("The browser blocks notifications").waitFor();
  expect(await wish.isChecked()).toBe(false);
  await page.evaluate("answer = 'allow'");
  await wish.click();
  await expect.poll(() => wish.isChecked()).toBe(true);

  // In sight, the page itself says it.
  await asked("Ask in sight.");
  await page.evaluate("hide(true)");
  await asked("Ask out of sight.");
  await expect.poll(shown).toEqual([["Approval needed: Ask out of sight.", expect.any(String)]]);
  await page.evaluate("hide(false)");
  await page.evaluate("shown[0].onclick()");
  await on(page).deny.waitFor();
  await page.getByRole("heading", { name: "Ask out of sight." }).waitFor();
  await wish.click();
  await expect.poll(() => wish.isChecked()).toBe(false);
  await page.evaluate("hide(true)");
  await asked("Not wanted any more.");
  await on(page).list.getByRole("link", { name: "Not wanted any more." }).waitFor();
  expect(await shown()).toHaveLength(1);
});

test("connections that break in the middle of an answer: the text goes on, nothing is missing or doubled", async ({
  visitor,
  stack,
}) => {
  const conversations = new Conversations(stack);
  const words = Array.from({ length: 12 }, (_, n) => `word${n} `);
  const holds = words.map(() => hold());
  const { url } = await conversations.start(
    "Speak.",
    say(text(...words.flatMap((word, n) => [word, holds[n] ?? ""]))),
  );
  visitor.tolerate(/ERR_|Failed to load/);
  const page = await visitor.open(url);
  let shown = "";
  for (const [n, word] of words.entries()) {
    await on(page).transcript.getByText(word.trim()).waitFor({ timeout: 20_000 });
    const now = await textOf(page);
    expect(now.includes(shown)).toBe(true);
    shown = words
      .slice(0, n + 1)
      .join("")
      .trim();
    if (n % 3 === 0) stack.network.drop();
    if (n === 7) await page.reload();
    holds[n]?.release();
  }
  await untilState(page, "ready");
  expect((await textOf(page)).split("word0 ")).toHaveLength(2);
  await on(page).transcript.getByText(words.join("").trim()).waitFor();
});

test("twelve tabs are all live, with one stream", async ({ visitor, stack }) => {
  const conversations = new Conversations(stack);
  const { url } = await conversations.start("Begin.", say(text("First.")), say(text("Second.")));
  const before = stack.requests.filter((request) => request === "GET /api/stream").length;
  const tabs = await Promise.all(Array.from({ length: 12 }, () => visitor.open(url)));
  for (const tab of tabs) await on(tab).transcript.getByText("First.").waitFor();
  const [first] = tabs;
  if (first === undefined) throw new Error("There are no tabs.");
  await on(first).message.fill("Go on.");
  await on(first).send.click();
  for (const tab of tabs) await on(tab).transcript.getByText("Second.").waitFor();
  const streams = stack.requests.filter((request) => request === "GET /api/stream").length - before;
  expect(streams).toBeLessThanOrEqual(2);
});

test("Stop while the server cannot be reached: it is said at once, and sent as soon as it can be", async ({
  visitor,
  stack,
}) => {
  const conversations = new Conversations(stack);
  const { id, url } = await conversations.start("Begin.", say(text("Well", hold(), ".")));
  visitor.tolerate(/ERR_|Failed to load/);
  const page = await visitor.open(url);
  await untilState(page, "writes");
  await stack.network.cut();
  await page.keyboard.press("Escape");
  await untilState(page, "stopping");
  await page.getByText("Stop is sent as soon as it can.").waitFor();
  expect(await conversations.person.stateOf(id)).toBe("llm_requesting");
  await stack.network.mend();
  await vi.waitFor(async () => expect(await conversations.person.stateOf(id)).toBe("idle"), 20_000);
  await untilState(page, "ready");
});
