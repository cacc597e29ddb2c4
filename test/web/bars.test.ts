/** What the page promises whatever happens (docs/web.md): approvals, lost connections, many tabs. */
import { expect, vi } from "vitest";
import { hold } from "../../local/scripted/cues.ts";
import { say, text, toolCall } from "../../local/scripted/script.ts";
import { Conversations, on, textOf, untilState } from "./conversations.ts";
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
  expect(await conversations.stateOf(id)).toBe("awaiting_mode_approval");
  // Enter sends what was typed, as a steer; it decides nothing.
  await page.keyboard.press("Enter");
  await at.waiting.waitFor();
  expect(await conversations.stateOf(id)).toBe("awaiting_mode_approval");
  await at.deny.click();
  await at.deny.waitFor({ state: "detached" });
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
  expect(await conversations.stateOf(id)).toBe("llm_requesting");
  await stack.network.mend();
  await vi.waitFor(async () => expect(await conversations.stateOf(id)).toBe("idle"), 20_000);
  await untilState(page, "ready");
});
