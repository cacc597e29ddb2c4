/** The draft's six invariants of the modes, as docs/machine.md reads them, each a property of all walks. */
import assert from "node:assert/strict";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { downgrade } from "./events.ts";
import { apply, orderKinds, textOf } from "./support.ts";
import { go, settings, walks, type Seen } from "./walks.ts";

/**
 * Looks at every event of the walks.
 *
 * @param cases without which the property would say nothing: `look` returns the case that it sees, and each has to come
 */
function always<Case extends string>(cases: readonly Case[], look: (seen: Seen) => Case | null): void {
  const met = new Map<Case, number>(cases.map((name) => [name, 0]));
  const note = (name: Case | null): void => {
    if (name !== null) met.set(name, (met.get(name) ?? 0) + 1);
  };
  fc.assert(
    fc.property(walks, (walk) => void go(walk, (seen) => note(look(seen)))),
    settings,
  );
  expect(cases.filter((name) => met.get(name) === 0)).toEqual([]);
}

describe("Property Invariants", () => {
  test("1. Once AwaitingModeApproval, only approve, deny and cancel leave it", () => {
    always(["approve", "deny", "another event"], ({ before, event, history }) => {
      if (before.state.kind !== "awaiting_mode_approval") return null;
      if (history.state === before.state) return "another event";
      if (event.kind === "user_decide_upgrade") return event.decision;
      expect(event.kind).toBe("user_cancel");
      return null;
    });
  });

  test("2. A sub-agent is Restricted exactly when Landlock works, from its first event to its last", () => {
    always(["restricted", "unrestricted"], ({ history, walk }) => {
      if (!history.context.isSubAgent) return null;
      assert.equal(history.conversation.mode, walk.sandbox ? "restricted" : "unrestricted");
      return history.conversation.mode;
    });
  });

  test("3. In Restricted mode, the patch tool always returns a mode error", () => {
    always(["refused", "executed"], ({ before, event, history, answer }) => {
      if (typeof answer === "string") return null;
      const { context, conversation, state } = history;
      let refused = false;
      for (const order of answer.orders) {
        if (order.kind !== "execute_tool") continue;
        assert.equal(order.mode, conversation.mode);
        assert.ok(order.mode === "unrestricted" || order.call.name !== "patch");
      }
      // A call that was running is answered by its tool, whatever the mode is by then.
      const ran = event.kind === "tool_completed" && before.state.kind === "tool_executing";
      const running = ran ? before.state.current.id : null;
      for (const { toolCallId, name, status, output } of answer.results) {
        if (name !== "patch" || toolCallId === running) continue;
        assert.notEqual(status, "completed");
        // Skipped and cancelled calls were not begun. Malformed ones are refused for that, in any mode.
        const text = output.map((block) => (block.type === "text" ? block.text : "")).join("");
        if (status !== "failed" || /^(The input of this call was not|This call was cut off)/.test(text))
          continue;
        assert.equal(conversation.mode, "restricted");
        const hint = context.isSubAgent
          ? "A sub-agent has to do its task without writing."
          : "Use request_mode_upgrade to request write access.";
        assert.equal(text, `Patch tool is disabled in Restricted mode. ${hint}`);
        refused = true;
      }
      if (refused) return "refused";
      return orderKinds(answer).includes("execute_tool") &&
        state.kind === "tool_executing" &&
        state.current.name === "patch"
        ? "executed"
        : null;
    });
  });

  test("4. UserRequestDowngrade from Idle always succeeds immediately", () => {
    always(["restricted", "unrestricted"], ({ history }) => {
      const { context, conversation, state } = history;
      if (state.kind !== "idle" || context.isSubAgent) return null;
      const step = apply(conversation, context, downgrade, 1_000_000);
      if (typeof step === "string") return expect.fail(step);
      expect(step.conversation.mode).toBe("restricted");
      expect(step.state).toBe(state);
      expect(step.messages).toHaveLength(conversation.mode === "restricted" ? 0 : 1);
      return conversation.mode;
    });
  });

  test("5. No event sequence from Restricted reaches Unrestricted without UserApproveUpgrade", () => {
    always(["restricted", "unrestricted"], ({ before, event, history, answer }) => {
      const { mode } = history.conversation;
      if (mode === before.mode) return null;
      if (typeof answer === "string") return expect.fail(answer);
      const up = mode === "unrestricted";
      if (up) {
        expect(event).toMatchObject({ kind: "user_decide_upgrade", decision: "approve" });
        expect(before.state.kind).toBe("awaiting_mode_approval");
      } else expect(event.kind).toBe("user_request_downgrade");
      expect(answer.notices).toContainEqual({
        name: "mode.changed",
        data: { mode, by: up ? "approval" : "user" },
      });
      const told = answer.messages.filter(({ type }) => type === "system").map(textOf);
      expect(told).toEqual([
        expect.stringContaining(up ? "now in Unrestricted mode" : "the conversation to Restricted mode"),
      ]);
      return mode;
    });
  });

  test("6. If a conversation is created without Landlock, its mode is always Unrestricted", () => {
    always(["a downgrade is asked for", "an upgrade is asked for"], ({ event, answer, history, walk }) => {
      if (walk.sandbox) return null;
      assert.equal(history.conversation.mode, "unrestricted");
      assert.notEqual(history.state.kind, "awaiting_mode_approval");
      if (event.kind === "user_request_downgrade") return "a downgrade is asked for";
      if (typeof answer === "string") return null;
      const asked = answer.results.some(({ name }) => name === "request_mode_upgrade");
      return asked ? "an upgrade is asked for" : null;
    });
  });
});
