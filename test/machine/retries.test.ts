/** Requests that fail (REQ-BED-006): attempts, delays, Retry-After as a lower bound, and which failures count. */
import { describe, expect, test } from "vitest";
import { awaitedOperation } from "../../machine/conversation.ts";
import { jitterOf } from "../../machine/ids.ts";
import { outcomeOf } from "../../machine/outcome.ts";
import { transition } from "../../machine/transition.ts";
import { lost, requestFailed, response, retryDue, say, steer } from "./events.ts";
import { History } from "./history.ts";
import { call, continuing, conversationIn, requesting, RETRY, RUN, usage } from "./states.ts";
import {
  expectNothing,
  expectOutcome,
  inState,
  limited,
  orderKinds,
  orderOf,
  outline,
  ROOT,
  START,
  stepOf,
  SUB_AGENT,
  textOf,
} from "./support.ts";

/** The delay that a failure of this attempt leads to, with jitter 0 to 1. */
function delayOf(attempt: number, retryAfterMs: number | null, seed: string): number {
  const stamp = { at: START, seed };
  const event = { ...requestFailed({ retryAfterMs }), stamp };
  const before = conversationIn(requesting({ attempt }));
  const answer = transition(before, ROOT, event);
  if (answer.kind === "rejected") return expect.fail(answer.rejection.code);
  const step = stepOf(before, answer);
  const { delayMs, requestId } = orderOf(step, "schedule_retry");
  const at = new Date(START + delayMs).toISOString();
  const why = { errorKind: "network", message: "connection reset" } as const;
  expect(step.state).toEqual({
    kind: "llm_requesting",
    attempt: attempt + 1,
    lost: 0,
    requestId,
    retry: { at, ...why },
  });
  expect(step.notices[0]).toEqual({
    name: "llm.retry_scheduled",
    data: { attempt: attempt + 1, delayMs, at, ...why },
  });
  return delayMs;
}

const NO_JITTER = "00000000-0000-4000-8000-000000000000";
const HALF_JITTER = "80000000-0000-4000-8000-000000000000";
const FULL_JITTER = "ffffffff-0000-4000-8000-000000000000";

describe("the delay", () => {
  test("is exponential: 1 s, then 2 s", () => {
    expect([1, 2].map((attempt) => delayOf(attempt, null, NO_JITTER))).toEqual([1_000, 2_000]);
  });

  test("gets up to a quarter of itself as jitter, from the event's seed", () => {
    expect([1, 2].map((attempt) => delayOf(attempt, null, HALF_JITTER))).toEqual([1_125, 2_250]);
    expect([1, 2].map((attempt) => delayOf(attempt, null, FULL_JITTER))).toEqual([1_250, 2_500]);
    expect(jitterOf({ at: 0, seed: FULL_JITTER })).toBeLessThan(1);
  });

  test("is never below Retry-After", () => {
    expect(delayOf(1, 500, NO_JITTER)).toBe(1_000);
    expect(delayOf(1, 7_000, NO_JITTER)).toBe(7_000);
    expect(delayOf(1, 60_000, NO_JITTER)).toBe(60_000);
  });
});

describe("giving up", () => {
  test("a Retry-After beyond the longest wait fails at once, in the provider's words", () => {
    const step = expectOutcome(
      requesting(),
      requestFailed({ retryAfterMs: 60_001, errorKind: "rate_limit" }),
    );
    expect(step.state).toEqual({ kind: "error", message: "connection reset", errorKind: "rate_limit" });
    expect(step.orders).toEqual([]);
  });

  test("3 attempts in all: two retries, then the error state", () => {
    const history = new History();
    history.give(say());
    for (const attempt of [2, 3]) {
      const { requestId } = inState(history.give(failureOf(history)), "llm_requesting");
      const again = history.give(retryDue(requestId));
      expect(orderOf(again, "request_llm").attempt).toBe(attempt);
    }
    expect(history.give(failureOf(history)).state.kind).toBe("error");
    expect(history.outline).toEqual(["direct m1", "error network", "run_stop error"]);
  });

  test("the number of attempts is configurable", () => {
    const once = limited({ attempts: 1 });
    const step = expectOutcome(requesting(), requestFailed(), once);
    expect(step.state).toMatchObject({ message: "Failed after 1 attempts: connection reset" });
  });

  test("each request has its own attempts", () => {
    const step = expectOutcome(requesting({ attempt: 3 }), response([call("t1", "fly")]));
    expect(orderOf(step, "request_llm").attempt).toBe(1);
  });

  test("a sub-agent fails and tells its parent", () => {
    const failure = requestFailed({ retryable: false, errorKind: "auth", message: "Invalid key" });
    const step = expectOutcome(requesting(), failure, SUB_AGENT);
    const outcome = { error: "Invalid key", errorKind: "auth" };
    expect(step.state).toEqual({ kind: "failed", ...outcome });
    expect(outcomeOf(step.state)).toEqual(outcome);
    expect(step.orders).toEqual([]);
    expect(outline(step.messages)).toEqual(["error auth", "run_stop error"]);
  });

  test("a steer that waited is stored just before the run_stop", () => {
    const waiting = expectOutcome(requesting(), steer("m2")).conversation;
    const step = expectOutcome(waiting, requestFailed({ retryable: false }), ROOT, 2);
    expect(outline(step.messages)).toEqual(["error network", "steer m2", "run_stop error"]);
  });

  test("a request that the context is too long for leads to the continuation", () => {
    const tooLong = requestFailed({ retryable: false, errorKind: "context_exhausted" });
    const step = expectOutcome(conversationIn(requesting(), { lastUsage: usage(7) }), tooLong);
    expect(inState(step, "awaiting_continuation")).toMatchObject({
      rejectedToolCalls: [],
      triggerUsage: usage(7),
    });
    expect(step.messages).toEqual([]);
    const subAgent = expectOutcome(requesting(), tooLong, SUB_AGENT);
    expect(subAgent.state).toMatchObject({ kind: "failed", errorKind: "context_exhausted" });
  });
});

describe("a request that is lost with its worker", () => {
  test("is asked again as the same attempt, under a new id", () => {
    const step = expectOutcome(requesting({ attempt: 3 }), lost());
    const order = orderOf(step, "request_llm");
    expect(order.attempt).toBe(3);
    expect(order.requestId).not.toBe("request");
    expect(step.messages).toEqual([]);
  });

  test("is given up after ten losses in a row: it may be what takes the worker down", () => {
    const history = new History();
    history.give(say());
    const lose = (): void => {
      history.give(lost(awaitedOperation(history.state) ?? ""));
    };
    for (let n = 1; n < 10; n++) {
      lose();
      expect(history.state).toMatchObject({ kind: "llm_requesting", attempt: 1, lost: n });
    }
    lose();
    expect(history.state).toMatchObject({ kind: "error", errorKind: "interrupted" });
    expect(inState(history, "error").message).toContain("10 times in a row");
  });

  test("is not in a row with losses before an answer, or before a failure that is tried again", () => {
    const history = new History();
    history.give(say());
    history.give(lost(awaitedOperation(history.state) ?? ""));
    history.give(requestFailed({ requestId: awaitedOperation(history.state) ?? "" }));
    expect(history.state).toMatchObject({ kind: "llm_requesting", attempt: 2, lost: 0 });
    history.give(retryDue(inState(history, "llm_requesting").requestId));
    history.give(lost(awaitedOperation(history.state) ?? ""));
    history.respond([call("t1")]);
    history.finishTool();
    expect(history.state).toMatchObject({ kind: "llm_requesting", lost: 0 });
  });

  test("ends a summary with the fallback, and a sub-agent with a failure", () => {
    const summary = expectOutcome(continuing({ lost: 9 }), lost("summary"));
    expect(inState(summary, "context_exhausted").source).toBe("failed");
    const subAgent = expectOutcome(requesting({ lost: 9 }), lost(), SUB_AGENT);
    expect(inState(subAgent, "failed").errorKind).toBe("interrupted");
  });

  test("counts for the runaway cap all the same", () => {
    const before = conversationIn(requesting(), { run: { ...RUN, requests: 200 } });
    expect(expectOutcome(before, lost()).state).toMatchObject({ kind: "error", errorKind: "runaway" });
  });
});

describe("a retry", () => {
  const waiting = requesting({ attempt: 2, retry: RETRY });

  test("takes steers along when it is due", () => {
    const queued = expectOutcome(waiting, steer("m2")).conversation;
    const step = expectOutcome(queued, retryDue(), ROOT, 2);
    expect(outline(step.messages)).toEqual(["steer m2"]);
    expect(orderOf(step, "request_llm").attempt).toBe(2);
  });

  test("is due for its own attempt only", () => {
    expectNothing(waiting, retryDue("other"));
    expectNothing(requesting(), retryDue());
    expectNothing(continuing(), retryDue("summary"));
  });

  test("ignores every outcome while it waits, because no request is in flight", () => {
    for (const event of [response(), requestFailed(), lost()]) expectNothing(waiting, event);
  });

  test("ignores the outcomes of another request", () => {
    const other = { requestId: "other" };
    for (const event of [response([], other), requestFailed(other), lost("other")]) {
      expectNothing(requesting(), event);
      expectNothing(continuing(), event);
    }
  });

  test("the error after the last attempt names the number of attempts and the cause", () => {
    const step = expectOutcome(requesting({ attempt: 3 }), requestFailed({ message: "503 from upstream" }));
    expect(textOf(step.messages[0])).toBe("Failed after 3 attempts: 503 from upstream");
    expect(orderKinds(step)).toEqual([]);
  });
});

function failureOf(history: History) {
  return requestFailed({ requestId: inState(history, "llm_requesting").requestId });
}
