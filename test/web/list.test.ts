/** The list of conversations and the start of a new one, as a person uses them. */
import { existsSync } from "node:fs";
import { mkdir, realpath } from "node:fs/promises";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { expect } from "vitest";
import { hold } from "../../local/scripted/cues.ts";
import { fail, say, text, toolCall } from "../../local/scripted/script.ts";
import { at as pathOf } from "../api/person.ts";
import { chooseDirectory, Conversations, decide, on, textOf, untilState } from "./conversations.ts";
import { testWithStack } from "./stack.ts";

const test = testWithStack();
/** As `npm start` without a key: the built-in scripted model answers. */
const scripted = testWithStack({ env: { SCRIPTED_MODEL: "true" } });

/** Milliseconds for which a message of the page is shown. */
const SHOWN_MS = 8_000;

const entry = (page: Page, title: string) =>
  on(page).list.getByRole("link", { name: new RegExp(`^${title}`) });
const message = (page: Page, words: string | RegExp) => page.getByRole("status").getByText(words);
const search = (page: Page) => page.getByRole("searchbox", { name: "Search conversations" });

async function choose(page: Page, title: string, action: string): Promise<void> {
  await page.getByRole("button", { name: `More about ${title}` }).click();
  await page.getByRole("menuitem", { name: action, exact: true }).click();
}

/** In the order in which they stand. */
async function standing(page: Page, ...words: readonly string[]): Promise<readonly string[]> {
  const shown = (await on(page).list.innerText()).toLowerCase();
  const places = words.map((word) => [shown.indexOf(word.toLowerCase()), word] as const);
  return places
    .filter(([place]) => place !== -1)
    .sort(([a], [b]) => a - b)
    .map(([, word]) => word);
}

scripted(
  "from an empty page to an approved, running tool and a Stop: three things to try, as buttons",
  async ({ visitor, stack }) => {
    const page = await visitor.open(stack.url);
    const at = on(page);
    await at.list.getByText("No conversation yet.").waitFor();
    await page.getByRole("heading", { name: "New conversation" }).waitFor();
    const banner = page.getByRole("note").filter({ hasText: "a scripted model answers" });
    expect(await banner.getByRole("button").allInnerTexts()).toEqual([
      "Look around",
      "Write a file (asks you first)",
      "Run something long, then stop it",
    ]);
    // There is a directory to begin in, without a word.
    await chooseDirectory(page, stack.system.cwd);

    await banner.getByRole("button", { name: "Look around" }).click();
    await page.getByRole("region", { name: "Ran 1 command" }).waitFor();
    await untilState(page, "ready");
    await banner.getByRole("button", { name: "Write a file" }).click();
    await decide(page, "allow");
    await page.getByRole("region", { name: "Changed 1 file" }).getByText("Hello from the agent.").waitFor();
    expect(existsSync(join(stack.system.cwd, "bedrock-hello.txt"))).toBe(true);
    await untilState(page, "ready");
    await page.getByRole("link", { name: "New", exact: true }).click();
    const directory = page.getByLabel("Directory");
    await directory.waitFor();
    // The directory is remembered.
    expect(await directory.inputValue()).toBe(stack.system.cwd);
    await banner.getByRole("button", { name: "Run something long" }).click();
    await page.getByRole("region", { name: "Runs 1 command" }).getByText(/^1$/m).waitFor();
    await at.stop.click();
    await page.getByRole("region", { name: "Ran 1 command" }).getByText("cancelled").first().waitFor();
    await untilState(page, "ready");
  },
);

test("what waits for the person comes first; title, directory, state and mode are seen at a glance", async ({
  visitor,
  stack,
}) => {
  const conversations = new Conversations(stack);
  const { person } = conversations;
  const asks = () => say(text("I ask."), toolCall("request_mode_upgrade", { reason: "To write." }));
  const waits = await conversations.start("Oldest waits", asks(), say(text("Thanks.")));
  const works = await conversations.start("Second works", say(text("Well", hold(), ".")));
  const failed = await conversations.start("Third failed", fail("authentication_error"));
  const rests = await conversations.start("Newest rests", say(text("Done.")));
  await person.untilState(waits.id, "awaiting_mode_approval");
  await person.untilState(works.id, "llm_requesting");
  await person.untilState(failed.id, "error");
  await person.untilState(rests.id, "idle");

  const page = await visitor.open(stack.url);
  await entry(page, "Oldest waits").getByText("waits for you").waitFor();
  await entry(page, "Second works").getByText("asks the model").waitFor();
  await entry(page, "Third failed").getByText("key refused").waitFor();
  await entry(page, "Newest rests").getByText(stack.system.cwd).waitFor();
  const order = [
    ...["Waits for you", "Oldest waits", "At work", "Second works", "Earlier"],
    ...["Newest rests", "Third failed"],
  ];
  expect(await standing(page, ...order)).toEqual(order);

  // It moves by itself, and its mode is shown.
  const { state } = (await person.conversation(waits.id)) as { state: { toolCall: { id: string } } };
  await person.order("POST", pathOf(waits.id, "/approval"), {
    decision: "approve",
    toolCallId: state.toolCall.id,
  });
  await entry(page, "Oldest waits").getByText("unrestricted").waitFor();
  await expect.poll(() => standing(page, "Earlier", "Oldest waits")).toEqual(["Earlier", "Oldest waits"]);
  await on(page).list.getByRole("heading", { name: "Waits for you" }).waitFor({ state: "detached" });
});

test("a search finds titles and directories; what is archived only where it is shown", async ({
  visitor,
  stack,
}) => {
  const { person } = new Conversations(stack);
  const kiosk = join(stack.system.cwd, "kiosk");
  await mkdir(kiosk);
  await person.create({ title: "Alpha by title" });
  await person.create({ title: "Beta by place", cwd: kiosk });
  const archived = await person.create({ title: "Gamma of alpha" });
  await person.order("PATCH", pathOf(archived), { archived: true }, 200);
  const page = await visitor.open(stack.url);
  await entry(page, "Alpha by title").waitFor();

  await search(page).fill(" ALPHA ");
  await entry(page, "Beta by place").waitFor({ state: "detached" });
  await entry(page, "Alpha by title").waitFor();
  expect(await entry(page, "Gamma").count()).toBe(0);
  await page.getByLabel("Show archived").check();
  await entry(page, "Gamma").waitFor();
  expect(await standing(page, "Archived", "Gamma", "Alpha by title")).toEqual([
    "Alpha by title",
    "Archived",
    "Gamma",
  ]);
  await search(page).fill("kiosk");
  await entry(page, "Beta by place").waitFor();
  await entry(page, "Alpha by title").waitFor({ state: "detached" });
  await search(page).fill("nothing at all");
  await on(page).list.getByText("No conversation has this in its title or directory.").waitFor();
});

test("a conversation is renamed by Enter, and not by Escape; other tabs and devices agree", async ({
  visitor,
  stack,
}) => {
  const conversations = new Conversations(stack);
  const { id, url } = await conversations.start("Old name", say(text("Well", hold(), ".")));
  const page = await visitor.open(url);
  const tab = await visitor.open(url);
  const device = await visitor.open(stack.url, await visitor.another());
  await untilState(page, "writes");

  await choose(page, "Old name", "Rename");
  const name = page.getByRole("textbox", { name: "Title" });
  expect(await name.inputValue()).toBe("Old name");
  await name.fill("No name");
  await page.keyboard.press("Escape");
  await entry(page, "Old name").waitFor();
  // That Escape was none for the agent.
  expect(await conversations.person.stateOf(id)).toBe("llm_requesting");

  await choose(page, "Old name", "Rename");
  await page.keyboard.type("New name");
  await page.keyboard.press("Enter");
  for (const each of [page, tab, device]) await entry(each, "New name").waitFor();
  for (const each of [page, tab]) {
    await each.getByRole("heading", { level: 1, name: "New name" }).waitFor();
    await expect.poll(() => each.title()).toBe("New name");
  }
  expect(await conversations.person.conversation(id)).toMatchObject({ title: "New name" });

  await choose(page, "New name", "Rename");
  await name.fill("  ");
  await page.keyboard.press("Enter");
  await entry(page, "New name").waitFor();
});

test("a conversation goes into the archive and comes back: by undo, and out of what is shown", async ({
  visitor,
  stack,
}) => {
  const { person } = new Conversations(stack);
  const id = await person.create({ title: "For later" });
  const isArchived = async () => (await person.conversation(id))["archived"];
  const page = await visitor.open(stack.url);
  const tab = await visitor.open(stack.url);
  await entry(tab, "For later").waitFor();
  await choose(page, "For later", "Archive");
  await message(page, "“For later” is archived.").waitFor();
  for (const each of [page, tab]) await entry(each, "For later").waitFor({ state: "detached" });
  expect(await isArchived()).toBe(true);
  await page.getByRole("button", { name: "Undo" }).click();
  for (const each of [page, tab]) await entry(each, "For later").waitFor();
  expect(await isArchived()).toBe(false);

  await choose(page, "For later", "Archive");
  await entry(page, "For later").waitFor({ state: "detached" });
  await page.getByLabel("Show archived").check();
  await choose(page, "For later", "Take out of the archive");
  await page.getByLabel("Show archived").uncheck();
  for (const each of [page, tab]) await entry(each, "For later").waitFor();
  expect(await isArchived()).toBe(false);
});

test("a deletion can be undone as long as its message is there; then it is one, everywhere", async ({
  visitor,
  stack,
}) => {
  const { person } = new Conversations(stack);
  const id = await person.create({ title: "Not needed" });
  const page = await visitor.open(stack.url);
  await page.clock.install();
  await page.goto(`${stack.url}/c/${id}`);
  const device = await visitor.open(`${stack.url}/c/${id}`, await visitor.another());
  await untilState(device, "ready");
  await untilState(page, "ready");

  await choose(page, "Not needed", "Delete");
  await entry(page, "Not needed").waitFor({ state: "detached" });
  await page.getByRole("heading", { name: "New conversation" }).waitFor();
  await page.getByRole("button", { name: "Undo" }).click();
  await entry(page, "Not needed").click();
  await untilState(page, "ready");

  const deletion = `DELETE ${pathOf(id)}`;
  const said = message(page, "“Not needed” will be deleted with its sub-agents.");
  // From here on the time of this page goes on by order only.
  await page.clock.pauseAt(Date.now() + 1_000);
  await choose(page, "Not needed", "Delete");
  await said.waitFor();
  await page.clock.runFor(SHOWN_MS - 100);
  await entry(device, "Not needed").waitFor();
  expect([await said.count(), stack.requests.includes(deletion)]).toEqual([1, false]);
  await page.clock.runFor(200);
  await page.clock.resume();
  await said.waitFor({ state: "detached" });
  await device.getByRole("heading", { name: "This conversation is not there" }).waitFor();
  await entry(device, "Not needed").waitFor({ state: "detached" });
  expect((await stack.api.get(pathOf(id))).status).toBe(404);
  expect(stack.requests.filter((request) => request === deletion)).toHaveLength(1);
});

test("a page that is closed before a deletion is due deletes nothing", async ({ visitor, stack }) => {
  const { person } = new Conversations(stack);
  const id = await person.create({ title: "Nearly gone" });
  const page = await visitor.open(stack.url);
  await choose(page, "Nearly gone", "Delete");
  await entry(page, "Nearly gone").waitFor({ state: "detached" });
  await page.close({ runBeforeUnload: true });
  const again = await visitor.open(stack.url);
  await entry(again, "Nearly gone").waitFor();
  expect(stack.requests).not.toContain(`DELETE ${pathOf(id)}`);
});

test("a deletion that does not reach the server is said, and the conversation comes back", async ({
  visitor,
  stack,
}) => {
  const { person } = new Conversations(stack);
  await person.create({ title: "Stays" });
  visitor.tolerate(/ERR_|Failed to load/);
  const page = await visitor.open(stack.url);
  await choose(page, "Stays", "Delete");
  await entry(page, "Stays").waitFor({ state: "detached" });
  await stack.network.cut();
  await message(page, "The server does not answer.").waitFor();
  await stack.network.mend();
  await entry(page, "Stays").waitFor();
});

test("a conversation that was begun elsewhere appears, with what it does", async ({ visitor, stack }) => {
  const conversations = new Conversations(stack);
  const page = await visitor.open(stack.url);
  await on(page).list.getByRole("link", { name: "New", exact: true }).waitFor();
  const held = hold();
  const { id } = await conversations.start("From elsewhere", say(text("Well", held, ".")));
  await entry(page, "From elsewhere").getByText("asks the model").waitFor();
  held.release();
  await expect.poll(() => entry(page, "From elsewhere").innerText()).not.toContain("asks the model");
  await conversations.person.order("DELETE", pathOf(id), undefined, 204);
  await entry(page, "From elsewhere").waitFor({ state: "detached" });
});

test("a new one: the directory is completed and checked, a model is chosen, the first message is answered", async ({
  visitor,
  stack,
}) => {
  const conversations = new Conversations(stack);
  const cwd = await realpath(stack.system.cwd);
  await mkdir(join(cwd, "workshop"));
  const page = await visitor.open(stack.url);
  const directory = page.getByLabel("Directory");
  const start = page.getByRole("button", { name: "Start" });
  const offered = () =>
    directory.evaluate((input) =>
      [...((input as HTMLInputElement).list?.options ?? [])].map(({ value }) => value),
    );
  visitor.tolerate(/status of 422/);
  await chooseDirectory(page, join(cwd, "work"));
  await expect.poll(offered).toContain(join(cwd, "workshop"));

  const tag = conversations.script(say(text("At your service.")));
  await page.getByLabel("First message").fill(`What is here? ${tag}`);
  await start.click();
  await page.getByRole("alert").getByText(join(cwd, "work")).waitFor();
  expect(await page.getByLabel("First message").inputValue()).toBe(`What is here? ${tag}`);

  await directory.fill(join(cwd, "workshop"));
  const models = await page.getByLabel("Model").getByRole("option").allInnerTexts();
  const chosen = models.find((name) => name.includes("Haiku"));
  await page.getByLabel("Model").selectOption(chosen ?? "");
  await start.click();
  await on(page).transcript.getByText("At your service.").waitFor();
  await page.getByRole("main").getByText(join(cwd, "workshop"), { exact: true }).waitFor();
  const id = new URL(page.url()).pathname.replace("/c/", "");
  const made = await conversations.person.conversation(id);
  expect(made).toMatchObject({
    cwd: join(cwd, "workshop"),
    mode: stack.system.sandbox.kind === "available" ? "restricted" : "unrestricted",
  });
  expect(String(made["model"])).toContain("haiku");
  await entry(page, "What is here?").waitFor();
  // What was sent is no draft any more.
  await page.goBack();
  expect(await page.getByLabel("First message").inputValue()).toBe("");
});

test("a creation whose answer was lost is made once, with its message", async ({ visitor, stack }) => {
  const conversations = new Conversations(stack);
  visitor.tolerate(/ERR_FAILED|status of 409/);
  const page = await visitor.open(stack.url);
  await chooseDirectory(page, stack.system.cwd);
  let lost = 0;
  await page.route("**/api/conversations", async (route) => {
    if (route.request().method() !== "POST" || lost++ > 0) return route.fallback();
    // Only the conversation gets through, and not its message.
    const { message: _, ...body } = route.request().postDataJSON() as { readonly message: object };
    await route.fetch({ postData: body });
    await route.abort();
  });
  const tag = conversations.script(say(text("Only once.")));
  await page.getByLabel("First message").fill(`Once, please. ${tag}`);
  await page.keyboard.press("Control+Enter");
  await page.keyboard.press("Control+Enter");
  await on(page).transcript.getByText("Only once.").waitFor();
  await untilState(page, "ready");
  expect((await textOf(page)).match(/Once, please\./g)).toHaveLength(1);
  expect(lost).toBe(2);
  const id = new URL(page.url()).pathname.replace("/c/", "");
  const messages = await conversations.person.messages(id);
  expect(messages.map(({ type }) => type)).toEqual(["user", "agent", "run_stop"]);
});
