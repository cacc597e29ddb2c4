/** A conversation on the page, as a person sees it and works in it. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import sharp from "sharp";
import { expect, vi } from "vitest";
import { hold } from "../../local/scripted/cues.ts";
import { fail, rateLimited, say, text, thinking, toolCall } from "../../local/scripted/script.ts";
import { Conversations, decide, on, textOf, untilState } from "./conversations.ts";
import { testWithStack } from "./stack.ts";

const test = testWithStack();

/** In the browser: messages whose images are stored. */
const countKeptImages = (): Promise<number> =>
  new Promise((resolve, reject) => {
    const opening = indexedDB.open("keyval-store");
    opening.onerror = () => reject(new Error("The database cannot be opened."));
    opening.onsuccess = () => {
      const count = opening.result.transaction("keyval").objectStore("keyval").count();
      count.onsuccess = () => resolve(count.result);
    };
  });

test("an answer shows as it is written, its thinking folded; it becomes the stored one without a change", async ({
  visitor,
  stack,
}) => {
  const conversations = new Conversations(stack);
  const held = hold();
  const { url } = await conversations.start(
    "Count.",
    say(thinking(["Secretly ", "thought."]), text("One, **two**, ", held, "three.")),
  );
  const page = await visitor.open(url);
  await on(page).transcript.getByText("One, two,").waitFor();
  await untilState(page, "writes");
  const thought = page.getByRole("button", { name: /Thought|Thinks/ });
  expect(await thought.getAttribute("aria-expanded")).toBe("false");
  await thought.click();
  expect(await thought.getAttribute("aria-expanded")).toBe("true");
  held.release();
  await on(page).transcript.getByText("One, two, three.").waitFor();
  await untilState(page, "ready");
  await page.locator(".stop").filter({ hasText: "done" }).waitFor();
  // It is the same element, still open.
  expect(await thought.getAttribute("aria-expanded")).toBe("true");
  expect((await textOf(page)).match(/One, two, three\./g)).toHaveLength(1);
});

test("tool calls stand in groups; what runs shows its output, what changed a file shows the change", async ({
  visitor,
  stack,
}) => {
  const conversations = new Conversations(stack);
  const file = join(stack.system.cwd, "notes.txt");
  const { id, url } = await conversations.start(
    "Work.",
    say(text("I look."), toolCall("ls", { path: "." }), toolCall("read", { path: "missing.txt" })),
    say(toolCall("bash", { command: "echo first; sleep 60; echo last" })),
    say(text("Stopped.")),
    say(toolCall("request_mode_upgrade", { reason: "To write." })),
    say(toolCall("write", { path: file, content: "one\ntwo\n" })),
    say(text("Written.")),
  );
  const page = await visitor.open(url);
  const at = on(page);
  const running = page.getByRole("region", { name: "Runs 1 command" });
  await running.getByText("first", { exact: true }).waitFor();
  await page.getByRole("region", { name: "Looked at 2 places" }).getByText("failed").first().waitFor();
  await at.stop.click();
  await untilState(page, "ready");
  await page.getByRole("region", { name: "Ran 1 command" }).getByText("cancelled").first().waitFor();
  expect(await conversations.person.stateOf(id)).toBe("idle");

  await at.message.fill("Go on.");
  await page.keyboard.press("Enter");
  await untilState(page, "ready");
  await at.message.fill("And write.");
  await at.send.click();
  await decide(page, "allow");
  const changed = page.getByRole("region", { name: "Changed 1 file" });
  await changed.getByText("two").waitFor();
  await on(page).transcript.getByText("Written.").waitFor();
  expect(await readFile(file, "utf8")).toBe("one\ntwo\n");
  await at.state.getByText("UNRESTRICTED").waitFor();
  await page.getByRole("button", { name: "Restrict again" }).click();
  await at.state.getByText("RESTRICTED", { exact: true }).waitFor();
});

test("while it works: a steer and a follow-up are seen, sent now, and taken back", async ({
  visitor,
  stack,
}) => {
  const conversations = new Conversations(stack);
  const held = hold();
  const { url } = await conversations.start(
    "Begin.",
    say(text("Well", held, ".")),
    say(text("Steered.")),
    say(text("Later.")),
  );
  const page = await visitor.open(url);
  const at = on(page);
  await untilState(page, "writes");
  await page.getByRole("button", { name: "Afterwards" }).click();
  await at.message.fill("Then this.");
  await page.keyboard.press("Enter");
  await at.waiting.getByText("Then this.").waitFor();
  await at.message.fill("And never this.");
  await page.keyboard.press("Enter");
  await page.getByRole("button", { name: "Take back: And never this." }).click();
  await at.waiting.getByText("And never this.").waitFor({ state: "detached" });
  await page.getByRole("button", { name: "Steer" }).click();
  await at.message.fill("But first that.");
  await page.keyboard.press("Enter");
  await at.waiting.getByText("With the next request:").waitFor();
  held.release();
  await on(page).transcript.getByText("Later.").waitFor();
  await at.waiting.waitFor({ state: "detached" });
  const said = await textOf(page);
  expect(said.indexOf("But first that.")).toBeLessThan(said.indexOf("Then this."));
  expect(said).not.toContain("And never this.");
});

test("a Stop by Escape holds what waits; the page says so and lets it go on", async ({ visitor, stack }) => {
  const conversations = new Conversations(stack);
  const { url } = await conversations.start("Begin.", say(text("Well", hold(), ".")), say(text("Went on.")));
  const page = await visitor.open(url);
  const at = on(page);
  await untilState(page, "writes");
  await page.getByRole("button", { name: "Afterwards" }).click();
  await at.message.fill("Then this.");
  await page.keyboard.press("Enter");
  await at.waiting.getByText("Then this.").waitFor();
  await page.keyboard.press("Escape");
  await at.waiting.getByText("Held since you stopped the agent.").waitFor();
  await untilState(page, "ready");
  await page.getByRole("button", { name: "Let them go on" }).click();
  await on(page).transcript.getByText("Went on.").waitFor();
});

test("a Stop right after a message does not overtake it: the message is held, and begins no run", async ({
  visitor,
  stack,
}) => {
  const conversations = new Conversations(stack);
  const { id, url } = await conversations.start(
    "Begin.",
    say(text("Well", hold(), ".")),
    say(text("Went on.")),
  );
  // On a busy machine the message may need longer than the page gives it.
  await visitor.context.addInitScript(() => {
    const { setTimeout: start } = globalThis;
    const patient = (act: () => void, ms?: number) => start(act, ms === 250 ? 20_000 : ms);
    Object.assign(globalThis, { setTimeout: patient });
  });
  const page = await visitor.open(url);
  const at = on(page);
  await untilState(page, "writes");
  let letPass = (): void => undefined;
  const pressed = new Promise<void>((resolve) => (letPass = resolve));
  await page.route("**/messages", (route) => pressed.then(() => route.continue()));
  await page.getByRole("button", { name: "Afterwards" }).click();
  await at.message.fill("Then this.");
  await page.keyboard.press("Enter");
  await at.waiting.getByText("Sending:").waitFor();
  await page.keyboard.press("Escape");
  letPass();
  await at.waiting.getByText("Held since you stopped the agent.").waitFor();
  const order = stack.requests.filter(
    (request) => request.includes(id) && /(messages|cancel)$/.test(request),
  );
  expect(order.slice(-2).map((request) => request.split("/").at(-1))).toEqual(["messages", "cancel"]);
});

test("images are pasted, seen before they are sent, and seen in the message", async ({ visitor, stack }) => {
  const conversations = new Conversations(stack);
  const { url } = await conversations.start("Begin.", say(text("Ready.")), say(text("Nice picture.")));
  const page = await visitor.open(url);
  const at = on(page);
  await on(page).transcript.getByText("Ready.").waitFor();
  const png = await sharp({ create: { width: 60, height: 40, channels: 3, background: "#28a" } })
    .png()
    .toBuffer();
  await page.locator("input[type=file]").setInputFiles([
    { name: "blue.png", mimeType: "image/png", buffer: png },
    { name: "notes.txt", mimeType: "text/plain", buffer: Buffer.from("no image") },
  ]);
  await page.getByText("notes.txt is not a PNG, JPEG, GIF or WebP image.").waitFor();
  await page.getByRole("img", { name: "blue.png" }).waitFor();
  // It survives a reload, as the text does.
  await at.message.fill("Look at this.");
  await vi.waitFor(async () => expect(await page.evaluate(countKeptImages)).toBe(1));
  await page.reload();
  await page.getByRole("img", { name: "blue.png" }).waitFor();
  expect(await at.message.inputValue()).toBe("Look at this.");
  await at.send.click();
  const image = at.transcript.getByRole("img", { name: "Image, 60 by 40 pixels" });
  await image.waitFor();
  await vi.waitFor(async () =>
    expect(await image.evaluate((element) => (element as HTMLImageElement).naturalWidth)).toBe(60),
  );
  await on(page).transcript.getByText("Nice picture.").waitFor();
  expect(await page.getByRole("img", { name: "blue.png" }).count()).toBe(0);
});

test("a retry counts down, and an error says what happened and what to do", async ({ visitor, stack }) => {
  const conversations = new Conversations(stack);
  const { url } = await conversations.start(
    "Begin.",
    rateLimited(5),
    fail("authentication_error"),
    say(text("Better.")),
  );
  const page = await visitor.open(url);
  await untilState(page, "will ask again in");
  await untilState(page, "key refused");
  await on(page).transcript.getByText("ANTHROPIC_API_KEY").waitFor();
  await on(page).message.fill("Again.");
  await page.keyboard.press("Enter");
  await on(page).transcript.getByText("Better.").waitFor();
});

test("sub-agents are cards with what each does; a card opens the sub-agent, which can only be read", async ({
  visitor,
  stack,
}) => {
  const conversations = new Conversations(stack);
  const held = hold();
  const fast = conversations.script(say(toolCall("submit_result", { result: "Forty-two." })));
  const slow = conversations.script(
    say(text("Hm", held, ".")),
    say(toolCall("submit_result", { result: "Seven." })),
  );
  const { url } = await conversations.start(
    "Delegate.",
    say(toolCall("spawn_agents", { tasks: [{ task: `Fast ${fast}` }, { task: `Slow ${slow}` }] })),
    say(text("Both are back.")),
  );
  const page = await visitor.open(url);
  await page.getByRole("region", { name: "Sub-agents" }).getByText("Forty-two.").waitFor();
  await untilState(page, "sub-agents: 1 of 2 done");
  await page.getByRole("link", { name: /^Slow/ }).click();
  await page.getByText("A sub-agent takes no messages.").waitFor();
  await on(page).transcript.getByText("Hm").waitFor();
  await on(page).transcript.getByRole("link", { name: "Delegate." }).click();
  held.release();
  await on(page).transcript.getByText("Both are back.").waitFor();
  // Ended sub-agents can still be opened.
  await page.getByRole("link", { name: /^Fast/ }).click();
  await page.getByText("A sub-agent takes no messages.").waitFor();
});

test("requests are a table with tokens and times, and what went in and out", async ({ visitor, stack }) => {
  const conversations = new Conversations(stack);
  const { url } = await conversations.start("Look.", say(toolCall("ls", { path: "." })), say(text("Seen.")));
  const page = await visitor.open(url);
  await on(page).transcript.getByText("Seen.").waitFor();
  await page.getByRole("link", { name: "Requests" }).click();
  const table = page.getByRole("table");
  await table.getByRole("rowheader").nth(1).waitFor();
  expect(await table.getByRole("rowheader").count()).toBe(2);
  await table.getByRole("button", { name: "1", exact: true }).click();
  await page.getByRole("heading", { name: "What it answered" }).waitFor();
  await page.goBack();
  await on(page).transcript.getByText("Seen.").waitFor();
});
