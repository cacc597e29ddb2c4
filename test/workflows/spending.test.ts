/**
 * Limits on spending, on the way to the model: each request is refused once a limit is reached, and what was spent is
 * counted exactly, whatever dies on the way.
 */
import { randomUUID } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, inject, test } from "vitest";
import { readSums } from "../../db/spending.ts";
import { dropHere, hold } from "../../local/scripted/cues.ts";
import { answer, text, toolCall, type Answer, type Part } from "../../local/scripted/script.ts";
import { dayOf, NO_LIMITS, type SpendingLimits } from "../../protocol/spending.ts";
import { startWorker, type RunningWorker } from "../../worker.ts";
import { TestConversation } from "../support/conversation.ts";
import { outcomesIn, spawnFamily } from "../support/family.ts";
import { startSystem, type System } from "../support/system.ts";
import { deferred } from "../support/waiting.ts";
import { startWorkerProcess } from "../support/worker-process.ts";

/** What the provider reports for each answer: 100 tokens. */
const usage = {
  ...{ input_tokens: 60, output_tokens: 30 },
  ...{ cache_read_input_tokens: 6, cache_creation_input_tokens: 4 },
};
/** At the price of claude-opus-4-8: 60 × 5 + 30 × 25 + 6 × 0.5 + 4 × 6.25 millionths of a dollar. */
const COST = 1_078_000;
const costly = (...parts: readonly Part[]): Answer => answer(parts, { usage });
const list = toolCall("ls", {});

const MODEL = { MODEL: "claude-opus-4-8" };

async function spentBy({ system, id }: TestConversation) {
  const { conversation } = await readSums(system.db, id, dayOf(new Date()));
  return conversation;
}

const times = (count: number) => ({ tokens: 100 * count, nanodollars: COST * count, isPartlyUnknown: false });

/** A conversation whose model gives these answers; the name is that of its requests. */
async function talk(system: System, answers: readonly Answer[]) {
  const name = randomUUID();
  const conversation = await TestConversation.open(system, "unrestricted");
  await conversation.send(`go ${system.model.script(name, answers)}`);
  return { conversation, asked: () => system.model.requestsOf(name).length };
}

async function workerWith(system: System, limits: Partial<SpendingLimits>): Promise<RunningWorker> {
  const config = { ...system.config, spendingLimits: { ...NO_LIMITS, ...limits } };
  const worker = await startWorker(config, () => Promise.resolve(inject("bundlePath")), {
    shutdownLimit: 20_000,
  });
  system.defer(() => worker.stop());
  return worker;
}

describe("a conversation's limit", () => {
  test("ends the run in the middle of its rounds of tools, after the answer that reached it; raised, it goes on", async () => {
    const system = await startSystem({ workers: 0, env: MODEL });
    const strict = await workerWith(system, { conversation: { tokens: 200, dollars: null } });
    const { conversation, asked } = await talk(system, [costly(list), costly(list), costly("Done.")]);
    const state = await conversation.untilState("error");
    expect(state.errorKind).toBe("spending_limit");
    expect(state.message).toBe(
      "This conversation has spent 200 tokens, and may spend 200 tokens. Begin a new conversation, or raise LIMIT_CONVERSATION_TOKENS.",
    );
    expect(asked()).toBe(2);
    expect(await spentBy(conversation)).toEqual(times(2));
    // What was done stays, and every call has its result.
    expect(await conversation.types()).toEqual([
      ...["user", "agent", "tool", "agent", "tool"],
      ...["error", "run_stop"],
    ]);
    // Another conversation has a limit of its own.
    const other = await talk(system, [costly("Hello.")]);
    await other.conversation.untilState("idle");

    await strict.stop();
    await workerWith(system, { conversation: { tokens: 1_000, dollars: null } });
    await conversation.send("Go on.");
    await conversation.untilState("idle");
    expect(asked()).toBe(3);
    expect(await spentBy(conversation)).toEqual(times(3));
  });

  test("in dollars counts what each kind of token costs", async () => {
    const dollars = COST / 1e9;
    const system = await startSystem({ workers: 0, env: MODEL });
    await workerWith(system, { conversation: { tokens: null, dollars: Math.floor(dollars * 2e4) / 1e4 } });
    const { conversation, asked } = await talk(system, [costly(list), costly(list), costly("Done.")]);
    const { message } = await conversation.untilState("error");
    expect(message).toMatch(/spent \$0\.002156, and may spend \$0\.002100\..*LIMIT_CONVERSATION_DOLLARS/);
    expect(asked()).toBe(2);
  });

  test("that is lowered while a run works holds from its next request on, after a restart of the worker", async () => {
    const system = await startSystem({ workers: 0, env: MODEL });
    const generous = await workerWith(system, { conversation: { tokens: 10_000, dollars: null } });
    const held = hold();
    const { conversation, asked } = await talk(system, [
      costly(list),
      answer([text("Now. ", held), list], { usage }),
      costly("Done."),
    ]);
    await held.reached;
    await workerWith(system, { conversation: { tokens: 150, dollars: null } });
    held.release();
    // The tool or the request after it; in either way the next request is the other worker's.
    await generous.stop();
    const { errorKind } = await conversation.untilState("error");
    expect(errorKind).toBe("spending_limit");
    expect(asked()).toBe(2);
  });
});

test("a day's limit holds for all conversations, also for one that begins, and not for the day after", async () => {
  const system = await startSystem({ workers: 0, env: MODEL });
  await workerWith(system, { day: { tokens: 100, dollars: null } });
  const first = await talk(system, [costly("Hello."), costly("Hello again.")]);
  await first.conversation.untilState("idle");
  const second = await talk(system, [costly("never")]);
  const { message } = await second.conversation.untilState("error");
  expect(message).toBe(
    "All conversations together have spent 100 tokens today, and may spend 100 tokens. Wait until 00:00 UTC, or raise LIMIT_DAY_TOKENS.",
  );
  expect(second.asked()).toBe(0);
  // As midnight does it: what was spent is of the day before.
  await system.db.sql`update spending set day = day - 1`;
  await first.conversation.send("And now?");
  await first.conversation.untilState("idle");
  expect(first.asked()).toBe(2);
});

test("eight sub-agents at once overshoot by one answer each; then they and their parent are refused", async () => {
  const limit = 20_000;
  const large = 15_000;
  const system = await startSystem({ workers: 0, env: MODEL });
  await workerWith(system, { conversation: { tokens: limit, dollars: null } });
  const holds = Array.from({ length: 8 }, () => hold());
  const counts = { input_tokens: large - 1, output_tokens: 1, cache_read_input_tokens: 0 };
  const options = { usage: { ...counts, cache_creation_input_tokens: 0 } };
  const family = await spawnFamily(
    system,
    holds.map((held) => ({ script: [answer([text("… ", held), list], options), costly("never")] })),
  );
  await Promise.all(holds.map((held) => held.reached));
  // All eight were sent below the limit.
  const before = await spentBy(family.parent);
  expect(before.tokens).toBeLessThan(limit);
  for (const held of holds) held.release();
  const { text: report } = await family.report();
  expect(outcomesIn(report)).toEqual(holds.map(() => "Failed (spending_limit)"));
  expect((await family.parent.untilState("error")).errorKind).toBe("spending_limit");
  for (const name of [family.names.parent, ...family.names.children])
    expect(system.model.requestsOf(name)).toHaveLength(1);
  const { tokens } = await spentBy(family.parent);
  expect(tokens).toBe(before.tokens + 8 * large);
  expect(tokens).toBeLessThan(limit + 8 * large);
});

describe("exactly once", () => {
  test("a worker that dies between the commit and its answer counts the answer of the model once", async () => {
    const system = await startSystem({ workers: 0, env: MODEL });
    const killed = await startWorkerProcess(system, MODEL);
    const held = hold();
    const { conversation } = await talk(system, [
      answer([text("Now. ", held), list], { usage }),
      costly("Done."),
    ]);
    await held.reached;
    const release = await conversation.block();
    held.release();
    // Postgres has the commit of the answer, and goes on with it although nobody waits for it any more.
    await conversation.untilBlocked(1);
    killed.signal("SIGKILL");
    await killed.exited;
    await system.startWorker();
    await conversation.untilBlocked(2);
    await release();
    await conversation.untilState("idle");
    expect(await spentBy(conversation)).toEqual(times(2));
  });

  test("an answer that broke off and one that was stopped count with what the provider had reported", async () => {
    const system = await startSystem({ env: MODEL });
    const { conversation, asked } = await talk(system, [
      answer([text("half ", dropHere)], { usage }),
      costly("Whole."),
    ]);
    await conversation.untilState("idle");
    expect(asked()).toBe(2);
    // The count of output that a stream begins with is not the whole one.
    const first = await spentBy(conversation);
    expect(first.tokens).toBeGreaterThan(170);
    expect(first.tokens).toBeLessThanOrEqual(200);

    // The worker has read the beginning of the stream when it shows a text of it.
    const shown = deferred<undefined>();
    const held = hold();
    const stopped = await talk(system, [answer([text("Some text", held)], { usage })]);
    const live = system.notifications.onLive(() => shown.resolve(undefined));
    await shown.promise.finally(live);
    await stopped.conversation.cancel();
    await stopped.conversation.untilState("idle");
    expect((await spentBy(stopped.conversation)).tokens).toBeGreaterThan(70);
  });

  test("a summary counts, too; one that a limit refuses leaves a note", async () => {
    const system = await startSystem({ workers: 0, env: MODEL });
    const worker = await workerWith(system, {});
    const summed = await talk(system, [costly("Hello."), costly("A summary.")]);
    await summed.conversation.untilState("idle");
    await summed.conversation.windUp();
    expect(await summed.conversation.untilState("context_exhausted")).toMatchObject({ source: "model" });
    expect(await spentBy(summed.conversation)).toEqual(times(2));

    await worker.stop();
    await workerWith(system, { conversation: { tokens: 100, dollars: null } });
    const refused = await talk(system, [costly("Hello."), costly("never")]);
    await refused.conversation.untilState("idle");
    await refused.conversation.windUp();
    expect(await refused.conversation.untilState("context_exhausted")).toMatchObject({ source: "failed" });
    expect(JSON.stringify(await refused.conversation.messages())).toContain("LIMIT_CONVERSATION_TOKENS");
  });
});

/** The scripted provider has it, and no price of it is built in. */
const UNPRICED = "claude-mythos-preview";

test("a model without a price costs an unknown amount; with a limit in dollars it is refused, until it has one", async () => {
  const system = await startSystem({ workers: 0, env: { MODEL: UNPRICED } });
  const worker = await workerWith(system, { day: { tokens: 1_000_000, dollars: null } });
  const first = await talk(system, [costly("Hello."), costly("Priced.")]);
  await first.conversation.untilState("idle");
  expect(await spentBy(first.conversation)).toEqual({ tokens: 100, nanodollars: 0, isPartlyUnknown: true });
  await worker.stop();

  const strict = await workerWith(system, { day: { tokens: null, dollars: 5 } });
  const second = await talk(system, [costly("never")]);
  const { message } = await second.conversation.untilState("error");
  expect(message).toMatch(
    /What claude-mythos-preview costs is not known, so LIMIT_DAY_DOLLARS cannot be kept\..*MODELS_FILE/,
  );
  expect(second.asked()).toBe(0);
  await strict.stop();

  const file = join(system.cwd, "models.json");
  const price = { input: 5, output: 25, cacheRead: 0.5, cacheCreation: 6.25 };
  const models = [{ id: UNPRICED, price }];
  await writeFile(file, JSON.stringify({ models }));
  await startWorkerProcess(system, { MODEL: UNPRICED, MODELS_FILE: file, LIMIT_DAY_DOLLARS: "5" });
  await first.conversation.send("And now?");
  await first.conversation.untilState("idle");
  expect(await spentBy(first.conversation)).toEqual({
    tokens: 200,
    nanodollars: COST,
    isPartlyUnknown: true,
  });
});
