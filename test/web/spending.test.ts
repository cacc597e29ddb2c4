/** What was spent on the page: the cost beside the context, the warning near a limit, and the refusal. */
import type { Page } from "playwright-core";
import { expect } from "vitest";
import { answer } from "../../local/scripted/script.ts";
import { dayOf, NO_LIMITS } from "../../protocol/spending.ts";
import { axeFindings } from "./axe.ts";
import { Conversations, on, untilState } from "./conversations.ts";
import { testWithStack } from "./stack.ts";

const MODEL = "claude-opus-4-8";
const limits = {
  ...NO_LIMITS,
  conversation: { tokens: 1_000, dollars: null },
  day: { tokens: null, dollars: 1 },
};
const env = { MODEL, LIMIT_CONVERSATION_TOKENS: "1000", LIMIT_DAY_DOLLARS: "1" };
const test = testWithStack({ env, spendingLimits: limits });

const usage = (tokens: number) => ({
  usage: {
    ...{ input_tokens: tokens - 10, output_tokens: 10 },
    ...{ cache_read_input_tokens: 0, cache_creation_input_tokens: 0 },
  },
});

const warning = (page: Page) => page.getByRole("status").filter({ hasText: "has spent" });

test("the cost stands beside the context; from 80 % of the limit on the page warns; at the limit it says what to do", async ({
  visitor,
  stack,
}) => {
  visitor.tolerate(/status of 409/);
  const conversations = new Conversations(stack);
  const { url } = await conversations.start(
    "Begin.",
    answer(["Little."], usage(500)),
    answer(["More."], usage(300)),
    answer(["Too much."], usage(200)),
  );
  const page = await visitor.open(url);
  const at = on(page);
  // 490 × 5 + 10 × 25 millionths of a dollar.
  await untilState(page, "$0.002700");
  expect(await warning(page).count()).toBe(0);

  await at.message.fill("Go on.");
  await at.send.click();
  await page
    .getByText("This conversation has spent 800 of 1,000 tokens. At the limit the agent stops.")
    .waitFor();
  expect(await axeFindings(page)).toEqual([]);

  await at.message.fill("Go on.");
  await at.send.click();
  await page.getByText("has spent 1,000 of 1,000 tokens.").waitFor();
  await at.message.fill("Once more.");
  await at.send.click();
  await page
    .getByText(
      "This conversation has spent 1,000 tokens, and may spend 1,000 tokens. Begin a new conversation",
    )
    .first()
    .waitFor();
});

test("the page warns as well when all conversations together come near the day's limit, and tells of an unknown cost", async ({
  visitor,
  stack,
}) => {
  const conversations = new Conversations(stack);
  const { id, url } = await conversations.start("Begin.", answer(["Little."], usage(100)));
  await expect.poll(() => conversations.person.stateOf(id), { timeout: 20_000 }).toBe("idle");
  await stack.system.db.sql`
    insert into spending values ('another', ${dayOf(new Date())}, ${MODEL}, 0, 0, 0, 0, 900000000, 0)`;
  await stack.system.db.sql`update spending set unpriced_requests = 1 where conversation_id = ${id}`;
  const page = await visitor.open(url);
  await untilState(page, "cost unknown");
  await stack.system.db.sql`update spending set unpriced_requests = 0 where conversation_id = ${id}`;
  await page.reload();
  await page.getByText(/^All conversations together have spent \$0\.9\d+ of \$1\.00 today\./).waitFor();
});
