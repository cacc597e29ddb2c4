/**
 * The fifteen invariants of the state machine, each a property of all walks (walks.ts). The checks of history.ts hold
 * in each of them too. Not here: the invariants of the modes (modes-invariants.test.ts).
 */
import assert from "node:assert/strict";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { awaitedOperation, isWorking, type State } from "../../machine/conversation.ts";
import type { ConversationEvent } from "../../machine/event.ts";
import type { RejectionCode } from "../../machine/rejection.ts";
import { outcomeOf } from "../../machine/outcome.ts";
import { transition } from "../../machine/transition.ts";
import {
  cancel,
  childFailed,
  lost,
  requestFailed,
  response,
  restarted,
  retryDue,
  say,
  summaryOf,
  toolDone,
} from "./events.ts";
import type { History } from "./history.ts";
import { conversationIn, requesting, usage } from "./states.ts";
import { apply, at, contextOf, expectOutcome, outline, type Step } from "./support.ts";
import { contextFor, go, settings, walks, type Seen, type Walk } from "./walks.ts";

/** Asserts for all walks; `look` sees each event with its answer, `end` the whole history. */
function always(
  look: (seen: Seen) => void,
  end: (history: History, walk: Walk) => void = () => undefined,
): void {
  fc.assert(
    fc.property(walks, (walk) => end(go(walk, look), walk)),
    settings,
  );
}

const accepted = ({ answer }: Seen): Step | null => (typeof answer === "string" ? null : answer);

/** The outcome of an event at this point. The history stays as it is. */
function wouldBe(history: History, event: ConversationEvent): Step | RejectionCode {
  return apply(history.conversation, history.context, event, 1_000_000);
}

/** The event that ends what is being stopped. */
function endOf(state: Extract<State, { kind: "cancelling" }>, id: string): ConversationEvent {
  switch (state.stopping) {
    case "request":
      return lost(state.requestId);
    case "tool":
      return toolDone("printed", { operationId: state.operationId });
    case "sub_agents":
      return childFailed(id);
  }
}

describe("Invariants of the state machine", () => {
  test("1. Any event sequence keeps the state valid: attempt in range, no duplicate tool ids, every tool_use answered by exactly one tool_result before the next LLM request", () => {
    always(
      () => undefined,
      (history) => {
        const open = new Set<unknown>();
        for (const step of history.steps) {
          for (const message of step.messages) {
            if (message.type === "agent") {
              for (const block of message.content) if (block.type === "tool_use") open.add(block["id"]);
            }
            if (message.type === "tool") expect(open.delete(message.content[0].toolCallId)).toBe(true);
          }
          const asks = step.orders.some(
            ({ kind }) => kind === "request_llm" || kind === "request_continuation",
          );
          if (asks) expect(open.size).toBe(0);
          if (step.state.kind === "llm_requesting") expect([1, 2, 3]).toContain(step.state.attempt);
        }
      },
    );
  });

  test("2. An LLM request is emitted only into a requesting state, a tool only into tool execution", () => {
    always((seen) => {
      for (const order of accepted(seen)?.orders ?? []) {
        const { kind } = seen.history.state;
        if (order.kind === "request_llm" || order.kind === "schedule_retry") {
          expect(["llm_requesting", "awaiting_continuation"]).toContain(kind);
        }
        if (order.kind === "request_continuation") expect(kind).toBe("awaiting_continuation");
        if (order.kind === "execute_tool") expect(kind).toBe("tool_executing");
        if (order.kind === "spawn_sub_agent") expect(kind).toBe("awaiting_sub_agents");
      }
    });
  });

  test("3. Every state change persists, and before its other effects", () => {
    always((seen) => {
      const step = accepted(seen);
      if (step === null) return;
      const changed = JSON.stringify(step.conversation) !== JSON.stringify(seen.before);
      assert.equal(step.persists, changed);
      if (!changed) expect([step.messages, step.notices, step.orders]).toEqual([[], [], []]);
    });
  });

  test("4. Idle and error accept a user message. Every busy state rejects it, with the reason the HTTP layer reports", () => {
    always(({ history }) => {
      if (history.context.isSubAgent) return;
      const { kind } = history.state;
      const answer = wouldBe(history, say("new"));
      if (kind === "idle" || kind === "error") assert.equal(typeof answer, "object");
      else if (kind === "context_exhausted") assert.equal(answer, "context_exhausted");
      else assert.equal(answer, kind === "cancelling" ? "cancellation_in_progress" : "agent_busy");
    });
  });

  test("5. context_exhausted rejects messages and ignores all else unchanged; terminal states absorb", () => {
    always(({ before, event, answer, history }) => {
      if (!["context_exhausted", "completed", "failed"].includes(before.state.kind)) return;
      expect(history.state).toBe(before.state);
      expect(history.conversation.mode === before.mode || event.kind === "user_request_downgrade").toBe(true);
      if (typeof answer === "string") return;
      expect(answer.orders).toEqual([]);
      const spoke = event.kind === "continued" || event.kind === "noted";
      expect(answer.messages).toHaveLength(spoke ? 1 : 0);
      const queued =
        event.kind === "user_message" && before.queue.some((q) => q.messageId === event.messageId);
      if (event.kind === "user_message") expect(queued).toBe(true);
    });
  });

  test("6. Cancel from any working state reaches idle (or a cancelling state that always leaves), persisting no partial LLM response", () => {
    always(({ history }) => {
      if (!isWorking(history.state)) return;
      let step = wouldBe(history, cancel({ queue: "clear" }));
      for (let events = 0; typeof step === "object" && step.state.kind === "cancelling"; events += 1) {
        expect(events).toBeLessThanOrEqual(16);
        expect(outline(step.messages)).not.toContain("agent");
        const { state } = step;
        const child = state.stopping === "sub_agents" ? state.pending[0]?.id : undefined;
        step = apply(step.conversation, history.context, endOf(state, child ?? ""), 1_000_001 + events);
      }
      if (typeof step === "string") return expect.fail(step);
      expect(outline(step.messages)).not.toContain("agent");
      const resting = history.context.isSubAgent ? "failed" : "idle";
      const continuing = history.state.kind === "awaiting_continuation";
      expect(step.state.kind).toBe(continuing ? "context_exhausted" : resting);
    });
  });

  test("7. A cancelled round: results = completed + 1 cancelled + skipped; the cancelled tool never shows success", () => {
    always(({ history }) => {
      const { state, context } = history;
      if (state.kind !== "tool_executing") return;
      const stopping = wouldBe(history, cancel());
      if (typeof stopping === "string") return expect.fail(stopping);
      const outcome = toolDone("all well", { operationId: state.operationId });
      const stopped = apply(stopping.conversation, context, outcome, 1_000_001);
      if (typeof stopped === "string") return expect.fail(stopped);
      expect(stopping.results).toEqual([]);
      expect(stopped.results.map(({ toolCallId, status }) => [toolCallId, status])).toEqual([
        [state.current.id, "cancelled"],
        ...state.remaining.map(({ id }) => [id, "skipped"]),
      ]);
    });
  });

  test("8. An outcome for another request, tool call or timer (stale generation) never changes the state", () => {
    always(({ history }) => {
      const { state } = history;
      const own = new Set<string>();
      if ("requestId" in state) own.add(state.requestId);
      if ("operationId" in state) own.add(state.operationId);
      for (const stale of [...history.generations, "nothing"].filter((id) => !own.has(id)).slice(-4)) {
        const outcomes = [
          response([], { requestId: stale }),
          requestFailed({ requestId: stale }),
          lost(stale),
          retryDue(stale),
          toolDone("late", { operationId: stale }),
          childFailed(stale),
        ];
        for (const event of outcomes) {
          const step = wouldBe(history, event);
          assert.ok(typeof step === "object" && step.conversation === history.conversation, event.kind);
        }
      }
    });
  });

  test("8. Cancel plus a quick resend never accepts the old reply, never fires two requests", () => {
    always(({ history }) => {
      const { state, context } = history;
      if (state.kind !== "llm_requesting" || state.retry !== null || context.isSubAgent) return;
      const events = [cancel({ queue: "clear" }), lost(state.requestId), say("again")];
      let conversation = history.conversation;
      const orders: string[] = [];
      for (const [n, event] of events.entries()) {
        const step = apply(conversation, context, event, 1_000_000 + n);
        if (typeof step === "string") return expect.fail(step);
        conversation = step.conversation;
        orders.push(...step.orders.map(({ kind }) => kind));
      }
      expect(orders).toEqual(["abort_request", "request_llm"]);
      const late = at(response([], { requestId: state.requestId }), 1_000_009);
      expect(transition(conversation, context, late)).toEqual({ kind: "ignored" });
    });
  });

  test("9. Retryable raises attempt; exhausted or non-retryable goes to error; a retry timer re-requests only for its own attempt", () => {
    always((seen) => {
      const { before, event, history } = seen;
      const step = accepted(seen);
      const { state } = before;
      if (step === null || state.kind !== "llm_requesting" || !("requestId" in event)) return;
      if (event.requestId !== state.requestId) return;
      if (event.kind === "retry_due" && state.retry !== null) {
        if (step.orders.some(({ kind }) => kind === "request_llm")) {
          expect(history.state).toMatchObject({
            kind: "llm_requesting",
            attempt: state.attempt,
            retry: null,
          });
        } else expect(step.messages.some(({ type }) => type === "error")).toBe(true);
      }
      if (event.kind !== "llm_failed" || state.retry !== null) return;
      const patient = (event.retryAfterMs ?? 0) <= history.context.limits.longestRetryMs;
      if (event.retryable && patient && state.attempt < 3) {
        expect(history.state).toMatchObject({ kind: "llm_requesting", attempt: state.attempt + 1 });
      } else if (event.errorKind === "context_exhausted" && !history.context.isSubAgent) {
        expect(history.state.kind).toBe("awaiting_continuation");
      } else expect(outline(step.messages)[0]).toBe(`error ${event.errorKind}`);
    });
  });

  test("10. Sub-agents: pending + completed is constant, pending strictly falls, an unknown agent changes nothing, the last result leaves the state", () => {
    always(({ before, event, history }) => {
      if (before.state.kind !== "awaiting_sub_agents" || event.kind !== "sub_agent_finished") return;
      const { pending, finished, all } = before.state;
      const after = history.state;
      if (!pending.some(({ id }) => id === event.id)) return expect(after).toBe(before.state);
      if (pending.length === 1) {
        const next = after.kind === "awaiting_sub_agents" ? after.toolCall.id : "";
        return expect(next).not.toBe(before.state.toolCall.id);
      }
      if (after.kind !== "awaiting_sub_agents") return expect.fail(after.kind);
      expect(after.pending).toHaveLength(pending.length - 1);
      expect(after.finished).toHaveLength(finished.length + 1);
      expect(after.all).toEqual(all);
    });
  });

  test("10. cancel collects all before idle", () => {
    always((seen) => {
      const { state } = seen.before;
      if (state.kind !== "cancelling" || state.stopping !== "sub_agents" || accepted(seen) === null) return;
      if (seen.history.state.kind === "cancelling" || seen.event.kind === "restarted") return;
      expect(state.pending).toHaveLength(1);
      expect(seen.event).toMatchObject({ kind: "sub_agent_finished", id: state.pending[0]?.id });
    });
  });

  test("10. every sub-agent that is told to start is reported finished or told to stop, and none starts twice", () => {
    always(
      () => undefined,
      (history) => {
        const orders = history.steps.flatMap((step) => step.orders);
        const started = orders.flatMap((order) =>
          order.kind === "spawn_sub_agent" ? [order.subAgent.id] : [],
        );
        expect(new Set(started).size).toBe(started.length);
        const over = new Set(
          history.steps.flatMap(({ notices }) =>
            notices.flatMap((notice) => (notice.name === "subagent.finished" ? [notice.data.id] : [])),
          ),
        );
        const { state } = history;
        const waiting = "pending" in state ? state.pending.map(({ id }) => id) : [];
        expect(started.filter((id) => !over.has(id) && !waiting.includes(id))).toEqual([]);
      },
    );
  });

  test("10. A terminal sub-agent tells its parent exactly once", () => {
    always(
      () => undefined,
      (history) => {
        // The parent gets the first outcome, when the sub-agent's workflow ends. No later event changes that outcome.
        const outcomes = history.steps.map(({ state }) => outcomeOf(state));
        const first = outcomes.findIndex((outcome) => outcome !== null);
        const terminal = history.state.kind === "completed" || history.state.kind === "failed";
        expect(first !== -1).toBe(terminal);
        if (terminal) for (const outcome of outcomes.slice(first)) expect(outcome).toEqual(outcomes[first]);
      },
    );
  });

  test("11. Threshold at exactly 90 %: 89.9 no, 90.0 yes. Usage counts input + output + cache-read + cache-creation tokens", () => {
    const part = fc.nat(300_000);
    const window = fc.integer({ min: 1, max: 1_000_000 });
    fc.assert(
      fc.property(part, part, part, part, window, fc.boolean(), (a, b, c, d, contextWindow, isSubAgent) => {
        const counts = { inputTokens: a, outputTokens: b, cacheReadTokens: c, cacheCreationTokens: d };
        const context = contextOf({ contextWindow, isSubAgent });
        const step = expectOutcome(conversationIn(requesting()), response([], { usage: counts }), context);
        const full = BigInt(a + b + c + d) * 10n >= BigInt(contextWindow) * 9n;
        const ended = step.state.kind === "awaiting_continuation" || step.state.kind === "failed";
        expect(ended).toBe(full);
      }),
      settings,
    );
    for (const [used, kind] of [
      [89_900, "idle"],
      [90_000, "awaiting_continuation"],
    ] as const) {
      expect(expectOutcome(requesting(), response([], { usage: usage(used) })).state.kind).toBe(kind);
    }
  });

  test("12. No event sequence from Restricted reaches Unrestricted without the user's approval. A sub-agent never asks", () => {
    always(({ before, event, history }) => {
      if (before.mode === "restricted" && history.conversation.mode === "unrestricted") {
        expect(event).toMatchObject({ kind: "user_decide_upgrade", decision: "approve" });
        expect(before.state.kind).toBe("awaiting_mode_approval");
      }
      if (history.context.isSubAgent) assert.notEqual(history.state.kind, "awaiting_mode_approval");
    });
  });

  test("13. The transition never throws on any event of a walk; it answers with a new state or a typed rejection", () => {
    always(({ answer, before, history }) => {
      assert.equal(history.conversation, typeof answer === "string" ? before : answer.conversation);
    });
  });

  test('14. Text such as "[command cancelled]" in a tool\'s output is a normal completion', () => {
    always((seen) => {
      const { before, event } = seen;
      if (event.kind !== "tool_completed" || event.status === "interrupted") return;
      if (before.state.kind !== "tool_executing" || before.state.operationId !== event.operationId) return;
      const [first] = accepted(seen)?.results ?? [];
      expect(first).toMatchObject({ status: event.status, output: event.output });
    });
  });

  test("15. A runaway cap bounds LLM calls per user turn and halts with a visible message", () => {
    always(
      () => undefined,
      (history, walk) => {
        const { requestsPerRun } = contextFor(walk).limits;
        let requests = 0;
        for (const step of history.steps) {
          const names = outline(step.messages);
          if (names.includes("error runaway")) expect(requests).toBe(requestsPerRun);
          if (names.some((line) => line.startsWith("run_stop"))) requests = 0;
          requests += step.orders.filter(({ kind }) => kind === "request_llm").length;
          expect(requests).toBeLessThanOrEqual(requestsPerRun);
        }
      },
    );
  });

  test("a continuation always ends: by its summary, by its failure, by a cancel", () => {
    always(({ history }) => {
      const { state } = history;
      if (state.kind !== "awaiting_continuation") return;
      const { requestId } = state;
      const ends = state.retry === null ? [summaryOf("All said.", { requestId }), cancel()] : [cancel()];
      for (const event of ends) {
        expect(wouldBe(history, event)).toMatchObject({ state: { kind: "context_exhausted" } });
      }
    });
  });

  test("a restart leaves nothing in flight except the operations that it starts again itself", () => {
    always(({ history }) => {
      const step = wouldBe(history, restarted("idle"));
      if (typeof step === "string") return expect.fail(step);
      const { kind } = step.state;
      const working = ["llm_requesting", "tool_executing", "awaiting_sub_agents", "cancelling"];
      assert.ok(!working.includes(kind), kind);
      assert.ok(awaitedOperation(step.state) === null || kind === "awaiting_continuation");
    });
  });
});
