/** Restricted mode on the page (REQ-BED-014, 015): what it shows, allow, deny, the way back, and a host without it. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { expect } from "vitest";
import { hold } from "../../local/scripted/cues.ts";
import { say, text, toolCall } from "../../local/scripted/script.ts";
import { hostSandbox } from "../support/host-sandbox.ts";
import { withoutLandlock } from "../support/without-landlock.ts";
import { startWorkerProcess } from "../support/worker-process.ts";
import { chooseDirectory, Conversations, decide, on, untilState } from "./conversations.ts";
import { testWithStack } from "./stack.ts";

const { available, reason } = await hostSandbox();
if (!available) console.warn(`SKIPPED, the modes on the page: ${reason ?? ""}`);

const withSandbox = testWithStack();
const test = available ? withSandbox : withSandbox.skip;
const bare = testWithStack({ workers: 0 });

const RESTRICTED = /^RESTRICTED/;
const UNRESTRICTED = /^UNRESTRICTED/;
const asks = () => say(toolCall("request_mode_upgrade", { reason: "I have to write a file." }));
const restrict = (page: Page) => page.getByRole("button", { name: "Restrict again" });

test("what is restricted cannot write; what the person allows can, until one click takes it back; each tab says which it is", async ({
  visitor,
  stack,
}) => {
  const conversations = new Conversations(stack);
  const { cwd } = stack.system;
  const touch = (name: string) => toolCall("bash", { command: `touch ${join(cwd, name)}` });
  const { url } = await conversations.start(
    "Begin.",
    say(touch("before")),
    asks(),
    say(touch("granted")),
    say(text("It is there.")),
    say(touch("after")),
    say(text("It is not.")),
  );
  const page = await visitor.open(url);
  const tab = await visitor.open(stack.url);
  await untilState(page, RESTRICTED);
  const card = page.getByRole("region", { name: "The agent asks to leave Restricted mode" });
  await card.getByText("I have to write a file.").waitFor();
  await card.getByText("its commands have your rights and the network").waitFor();
  await card.getByText("You can go back to Restricted at any time.").waitFor();
  expect(existsSync(join(cwd, "before"))).toBe(false);

  await decide(page, "allow");
  await untilState(page, UNRESTRICTED);
  const inList = on(tab).list.getByRole("link", { name: /^Begin\./ });
  await inList.getByText("unrestricted").waitFor();
  await on(page).transcript.getByText("It is there.").waitFor();
  expect(existsSync(join(cwd, "granted"))).toBe(true);

  await restrict(page).click();
  await untilState(page, RESTRICTED);
  await expect.poll(() => inList.innerText()).not.toContain("unrestricted");
  await on(page).message.fill("Try again.");
  await page.keyboard.press("Enter");
  await on(page).transcript.getByText("It is not.").waitFor();
  expect(existsSync(join(cwd, "after"))).toBe(false);
});

test("a tab that goes out of sight between two frames still says in its title that the agent waits", async ({
  visitor,
  stack,
}) => {
  const conversations = new Conversations(stack);
  const held = hold();
  const { id, url } = await conversations.start(
    "Begin.",
    say(text("Well", held, "."), toolCall("request_mode_upgrade", { reason: "To write." })),
  );
  // A browser draws no frame of a tab that is not seen, not even one that was asked for before.
  await visitor.context.addInitScript(() => {
    const draw = requestAnimationFrame;
    let isDrawn = true;
    let isHidden = false;
    Object.defineProperty(document, "hidden", { get: () => isHidden });
    Object.assign(globalThis, {
      requestAnimationFrame: (callback: FrameRequestCallback) => (isDrawn ? draw(callback) : 0),
      stopDrawing: () => (isDrawn = false),
      hide: () => {
        isHidden = true;
        document.dispatchEvent(new Event("visibilitychange"));
      },
    });
  });
  const page = await visitor.open(url);
  await untilState(page, "writes");
  await page.evaluate("stopDrawing()");
  held.release();
  await conversations.person.untilState(id, "awaiting_mode_approval");
  // The list of another page has it, so this one has heard of it, too.
  const other = await visitor.open(stack.url, await visitor.another());
  await on(other).list.getByRole("heading", { name: "Waits for you" }).waitFor();
  expect(await page.title()).toBe("Begin.");
  await page.evaluate("hide()");
  await expect.poll(() => page.title()).toBe("● Approval needed — Begin.");
});

test("what the person denies stays restricted, and the agent goes on with that", async ({
  visitor,
  stack,
}) => {
  const conversations = new Conversations(stack);
  const { url } = await conversations.start("Begin.", asks(), say(text("Then I do without.")));
  const page = await visitor.open(url);
  await decide(page, "deny");
  await on(page).transcript.getByText("Then I do without.").waitFor();
  await untilState(page, "ready");
  await untilState(page, RESTRICTED);
  expect(await restrict(page).count()).toBe(0);
  expect(JSON.stringify(stack.system.model.requests.at(-1)?.json)).toContain("The user denied the upgrade.");
});

test("the way back works while the agent is at work, and for the next command", async ({
  visitor,
  stack,
}) => {
  const conversations = new Conversations(stack);
  const { cwd } = stack.system;
  const held = hold();
  const { url } = await conversations.start(
    "Begin.",
    asks(),
    say(text("Well", held, "."), toolCall("bash", { command: `touch ${join(cwd, "too-late")}` })),
    say(text("That was not possible.")),
  );
  const page = await visitor.open(url);
  await decide(page, "allow");
  await untilState(page, "writes");
  await restrict(page).click();
  await untilState(page, RESTRICTED);
  held.release();
  await on(page).transcript.getByText("That was not possible.").waitFor();
  expect(existsSync(join(cwd, "too-late"))).toBe(false);
});

bare(
  "a host without a sandbox is a warning: before the start, in the conversation, and with the reason",
  async ({ visitor, stack }) => {
    await startWorkerProcess(stack.system, {}, withoutLandlock());
    visitor.tolerate(/status of 409/);
    const page = await visitor.open(stack.url);
    const warning = page
      .getByRole("note")
      .filter({ hasText: "Restricted mode is not available on this host." });
    // The host is asked when the page is opened; it may not have answered in time.
    await expect
      .poll(async () => {
        if ((await warning.count()) === 0) await page.reload();
        return warning.innerText({ timeout: 1_000 }).catch(() => "");
      })
      .toMatch(/Landlock.*Linux 5\.13.*have your rights from the beginning/);
    expect(await page.getByText("It begins in Restricted mode").count()).toBe(0);

    const conversations = new Conversations(stack);
    const file = join(stack.system.cwd, "written");
    const tag = conversations.script(say(toolCall("bash", { command: `touch ${file}` })), say(text("Done.")));
    await chooseDirectory(page, stack.system.cwd);
    await page.getByLabel("First message").fill(`Write. ${tag}`);
    await page.getByRole("button", { name: "Start" }).click();
    await on(page).transcript.getByText("Done.").waitFor();
    expect(existsSync(file)).toBe(true);
    await untilState(page, "UNRESTRICTED · no sandbox");
    await on(page)
      .transcript.getByText(/Landlock.*Linux 5\.13/)
      .waitFor();

    // The host is asked again, and says why not.
    await page.getByRole("button", { name: "Restrict", exact: true }).click();
    await page
      .getByRole("status")
      .getByText(/Restricted mode needs.*Linux 5\.13/)
      .waitFor();
    await untilState(page, UNRESTRICTED);
  },
);
