import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { buildContinuationRequest, estimateTokens } from "../../llm/continuation.ts";
import { MIN_WINDOW, Models } from "../../llm/models.ts";
import type { Json } from "../../local/scripted/messages.ts";
import { validateRequest } from "../../local/scripted/validate.ts";
import type { Message } from "../../machine/message.ts";
import * as m from "./messages.ts";

const MODEL = new Models().of("claude-haiku-4-5");
/** A model with the smallest window that there is. */
const SMALLEST = new Models({ file: [{ id: "small", contextWindow: MIN_WINDOW }] }).of("small");
const build = (messages: readonly Message[], rejectedTools: readonly string[] = []) =>
  buildContinuationRequest({ messages, model: MODEL, rejectedTools });
const textsOf = (messages: readonly Message[], rejectedTools: readonly string[] = []): readonly string[] => {
  const content = build(messages, rejectedTools).messages[0]?.content ?? [];
  return typeof content === "string"
    ? [content]
    : content.map((block) => (block.type === "text" ? block.text : ""));
};

describe("REQ-BED-020: the request for a continuation summary", () => {
  test("has no tools, the history as text, and names the calls that were not executed", () => {
    const messages = m.stored(
      m.user("Fix the test"),
      m.agent([
        { type: "thinking", thinking: "hidden", signature: "s" },
        m.text("Looking"),
        m.call("a", "read"),
      ]),
      m.tool("a", "the content"),
      m.note("for the person"),
      m.runStop,
    );
    expect(build(messages)).not.toHaveProperty("tools");
    expect(build(messages).messages).toHaveLength(1);
    const [history = "", prompt = ""] = textsOf(messages, ["bash", "write"]);
    for (const part of ["Fix the test", "Looking", 'calls "read"', "the content"])
      expect(history).toContain(part);
    expect(history).not.toMatch(/hidden|for the person/);
    expect(prompt).toContain("brief continuation summary");
    expect(prompt).toMatch(/requested but not executed due to context limits:\n- bash\n- write$/);
    expect(textsOf(messages)[1]).not.toContain("not executed");
  });

  test("keeps the task and the newest messages when not everything fits", () => {
    const filler = Array.from({ length: 400 }, (_, n) =>
      m.tool(`call ${n}`, `${"word ".repeat(2_000)}#${n}`),
    );
    const [history = ""] = textsOf(m.stored(m.user("The task"), ...filler, m.user("The newest")));
    expect(history).toContain("The task");
    expect(history).toContain("The newest");
    expect(history).toContain("#399");
    expect(history).not.toContain("#0\n");
    expect(history).toMatch(/… \d+ messages left out …/);
  });

  test("keeps the other messages beside one huge output", () => {
    const huge = m.tool("a", `start ${"x".repeat(5_000_000)} end`);
    const [history = ""] = textsOf(m.stored(m.user("The task"), m.user("An old remark"), huge));
    expect(history).toContain("An old remark");
    expect(history).toMatch(/start x+\n\[… \d+ characters cut …\]\nx+ end/);
  });

  test("property: it fits the window whatever the sizes, and the provider accepts it", () => {
    const words = fc.oneof(
      fc
        .constantFrom("word ", "{[()]};", "0123456789", "語", "🙂", "é")
        .chain((unit) => fc.integer({ min: 0, max: 400_000 }).map((times) => unit.repeat(times))),
      fc.string(),
    );
    const body = fc.oneof(
      words.map((word) => m.user(word)),
      words.map((word) => m.tool("a", word)),
      words.map((word) => m.agent([m.text(word)])),
    );
    fc.assert(
      fc.property(fc.array(body, { maxLength: 8 }), (bodies) => {
        for (const model of [MODEL, SMALLEST]) {
          const { max_tokens, messages } = buildContinuationRequest({
            ...{ messages: m.stored(...bodies), model },
            rejectedTools: Array.from({ length: 200 }, () => "語".repeat(200)),
          });
          const [{ content } = { content: "" }] = messages;
          const texts =
            typeof content === "string" ? [content] : content.map((block) => JSON.stringify(block));
          const tokens = texts.reduce((sum, text) => sum + estimateTokens(text), 0);
          expect(tokens + max_tokens).toBeLessThan(model.contextWindow);
        }
        const request = build(m.stored(...bodies));
        expect(validateRequest(JSON.parse(JSON.stringify(request)) as Json)).toBeNull();
        expect(JSON.stringify(request)).not.toMatch(/\\ud[89a-f][0-9a-f]{2}/);
      }),
      { numRuns: 40 },
    );
  });
});

test("the token estimate is above a tokenizer's count for prose, and never above the number of bytes", () => {
  expect(estimateTokens("The quick brown fox jumps over the lazy dog.")).toBeGreaterThan(10);
  fc.assert(
    fc.property(fc.string({ unit: "grapheme" }), (text) => {
      expect(estimateTokens(text)).toBeLessThanOrEqual(Buffer.byteLength(text));
    }),
  );
});
