/** A provider that sends more than an answer may have: cut off at once, reported in a sentence, never retried. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Delta } from "../../llm/accumulate.ts";
import { ask, type LlmOutcome } from "../../llm/ask.ts";
import { createClient } from "../../llm/client.ts";
import { MAX_RESPONSE_BYTES } from "../../protocol/formats.ts";
import * as hostile from "../support/hostile-provider.ts";

const { ATTACKS, BEGINNING, END, event, flood, HEAD } = hostile;

const delta = (fields: object): string => event({ type: "content_block_delta", index: 0, delta: fields });
const text = (piece: string): string => delta({ type: "text_delta", text: piece });
const answer = (body: string): hostile.Attack => flood(HEAD + BEGINNING + body + END, "", 0);
/** Number of tokens of the longest answer. */
const TOKENS = 128_000;

const attacks: Readonly<Record<string, hostile.Attack>> = {
  ...ATTACKS,
  "one delta of an answer's size, each byte escaped": answer(text('"'.repeat(MAX_RESPONSE_BYTES / 2 - 100))),
  "a call's input, escaped twice": answer(
    event({ type: "content_block_start", index: 0, content_block: { type: "tool_use", name: "ls" } }) +
      delta({
        type: "input_json_delta",
        partial_json: `{"path":"${'\\"'.repeat(MAX_RESPONSE_BYTES / 2 - 100)}"}`,
      }),
  ),
  "a delta for each token, and as many pings": answer(
    (text("word") + event({ type: "ping" })).repeat(TOKENS),
  ),
  "one byte more than an answer may have": answer(text("x".repeat(MAX_RESPONSE_BYTES))),
  "more after the end": flood(HEAD + BEGINNING + END, text("x"), 100_000_000),
  "what cannot be unpacked": flood(
    HEAD.replace("connection:", "content-encoding: gzip\r\nconnection:"),
    "no gzip at all",
    50_000,
  ),
  "an overloaded proxy's endless page": flood(
    "HTTP/1.1 529 Overloaded\r\ncontent-type: text/html\r\nconnection: close\r\n\r\n",
    "<p>",
    100_000_000,
  ),
};

let provider: hostile.HostileProvider;
const encodings = new Set<unknown>();
beforeAll(async () => {
  provider = await hostile.startHostileProvider((body, request) => {
    encodings.add(request.headers["accept-encoding"]);
    const name = Object.keys(attacks).find((candidate) => body.includes(JSON.stringify(candidate))) ?? "";
    return attacks[name] === undefined ? null : [name, attacks[name]];
  });
});
afterAll(() => provider.close());

async function askFor(name: string, stallMs = 20_000): Promise<{ outcome: LlmOutcome; shown: number }> {
  let shown = 0;
  const outcome = await ask({
    client: createClient({ apiKey: "key", baseURL: provider.url }),
    request: {
      model: "any",
      max_tokens: 1,
      stream: true,
      messages: [{ role: "user", content: name }],
    },
    signal: new AbortController().signal,
    stallMs,
    onDelta: (piece: Delta) => (shown += piece.text.length),
  });
  return { outcome, shown };
}

describe("an answer that exceeds a limit is cut off there and not requested again", () => {
  test.each([
    ["a line without end", /bytes of text/],
    ["an event without end", /bytes of text/],
    ["deltas without end", /lines/],
    ["deltas that say nothing", /lines/],
    ["citations without end", /longer than/],
    ["calls without end", /more than 256 calls/],
    ["a call without a name", /no name/],
    ["a call with an endless name", /lines/],
    ["pings without end", /lines/],
    ["comments without end", /lines/],
    ["headers without end", /headers/],
    ["a compressed bomb", /bytes of text/],
    ["one byte more than an answer may have", /longer than/],
  ] as const)("because of %s", async (name, reason) => {
    const { outcome, shown } = await askFor(name);
    expect(outcome).toMatchObject({
      kind: "failed",
      retryable: false,
      message: expect.stringMatching(
        /^The model's answer could not be kept: .*\. Send a message to try again\.$/,
      ) as string,
    });
    expect(outcome).toMatchObject({ message: expect.stringMatching(reason) as string });
    expect(provider.asked(name)).toBe(1);
    // This includes the bytes in the sockets' buffers.
    expect(provider.sent(name)).toBeLessThan(60_000_000);
    expect(shown).toBeLessThanOrEqual(MAX_RESPONSE_BYTES);
  });
});

describe("a large answer within the limits", () => {
  test.each([
    "one delta of an answer's size, each byte escaped",
    "a call's input, escaped twice",
    "a delta for each token, and as many pings",
  ])("is accepted: %s", async (name) => {
    expect((await askFor(name)).outcome).toMatchObject({ kind: "response", stopReason: "end_turn" });
  });
});

describe("the body of an error", () => {
  test("without end is cut off, and the status alone classifies the error", async () => {
    const refused = await askFor("an error without end");
    expect(refused.outcome).toMatchObject({ errorKind: "invalid_request", retryable: false });
    const overloaded = await askFor("an overloaded proxy's endless page");
    expect(overloaded.outcome).toMatchObject({ errorKind: "overloaded", retryable: true });
    for (const name of ["an error without end", "an overloaded proxy's endless page"]) {
      await expect.poll(() => provider.wasCut(name)).toBe(true);
      expect(provider.sent(name)).toBeLessThan(20_000_000);
    }
  });
});

test("a provider that goes on after the end of its answer is disconnected", async () => {
  expect((await askFor("more after the end")).outcome).toMatchObject({ kind: "response" });
  await expect.poll(() => provider.wasCut("more after the end")).toBe(true);
});

test("an answer that cannot be decompressed counts as stalled, and does not hold the request for ever", async () => {
  const { outcome } = await askFor("what cannot be unpacked", 200);
  expect(outcome).toMatchObject({ kind: "failed", errorKind: "network", retryable: true });
});

test("requests ask for uncompressed answers", () => {
  expect([...encodings]).toEqual(["identity"]);
});
