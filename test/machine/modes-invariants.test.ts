/** The draft's six invariants of the modes, as docs/machine.md reads them, each a property of all walks. */
import assert from "node:assert/strict";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { downgrade } from "./events.ts";
import { apply, textOf } from "./support.ts";
import { go, settings, walks, type Seen } from "./walks.ts";

const always = (look: (seen: Seen) => void): void =>
  fc.assert(
    fc.property(walks, (walk) => void go(walk, look)),
    settings,
  );

describe("Property Invariants", () => {
  test("1. Once AwaitingModeApproval, only approve, deny and cancel leave it", () => {
    always(({ before, event, history }) => {
      if (before.state.kind !== "awaiting_mode_approval" || history.state === before.state) return;
      expect(["user_decide_upgrade", "user_cancel"]).toContain(event.kind);
    });
  });

  test("2. A sub-agent is Restricted exactly when Landlock works, from its first event to its last", () => {
    always(({ history, walk }) => {
      if (!history.context.isSubAgent) return;
      assert.equal(history.conversation.mode, walk.sandbox ? "restricted" : "unrestricted");
    });
  });

  test("3. In Restricted mode, the patch tool always returns a mode error", () => {
    always(({ before, history, answer }) => {
      if (history.state.kind === "tool_executing" && history.state !== before.state) {
        const { current } = history.state;
        assert.ok(history.conversation.mode !== "restricted" || current.name !== "patch");
      }
      if (typeof answer === "string") return;
      for (const message of answer.messages) {
        if (message.type !== "tool" || message.content[0].name !== "patch") continue;
        if (message.content[0].status === "completed") {
          expect(before.state).toMatchObject({ kind: "tool_executing", current: { name: "patch" } });
        }
        if (textOf(message).includes("disabled in Restricted mode")) {
          expect(message.content[0].status).toBe("failed");
          expect(history.conversation.mode).toBe("restricted");
        }
      }
      for (const order of answer.orders) {
        if (order.kind === "execute_tool") assert.equal(order.mode, history.conversation.mode);
      }
    });
  });

  test("4. UserRequestDowngrade from Idle always succeeds immediately", () => {
    always(({ history }) => {
      const { context, conversation, state } = history;
      if (state.kind !== "idle" || context.isSubAgent) return;
      const step = apply(conversation, context, downgrade, 1_000_000);
      if (typeof step === "string") return expect.fail(step);
      expect(step.conversation.mode).toBe("restricted");
      expect(step.state).toBe(state);
      expect(step.messages).toHaveLength(conversation.mode === "restricted" ? 0 : 1);
    });
  });

  test("5. No event sequence from Restricted reaches Unrestricted without UserApproveUpgrade", () => {
    always(({ before, event, history, answer }) => {
      if (history.conversation.mode === before.mode) return;
      if (typeof answer === "string") return expect.fail(answer);
      const up = history.conversation.mode === "unrestricted";
      if (up) expect(event).toMatchObject({ kind: "user_decide_upgrade", decision: "approve" });
      else expect(event.kind).toBe("user_request_downgrade");
      expect(answer.notices).toContainEqual({
        name: "mode.changed",
        data: { mode: history.conversation.mode, by: up ? "approval" : "user" },
      });
      expect(answer.messages.filter(({ type }) => type === "system")).toHaveLength(1);
    });
  });

  test("6. If a conversation is created without Landlock, its mode is always Unrestricted", () => {
    always(({ history, walk }) => {
      if (!walk.sandbox) assert.equal(history.conversation.mode, "unrestricted");
    });
  });
});
