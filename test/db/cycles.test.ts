/** Pages of request cycles: which messages they hold, and that they hold each once. */
import { expect, test } from "vitest";
import { readCycleMessages } from "../../db/cycles.ts";
import { foldCycles, viewOf } from "../../machine/cycles.ts";
import { agent, list, note, result, stop, system, text, use, user } from "../machine/cycles-messages.ts";
import { createConversation, testDatabase } from "./fixtures.ts";

const messages = list(
  system("seed"),
  user("m1"),
  agent("a1", text("I look."), use("t1")),
  result("t1"),
  user("m2", "steer"),
  agent("a2", text("One.")),
  stop("s1"),
  note("n1"),
  user("m3", "followUp"),
  stop("s2", "error"),
  user("m4"),
  agent("a3", use("t2")),
);

async function conversation() {
  const db = await testDatabase();
  const { id } = await createConversation(db, { messages });
  const page = async (limit: number, before?: string) => {
    const found = await readCycleMessages(db, id, { limit, before });
    return found?.map((message) => message.id) ?? null;
  };
  return { db, id, page };
}

test("a page holds the last cycles and the messages between and after them; the page before it ends where it begins", async () => {
  const { page } = await conversation();
  expect(await page(1)).toEqual(["m4", "a3"]);
  expect(await page(1, "m4")).toEqual(["m3", "s2"]);
  expect(await page(2)).toEqual(["m3", "s2", "m4", "a3"]);
  expect(await page(1, "m3")).toEqual(["m1", "a1", "t1!", "m2", "a2", "s1", "n1"]);
  expect(await page(1, "m1")).toEqual(["seed"]);
});

test("a page with fewer cycles than the limit goes back to the first message", async () => {
  const { page } = await conversation();
  expect(await page(2, "m3")).toEqual(["seed", "m1", "a1", "t1!", "m2", "a2", "s1", "n1"]);
  expect(await page(3)).toHaveLength(messages.length - 1);
  expect(await page(4)).toEqual(messages.map(({ id }) => id));
});

test("the cycles of a page are those of the whole conversation, although the output is left out", async () => {
  const { db, id } = await conversation();
  const shown = (all: typeof messages) =>
    foldCycles(all).cycles.map((cycle) => ({ ...viewOf(cycle, "rounds"), ...viewOf(cycle, "steps") }));
  const read = (await readCycleMessages(db, id, { limit: 10 })) ?? [];
  expect(shown(read)).toEqual(shown(messages));
  expect(read.flatMap((message) => (message.type === "tool" ? message.content : []))).toMatchObject([
    { toolCallId: "t1", output: [] },
  ]);
});

test("an id that is no cycle of this conversation has no page before it", async () => {
  const { db, page } = await conversation();
  expect(await page(1, "m2")).toBeNull();
  expect(await page(1, "unknown")).toBeNull();
  expect(await readCycleMessages(db, "unknown", { limit: 1 })).toEqual([]);
});
