/** Where the time of a turn went, as a person opens it in the conversation: also with the keyboard, on any screen. */
import { expect } from "vitest";
import { hold, pause } from "../../local/scripted/cues.ts";
import { say, text, toolCall } from "../../local/scripted/script.ts";
import { axeFindings } from "./axe.ts";
import { Conversations, on } from "./conversations.ts";
import { testWithStack } from "./stack.ts";

const test = testWithStack();

test("a turn opens its waterfall: a sentence, and a table whose rows say what its bars show", async ({
  visitor,
  stack,
}) => {
  const conversations = new Conversations(stack);
  const { url } = await conversations.start(
    "Look.",
    say(toolCall("ls", { path: "." })),
    say(text("Well", pause(3_000), ". Seen.")),
  );
  const page = await visitor.open(url);
  await on(page).transcript.getByText("Seen.").waitFor();
  const button = on(page).transcript.getByRole("button", { name: "Where the time went" });
  await button.focus();
  await page.keyboard.press("Enter");
  expect(await button.getAttribute("aria-expanded")).toBe("true");
  const sentence = page.getByText(/^\d+ % of \d.* went to the model: 2 requests, first token after /);
  await sentence.waitFor();

  const table = page.getByRole("region", { name: "Spans of the turn" }).getByRole("table");
  for (const name of ["request", "ls", "first token", "commit"])
    await table
      .getByRole("rowheader", { name, exact: name !== "request" && name !== "ls" })
      .first()
      .waitFor();
  // Its spans arrive a moment after the turn. A busy machine sees the first word late.
  const rest = table.getByRole("row").filter({ hasText: /rest of the answer.*[2-9]\.\d s/ });
  await rest.waitFor();
  const [, takes = "0"] = /model\s+[\d.]+ (?:ms|s)\s+([\d.]+) s/.exec(await rest.innerText()) ?? [];
  const [, whole = "0"] = / of ([\d.]+) s /.exec(await sentence.innerText()) ?? [];
  // The bar is drawn where the row says, and for as long as it says.
  const [bar, cell] = await Promise.all([
    rest.locator(".bar > div").boundingBox(),
    rest.locator(".bar").boundingBox(),
  ]);
  // The cell has a margin.
  const drawn = (bar?.width ?? 0) / (cell?.width ?? 1);
  expect(Math.abs(drawn - Number(takes) / Number(whole))).toBeLessThan(0.15);

  for (const colorScheme of ["light", "dark"] as const) {
    await page.emulateMedia({ colorScheme });
    expect(await axeFindings(page), colorScheme).toEqual([]);
  }
  await page.setViewportSize({ width: 360, height: 640 });
  const overflow = await page.evaluate("document.documentElement.scrollWidth - innerWidth");
  expect(overflow).toBe(0);
  expect((await button.boundingBox())?.height).toBeGreaterThanOrEqual(24);

  await page.keyboard.press("Enter");
  await table.waitFor({ state: "detached" });
});

test("a turn that goes on says what it waits for, and follows it", async ({ visitor, stack }) => {
  const conversations = new Conversations(stack);
  const held = hold();
  const { url } = await conversations.start("Go.", say(text("Well", held, ". Done.")));
  const page = await visitor.open(`${url}/requests`);
  await page.getByRole("button", { name: "Where the time went" }).click();
  await page.getByText(/ so far went to the model: 1 request/).waitFor();
  held.release();
  await page.getByText(/^\d+ % of (?!.* so far).* went to /).waitFor();
});
