/** A page of somebody else that uses `useChat` (docs/ai-sdk.md), in a real browser on the real system. */
import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { build } from "esbuild";
import type { Page } from "playwright-core";
import { expect, vi } from "vitest";
import { hold } from "../../../local/scripted/cues.ts";
import { say, text, toolCall } from "../../../local/scripted/script.ts";
import { isDead, longCommand, pidIn } from "../../support/processes.ts";
import type { Visitor } from "../browser.ts";
import { Conversations } from "../conversations.ts";
import { testWithStack, type Stack } from "../stack.ts";

const test = testWithStack();

/** Opens the page, with a chat of this id. */
async function openChat(visitor: Visitor, stack: Stack, id: string): Promise<Page> {
  const built = await build({
    entryPoints: [join(import.meta.dirname, "page.tsx")],
    bundle: true,
    format: "esm",
    target: "es2022",
    jsx: "automatic",
    write: false,
    logLevel: "silent",
    define: { "process.env.NODE_ENV": '"production"' },
  });
  await visitor.context.route("**/somebody-elses*", (route) =>
    route.request().url().endsWith(".js")
      ? route.fulfill({ contentType: "text/javascript", body: built.outputFiles[0]?.text ?? "" })
      : route.fulfill({
          contentType: "text/html",
          body: '<!doctype html><link rel="icon" href="data:,"><body><script type="module" src="/somebody-elses.js"></script>',
        }),
  );
  return visitor.open(`${stack.url}/somebody-elses?id=${id}&cwd=${encodeURIComponent(stack.system.cwd)}`);
}

const answer = (page: Page) => page.getByRole("article", { name: "assistant" }).last();
const status = (page: Page, words: string) => page.getByRole("status").filter({ hasText: words }).waitFor();

async function send(page: Page, words: string): Promise<void> {
  await page.getByRole("textbox", { name: "Message" }).fill(words);
  await page.getByRole("button", { name: "Send" }).click();
}

test("an answer streams, goes on after a reload in the middle of it, and is there after the next", async ({
  visitor,
  stack,
}) => {
  const conversations = new Conversations(stack);
  const id = randomUUID();
  const long = "It is quite a long way that we have gone. ".repeat(4);
  const held = hold();
  const tag = conversations.script(
    say(text("A first answer.")),
    say(text(long, held, "The end."), toolCall("ls", { path: "." })),
    say(text("Done.")),
  );
  const page = await openChat(visitor, stack, id);
  await send(page, `Go. ${tag}`);
  await page.getByText("A first answer.").waitFor();
  await status(page, "ready");
  await send(page, "And on.");
  await answer(page).getByText("It is quite a long way that we have gone.").waitFor();
  await page.reload();
  await answer(page).getByText("It is quite a long way that we have gone.").waitFor();
  expect(await page.getByRole("article").count()).toBe(4);
  held.release();
  await answer(page).getByText("Done.").waitFor();
  await status(page, "ready");
  const whole = await page.getByRole("article").allInnerTexts();
  expect(whole[3]).toContain(`${long}The end.`);
  expect(whole[3]).toContain("ls: output-available");
  await page.reload();
  await answer(page).getByText("Done.").waitFor();
  expect(await page.getByRole("article").allInnerTexts()).toEqual(whole);
});

test("an approval is given by a button of the page, and its Stop kills what runs", async ({
  visitor,
  stack,
}) => {
  const conversations = new Conversations(stack);
  const id = randomUUID();
  const { command, file } = longCommand(stack.system.cwd);
  const tag = conversations.script(
    say(toolCall("request_mode_upgrade", { reason: "To run." })),
    say(text("I run."), toolCall("bash", { command })),
  );
  const page = await openChat(visitor, stack, id);
  await send(page, `Go. ${tag}`);
  await page.getByRole("button", { name: "Approve" }).click();
  const pid = await pidIn(file);
  await answer(page).getByText("bash: input-available").waitFor();
  expect(await page.getByRole("article").count()).toBe(2);
  await page.getByRole("button", { name: "Stop" }).click();
  await vi.waitFor(() => expect(isDead(pid)).toBe(true), 10_000);
  await vi.waitFor(async () => expect(await conversations.person.stateOf(id)).toBe("idle"));
});
