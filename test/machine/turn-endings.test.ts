/** Every sentence of the section "How a response ends a turn". */
import { outcomeOf } from "../../machine/outcome.ts";
import { describe, expect, test } from "vitest";
import { response, say, steer } from "./events.ts";
import { History } from "./history.ts";
import { call, conversationIn, requesting, RUN, submitCall, usage } from "./states.ts";
import {
  expectOutcome,
  inState,
  limited,
  orderKinds,
  orderOf,
  outline,
  ROOT,
  SUB_AGENT,
  textOf,
} from "./support.ts";

const cut = { stopReason: "max_tokens" };

describe("How a response ends a turn", () => {
  test.for(["end_turn", "stop_sequence", "tool_use", "", "something_new"])(
    "`end_turn` without tools → idle: %s",
    (stopReason) => {
      const step = expectOutcome(requesting(), response([], { stopReason }));
      expect(step.state).toEqual({ kind: "idle" });
      expect(step.orders).toEqual([]);
    },
  );

  test.for(["end_turn", "tool_use", "pause_turn", "max_tokens"])(
    "calls run whatever the stop reason says: %s",
    (stopReason) => {
      const step = expectOutcome(requesting(), response([call("t1")], { stopReason }));
      expect(orderOf(step, "execute_tool").call.id).toBe("t1");
    },
  );

  test("`pause_turn` → ask again as it stands", () => {
    const step = expectOutcome(requesting({ attempt: 3 }), response([], { stopReason: "pause_turn" }));
    expect(outline(step.messages)).toEqual(["agent"]);
    expect(orderOf(step, "request_llm").attempt).toBe(1);
    expect(step.conversation.run?.requests).toBe(2);
  });

  test("`max_tokens` with text only → ask again with a synthetic user line, at most 3 times", () => {
    const history = new History();
    history.give(say());
    for (let time = 1; time <= 3; time += 1) {
      const step = history.respond([], cut);
      expect(outline(step.messages)).toEqual(["agent", "system"]);
      expect(textOf(step.messages[1])).toContain("Continue exactly where it ended");
      expect(orderOf(step, "request_llm").attempt).toBe(1);
      expect(step.conversation.run?.truncations).toBe(time);
    }
    const last = history.respond([], cut);
    expect(outline(last.messages)).toEqual(["agent", "note", "run_stop completed"]);
    expect(textOf(last.messages[1])).toBe("The answer was cut off by the output limit.");
    expect(last.state).toEqual({ kind: "idle" });
  });

  test("only cut-offs in a row count: a response with calls resets the count", () => {
    const history = new History();
    history.give(say());
    for (let time = 1; time <= 3; time += 1) history.respond([], cut);
    history.respond([call("t1")]);
    history.finishTool();
    expect(orderKinds(history.respond([], cut))).toEqual(["request_llm"]);
  });

  test("`max_tokens` with a cut tool_use → that call is `failed` (truncated)", () => {
    const defects = [{ call: 1, defect: "truncated" }] as const;
    const history = new History();
    history.give(say());
    history.respond([call("t1"), call("t2", "write")], { ...cut, defects });
    const step = history.finishTool();
    expect(outline(step.messages)).toEqual(["tool t1 completed", "tool t2 failed"]);
    expect(textOf(step.messages[1])).toContain("cut off by the output limit, so it was not executed");
    expect(orderKinds(step)).toEqual(["request_llm"]);
  });

  test("`refusal` → idle with a note; its calls do not run", () => {
    const step = expectOutcome(requesting(), response([call("t1")], { stopReason: "refusal" }));
    expect(step.state).toEqual({ kind: "idle" });
    expect(outline(step.messages)).toEqual(["agent", "tool t1 skipped", "note", "run_stop completed"]);
    expect(textOf(step.messages[1])).toBe("Skipped: the response was a refusal.");
    expect(textOf(step.messages[2])).toBe("The model declined to answer.");
    expect(step.orders).toEqual([]);
  });

  test("Empty content is stored", () => {
    const step = expectOutcome(requesting(), response([], { content: [] }));
    expect(step.messages[0]).toMatchObject({ type: "agent", content: [] });
    expect(step.state).toEqual({ kind: "idle" });
  });

  test("A run makes at most 200 requests: then `error{runaway}`", () => {
    const before = conversationIn(requesting(), { run: { ...RUN, requests: 199 } });
    const last = expectOutcome(before, response([], { stopReason: "pause_turn" }));
    expect(last.conversation.run?.requests).toBe(200);
    const { requestId } = inState(last, "llm_requesting");
    const step = expectOutcome(
      last.conversation,
      response([], { requestId, stopReason: "pause_turn" }),
      ROOT,
      2,
    );
    const message = "The agent was stopped after 200 requests in one run. Send a message to let it go on.";
    expect(step.state).toEqual({ kind: "error", message, errorKind: "runaway" });
    expect(outline(step.messages)).toEqual(["agent", "error runaway", "run_stop error"]);
    expect(step.orders).toEqual([]);
  });

  test("the limit is configurable, tool rounds count, and a new message starts a new count", () => {
    const history = new History(limited({ requestsPerRun: 2 }));
    history.give(say());
    history.respond([call("t1")]);
    history.finishTool();
    history.give(steer("m2"));
    history.respond([call("t2")]);
    const stopped = history.finishTool();
    expect(outline(stopped.messages)).toEqual([
      "tool t2 completed",
      "error runaway",
      "steer m2",
      "run_stop error",
    ]);
    expect(history.give(say("m3")).conversation.run?.requests).toBe(1);
  });

  test("a steer that is pending prolongs the run", () => {
    const history = new History();
    history.give(say());
    history.give(steer("m2"));
    const step = history.respond();
    expect(outline(step.messages)).toEqual(["agent", "steer m2"]);
    expect(orderKinds(step)).toEqual(["request_llm"]);
  });
});

describe("At 90 % of the window, whatever the response holds", () => {
  const full = { usage: usage(90_000) };

  test.for(["end_turn", "pause_turn", "max_tokens", "refusal"])(
    "its answer is stored and the continuation starts (no run_stop in between): %s",
    (stopReason) => {
      const step = expectOutcome(requesting(), response([], { ...full, stopReason }));
      expect(outline(step.messages)).toEqual(["agent"]);
      expect(orderKinds(step)).toEqual(["request_continuation"]);
    },
  );

  test("its calls are answered `skipped`", () => {
    const calls = [call("t1"), call("t2", "fly")];
    const step = expectOutcome(requesting(), response(calls, full));
    expect(outline(step.messages)).toEqual(["agent", "tool t1 skipped", "tool t2 skipped"]);
    expect(textOf(step.messages[1])).toBe("Not executed: the context window is nearly full.");
    expect(orderOf(step, "request_continuation").rejectedToolCalls).toEqual(calls);
  });

  test("a response that the full window cut off starts the continuation, whatever its token counts", () => {
    const step = expectOutcome(requesting(), response([], { stopReason: "model_context_window_exceeded" }));
    expect(orderKinds(step)).toEqual(["request_continuation"]);
  });

  test("a sub-agent fails instead, and a valid `submit_result` in that response is kept as `partialResult`", () => {
    const calls = [
      call("t1"),
      call("t2", "submit_result", { result: 1 }),
      submitCall("t3", "half of it"),
      submitCall("t4", "more"),
    ];
    const step = expectOutcome(requesting(), response(calls, full), SUB_AGENT);
    const outcome = {
      error: "Context window exhausted",
      errorKind: "context_exhausted",
      partialResult: "half of it",
    };
    expect(step.state).toEqual({ kind: "failed", ...outcome });
    expect(outcomeOf(step.state)).toEqual(outcome);
    expect(step.orders).toEqual([]);
    expect(outline(step.messages)).toEqual([
      "agent",
      "tool t1 skipped",
      "tool t2 skipped",
      "tool t3 skipped",
      "tool t4 skipped",
      "error context_exhausted",
      "run_stop error",
    ]);
  });

  test("a submission that was cut off, or another tool's input, is not a partial result", () => {
    const defects = [{ call: 0, defect: "truncated" }] as const;
    const calls = [submitCall("t1", "cut"), call("t2", "bash", { result: "no" })];
    const step = expectOutcome(requesting(), response(calls, { ...full, defects }), SUB_AGENT);
    expect(step.state).toEqual({
      kind: "failed",
      error: "Context window exhausted",
      errorKind: "context_exhausted",
    });
  });
});
