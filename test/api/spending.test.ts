/** Limits on spending over HTTP: what is refused, what is shown, and that a refusal changes nothing. */
import { randomUUID } from "node:crypto";
import { describe, expect, test } from "vitest";
import { commit } from "../../db/commit.ts";
import type { Charge } from "../../machine/message.ts";
import { dayOf, NO_LIMITS, type SpendingLimits } from "../../protocol/spending.ts";
import { answer } from "../../local/scripted/script.ts";
import { chain, createConversation } from "../db/fixtures.ts";
import { startSystem } from "../support/system.ts";
import { Person } from "./person.ts";
import { bodyOf, problemOf, startApi, startApiOn } from "./support.ts";

const MODEL = "claude-opus-4-8";

/** 1,000 tokens for 2 dollars. */
const CHARGE: Charge = {
  ...{ inputTokens: 400, outputTokens: 300, cacheReadTokens: 200, cacheCreationTokens: 100 },
  nanodollars: 2_000_000_000,
};

/** An API with these limits, which reaches no workflow, and a conversation that has spent two dollars. */
async function apiWith(limits: Partial<SpendingLimits>, model = MODEL) {
  const api = await startApi({ spendingLimits: { ...NO_LIMITS, ...limits } });
  const { id, head } = await createConversation(api.db, {}, { config: { model } });
  await commit(api.db, id, chain([{ charges: [CHARGE] }], head));
  const counted = async () => (await api.db.sql`select from messages union all select from queue`).length;
  return { ...api, id, counted };
}

describe("a message", () => {
  test("to a conversation at its limit is refused with 409, and changes nothing", async () => {
    const { send, id, counted } = await apiWith({ conversation: { tokens: 1_000, dollars: null } });
    for (const delivery of ["direct", "steer", "followUp"]) {
      const response = await send("POST", `/api/conversations/${id}/messages`, { text: "Go on.", delivery });
      expect(await problemOf(response)).toMatchObject({
        status: 409,
        code: "conversation_limit_reached",
        detail:
          "This conversation has spent 1,000 tokens, and may spend 1,000 tokens. Begin a new conversation, or raise LIMIT_CONVERSATION_TOKENS.",
      });
      expect(response.headers.get("retry-after")).toBeNull();
    }
    expect(await counted()).toBe(0);
    const summary = await send("POST", `/api/conversations/${id}/continuation`);
    expect((await problemOf(summary)).code).toBe("conversation_limit_reached");
  });

  test("on a day at its limit is refused with 429 until midnight", async () => {
    const { send, id, counted } = await apiWith({ day: { tokens: null, dollars: 2 } });
    const response = await send("POST", `/api/conversations/${id}/messages`, { text: "Go on." });
    expect(await problemOf(response)).toMatchObject({
      status: 429,
      code: "daily_limit_reached",
      detail:
        "All conversations together have spent $2.00 today, and may spend $2.00. Wait until 00:00 UTC, or raise LIMIT_DAY_DOLLARS.",
    });
    const seconds = Number(response.headers.get("retry-after"));
    const now = Date.now();
    const midnight = Date.parse(`${dayOf(new Date(now))}T00:00:00Z`) + 86_400_000;
    expect(Math.abs(now + seconds * 1_000 - midnight)).toBeLessThan(30_000);
    expect(await counted()).toBe(0);
  });

  test("in a conversation whose model has no price is refused where dollars are limited", async () => {
    const { send, id } = await apiWith({ conversation: { tokens: null, dollars: 100 } }, "own-model");
    const response = await send("POST", `/api/conversations/${id}/messages`, { text: "Go on." });
    const { status, code, detail } = await problemOf(response);
    expect({ status, code }).toEqual({ status: 409, code: "no_price" });
    expect(detail).toContain("MODELS_FILE");
  });

  test("that was taken before is answered as it stands, also at the limit", async () => {
    const { send, id, db } = await apiWith({ conversation: { tokens: 1_000, dollars: null } });
    await db.sql`insert into messages (conversation_id, id, sequence_id, message_type, actor_kind, content, display_data, created_at)
      values (${id}, 'm1', 1, 'user', 'human', '[{"type":"text","text":"Go on."}]', '{"kind":"direct"}', now())`;
    const response = await send("POST", `/api/conversations/${id}/messages`, { id: "m1", text: "Go on." });
    expect(response.status).toBe(202);
  });
});

describe("what is shown", () => {
  test("a conversation has what it spent; the day has its sum and the limits", async () => {
    const limits = { conversation: { tokens: 5_000, dollars: 10 }, day: { tokens: null, dollars: 20 } };
    const { get, id } = await apiWith(limits);
    expect(await bodyOf(await get(`/api/conversations/${id}`))).toMatchObject({
      spent: { tokens: 1_000, dollars: 2 },
    });
    expect(await bodyOf(await get("/api/spending"))).toEqual({
      day: { date: dayOf(new Date()), spent: { tokens: 1_000, dollars: 2 }, limit: limits.day },
      conversation: { limit: limits.conversation },
    });
  });

  test("a cost that is not known is null, and never 0", async () => {
    const { get, db } = await apiWith({});
    const { id, head } = await createConversation(db);
    await commit(db, id, chain([{ charges: [{ ...CHARGE, nanodollars: null }] }], head));
    expect(await bodyOf(await get(`/api/conversations/${id}`))).toMatchObject({
      spent: { tokens: 1_000, dollars: null },
    });
    expect(await bodyOf(await get("/api/spending"))).toMatchObject({
      day: { spent: { tokens: 2_000, dollars: null } },
    });
  });

  test("a model has its price", async () => {
    const { get } = await apiWith({});
    const { models } = (await bodyOf(await get("/api/models"))) as {
      models: { id: string; price: unknown }[];
    };
    expect(models.find(({ id }) => id === MODEL)?.price).toEqual({
      ...{ input: 5, output: 25, cacheRead: 0.5, cacheCreation: 6.25 },
    });
  });
});

test("on the whole system: the sum comes with the usage, and at the day's limit no conversation is made", async () => {
  const system = await startSystem({ env: { MODEL } });
  const limits = { ...NO_LIMITS, day: { tokens: 100, dollars: null } };
  const api = startApiOn(system, { defaultModel: MODEL, spendingLimits: limits });
  const person = new Person(api, system.cwd);
  const usage = {
    ...{ input_tokens: 60, output_tokens: 40 },
    ...{ cache_read_input_tokens: 0, cache_creation_input_tokens: 0 },
  };
  const tag = system.model.script(randomUUID(), [answer(["Hello."], { usage })]);
  const id = await person.create({ message: { text: `go ${tag}` } });
  await expect.poll(() => person.stateOf(id), { timeout: 20_000 }).toBe("idle");
  // 60 × 5 + 40 × 25 millionths of a dollar.
  expect(await person.conversation(id)).toMatchObject({ spent: { tokens: 100, dollars: 0.0013 } });
  const body = { cwd: system.cwd, message: { text: "Another." } };
  const refused = await api.send("POST", "/api/conversations", body);
  expect(await problemOf(refused)).toMatchObject({ status: 429, code: "daily_limit_reached" });
  expect(await system.db.sql`select from conversations`).toHaveLength(1);
});
