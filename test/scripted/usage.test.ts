/** The model of the prompt cache: the tokens that are paid in full, written, and read. */
import { describe, expect, test } from "vitest";
import type { BlockParam, MessagesRequest } from "../../local/scripted/messages.ts";
import { say } from "../../local/scripted/script.ts";
import { countTokens, hitRatio, MIN_CACHED_TOKENS, PromptCache } from "../../local/scripted/usage.ts";
import { ask, imageBlock, imageFile, post, useScriptedServer } from "./support.ts";

const long = "x".repeat(4 * MIN_CACHED_TOKENS);
const text = (text: string, marked = false, ttl?: "1h"): BlockParam => ({
  ...{ type: "text", text },
  ...(marked && { cache_control: { type: "ephemeral", ...(ttl && { ttl }) } }),
});
const request = (content: BlockParam[], more: Partial<MessagesRequest> = {}): MessagesRequest => ({
  ...{ model: "claude-sonnet-5", max_tokens: 1, messages: [{ role: "user", content }] },
  ...more,
});
const total = (usage: object): number =>
  Object.values(usage).reduce((sum: number, count: unknown) => sum + Number(count), 0);

describe("the prompt cache", () => {
  test("holds nothing without a breakpoint", () => {
    const cache = new PromptCache();
    cache.read(request([text(long)]));
    expect(cache.read(request([text(long)])).usage).toMatchObject({
      cache_creation_input_tokens: 0,
      cache_read_input_tokens: 0,
    });
  });

  test("is written up to the last breakpoint, then read", () => {
    const cache = new PromptCache();
    const { usage: first } = cache.read(request([text(long, true), text("tail")]));
    expect(first.cache_read_input_tokens).toBe(0);
    expect(first.cache_creation_input_tokens).toBeGreaterThanOrEqual(MIN_CACHED_TOKENS);
    expect(first.input_tokens).toBeGreaterThan(0);
    const { usage: second } = cache.read(request([text(long, true), text("tail")]));
    expect(second).toEqual({
      ...first,
      cache_creation_input_tokens: 0,
      cache_read_input_tokens: first.cache_creation_input_tokens,
    });
    expect(total(second)).toBe(countTokens(request([text(long, true), text("tail")])));
  });

  test("is read for the old part of a growing conversation, and written for the new part", () => {
    const cache = new PromptCache();
    const { cache_creation_input_tokens: written } = cache.read(request([text(long, true)])).usage;
    const { usage: grown } = cache.read(request([text(long), text("more of it", true)]));
    expect(grown.cache_read_input_tokens).toBe(written);
    expect(grown.cache_creation_input_tokens).toBeGreaterThan(0);
    expect(grown.input_tokens).toBe(0);
  });

  test.each<[string, MessagesRequest]>([
    ["the text before the breakpoint", request([text(`${long}!`, true)])],
    ["the tools", request([text(long, true)], { tools: [{ name: "ls", input_schema: { type: "object" } }] })],
    ["the system prompt", request([text(long, true)], { system: "Be brief." })],
    ["the model", request([text(long, true)], { model: "claude-opus-5" })],
  ])("is missed when %s changes", (_what, changed) => {
    const cache = new PromptCache();
    cache.read(request([text(long, true)]));
    expect(cache.read(changed).usage.cache_read_input_tokens).toBe(0);
  });

  test("does not keep short prefixes", () => {
    const cache = new PromptCache();
    expect(cache.read(request([text("short", true)])).usage).toMatchObject({
      cache_creation_input_tokens: 0,
    });
  });

  test("looks back 20 blocks and no further", () => {
    const after = (count: number): number => {
      const cache = new PromptCache();
      cache.read(request([text(long, true)]));
      const more = Array.from({ length: count }, (_, i) => text(String(i), i === count - 1));
      return cache.read(request([text(long), ...more])).usage.cache_read_input_tokens;
    };
    expect(after(19)).toBeGreaterThan(0);
    expect(after(20)).toBe(0);
  });

  test("knows how much the best breakpoints could have read, and the ratio that was read", () => {
    const cache = new PromptCache();
    expect(cache.read(request([text(long)])).use).toEqual({ read: 0, possible: 0 });
    const without = cache.read(request([text(long), text("tail", true)])).use;
    expect(without.read).toBe(0);
    expect(without.possible).toBeGreaterThanOrEqual(MIN_CACHED_TOKENS);
    const withOne = cache.read(request([text(long), text("tail", true)])).use;
    expect(withOne.read).toBe(withOne.possible);
    expect(hitRatio([without, withOne])).toBeCloseTo(withOne.read / (without.possible + withOne.possible));
    expect(hitRatio([])).toBe(1);
  });

  test("forgets after five minutes, or an hour on request; a read renews the time", () => {
    let now = 0;
    const cache = new PromptCache(() => now);
    const short = request([text(long, true)]);
    const hour = request([text(`${long}h`, true, "1h")]);
    cache.read(short);
    cache.read(hour);
    const read = (at: number, body: MessagesRequest): number => {
      now = at;
      return cache.read(body).usage.cache_read_input_tokens;
    };
    expect(read(299_000, short)).toBeGreaterThan(0);
    expect(read(598_000, short)).toBeGreaterThan(0);
    expect(read(1_000_000, short)).toBe(0);
    expect(read(3_500_000, hour)).toBeGreaterThan(0);
  });
});

test("an image counts by its pixels, not by its bytes", () => {
  const image = (side: number): number =>
    countTokens(request([imageBlock(imageFile("image/png", side, side)) as unknown as BlockParam]));
  expect(image(1500) - image(750)).toBe(2250);
});

const server = useScriptedServer({ fallback: () => say("Fine.") });

test("a response reports the cache", async () => {
  const body = ask("", { messages: request([text(long, true)]).messages as never });
  const cached = { cache_creation_input_tokens: expect.any(Number) as unknown, cache_read_input_tokens: 0 };
  const first = await post(server(), body);
  expect(first.body["usage"]).toMatchObject(cached);
  const second = await post(server(), body);
  expect(second.body["usage"]).toMatchObject({
    ...{ input_tokens: 0, cache_creation_input_tokens: 0 },
    cache_read_input_tokens: (first.body["usage"] as typeof cached).cache_creation_input_tokens,
  });
});
