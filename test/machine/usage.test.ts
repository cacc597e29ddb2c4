/** Token counts (REQ-BED-012, 019, 022, 023): sums, the context's size, the warning at 80 %, sent once. */
import { describe, expect, test } from "vitest";
import { contextRatio, isExhausted, isWarning, totalTokens } from "../../machine/usage.ts";
import { response, say } from "./events.ts";
import { History } from "./history.ts";
import { call, requesting, usage } from "./states.ts";
import { contextOf, expectOutcome, noticeNames } from "./support.ts";

const counts = { inputTokens: 1, outputTokens: 20, cacheReadTokens: 300, cacheCreationTokens: 4_000 };

describe("counts", () => {
  test("the context is input + output + cache-read + cache-creation tokens of the last response", () => {
    expect(totalTokens(counts)).toBe(4_321);
    const history = new History();
    history.give(say());
    history.respond([call("t1", "fly")], { usage: counts });
    history.respond([], { usage: { ...counts, inputTokens: 5 } });
    expect(history.conversation.usage).toEqual({
      inputTokens: 6,
      outputTokens: 40,
      cacheReadTokens: 600,
      cacheCreationTokens: 8_000,
      contextUsed: 4_325,
      contextWindow: 100_000,
    });
    expect(history.conversation.lastUsage).toEqual({ ...counts, inputTokens: 5 });
  });

  test("clients get sums, window, ratio and warning", () => {
    const step = expectOutcome(requesting(), response([], { usage: usage(25_000) }));
    expect(step.notices[0]).toEqual({
      name: "usage.changed",
      data: {
        usage: {
          ...usage(25_000),
          contextUsed: 25_000,
          contextWindow: 100_000,
          contextRatio: 0.25,
          warning: false,
        },
      },
    });
    const high = expectOutcome(requesting(), response([], { usage: usage(80_000) }));
    expect(high.notices[1]).toMatchObject({ data: { usage: { contextRatio: 0.8, warning: true } } });
  });
});

test("a response is counted against the window that comes with it, not the context's older one", () => {
  const history = new History();
  history.give(say());
  const step = history.respond([], { usage: usage(95_000), contextWindow: 1_000_000 });
  expect(step.conversation.state.kind).toBe("idle");
  expect(step.conversation.usage).toMatchObject({ contextUsed: 95_000, contextWindow: 1_000_000 });
  history.give(say("again"));
  expect(history.respond([], { usage: usage(95_000) }).conversation.state.kind).toBe("awaiting_continuation");
});

describe("the thresholds", () => {
  test("are exact where floating point is not: 80 and 90 percent of odd windows", () => {
    for (const window of [1, 7, 10, 30, 70, 1_000, 128_000, 200_000, 1_000_000]) {
      const warnAt = Math.ceil((window * 4) / 5);
      const fullAt = Math.ceil((window * 9) / 10);
      expect([isWarning(warnAt - 1, window), isWarning(warnAt, window)]).toEqual([false, true]);
      expect([isExhausted(fullAt - 1, window), isExhausted(fullAt, window)]).toEqual([false, true]);
    }
  });

  test("follow the model's window", () => {
    const small = contextOf({ contextWindow: 1_000 });
    expect(expectOutcome(requesting(), response([], { usage: usage(900) }), small).state.kind).toBe(
      "awaiting_continuation",
    );
    expect(contextRatio(500, 1_000)).toBe(0.5);
  });
});

describe("the warning", () => {
  test("is sent once, at 80 %", () => {
    const history = new History();
    history.give(say());
    const below = history.respond([call("t1", "fly")], { usage: usage(79_999) });
    expect(noticeNames(below)).not.toContain("context.warned");
    const reached = history.respond([call("t2", "fly")], { usage: usage(80_000) });
    expect(reached.notices[0]).toEqual({ name: "context.warned", data: { contextRatio: 0.8 } });
    expect(history.conversation.warned).toBe(true);
    expect(noticeNames(history.respond([], { usage: usage(85_000) }))).not.toContain("context.warned");
  });
});
