/** The functions that read a conversation's value (conversation.ts). */
import { describe, expect, test } from "vitest";
import {
  awaitedOperation,
  isWorking,
  newConversation,
  NO_TOKENS,
  runningIn,
} from "../../machine/conversation.ts";
import { namesOf } from "../../machine/wording.ts";
import {
  approving,
  awaitingChildren,
  call,
  cancellingChildren,
  cancellingRequest,
  cancellingTool,
  continuing,
  EVERY_STATE,
  executing,
  requesting,
  RETRY,
} from "./states.ts";

describe("a state", () => {
  test("waits for the operation that is in flight, by its generation id", () => {
    expect(awaitedOperation(requesting())).toBe("request");
    expect(awaitedOperation(continuing())).toBe("summary");
    expect(awaitedOperation(executing())).toBe("operation");
    const others = [
      requesting({ retry: RETRY }),
      continuing({ retry: RETRY }),
      approving(),
      awaitingChildren(1),
      cancellingRequest,
      cancellingTool(),
      cancellingChildren(1),
    ];
    for (const state of others) expect(awaitedOperation(state)).toBeNull();
    for (const state of EVERY_STATE) {
      if (!isWorking(state) || state.kind === "awaiting_llm") expect(awaitedOperation(state)).toBeNull();
    }
  });

  test("has text that comes in as it is made: of a request that is not waiting for its next try, and of a running call", () => {
    const [calling, stopping] = [executing(), cancellingTool()];
    const running = [
      [requesting(), "request"],
      [continuing(), "summary"],
      [calling, calling.current.id],
      [stopping, stopping.kind === "cancelling" && stopping.stopping === "tool" ? stopping.current.id : null],
    ] as const;
    for (const [state, id] of running) expect(runningIn(state)).toBe(id);
    const named = new Set(running.map(([state]) => state));
    const others = [
      requesting({ retry: RETRY }),
      continuing({ retry: RETRY }),
      cancellingRequest,
      cancellingChildren(1),
      ...EVERY_STATE.filter((state) => ![...named].some((one) => one.kind === state.kind)),
    ];
    for (const state of others) expect(runningIn(state)).toBeNull();
  });

  test("either works or rests", () => {
    const resting = ["idle", "error", "context_exhausted", "completed", "failed"];
    for (const state of EVERY_STATE) expect(isWorking(state)).toBe(!resting.includes(state.kind));
  });
});

test("a new conversation is idle and has nothing", () => {
  expect(newConversation("restricted", 1_000)).toEqual({
    state: { kind: "idle" },
    mode: "restricted",
    queue: [],
    queueHeld: null,
    usage: { ...NO_TOKENS, contextUsed: 0, contextWindow: 1_000 },
    lastUsage: NO_TOKENS,
    warned: false,
    sequence: 0,
    hasMessages: false,
    run: null,
    errorsInARow: 0,
    lastDecision: null,
  });
  expect(newConversation("unrestricted", 1_000).mode).toBe("unrestricted");
  expect(Object.values(NO_TOKENS)).toEqual([0, 0, 0, 0]);
});

test("a continuation's prompt names the calls that did not run", () => {
  expect(namesOf([call("t1"), call("t2", "read")])).toEqual(["bash", "read"]);
});
