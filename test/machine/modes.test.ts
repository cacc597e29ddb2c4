/** Every row of the draft's "Key Transitions", and every sentence of the section "Modes". */
import { describe, expect, test } from "vitest";
import type { State } from "../../machine/conversation.ts";
import {
  approve,
  cancel,
  childDone,
  deny,
  downgrade,
  downgradeOn,
  followUp,
  lost,
  requestFailed,
  response,
  restarted,
  retryDue,
  say,
  steer,
  toolDone,
  trigger,
} from "./events.ts";
import { History } from "./history.ts";
import {
  approving,
  awaitingChildren,
  call,
  cancellingRequest,
  cancellingTool,
  continuing,
  conversationIn,
  errorState,
  executing,
  exhausted,
  idle,
  requesting,
  upgradeCall,
} from "./states.ts";
import {
  expectNothing,
  expectOutcome,
  expectReject,
  inState,
  noticeNames,
  orderKinds,
  orderOf,
  outline,
  ROOT,
  SUB_AGENT,
  textOf,
} from "./support.ts";

const MODE_TOLD = { name: "mode.changed", data: { mode: "unrestricted", by: "approval" } };
const unrestricted = (state: State) => conversationIn(state, { mode: "unrestricted" });

describe("Key Transitions", () => {
  test("ToolExecuting (request_mode_upgrade) | ModeUpgradeRequested | AwaitingModeApproval | NotifyClient, PersistState", () => {
    const step = expectOutcome(requesting(), response([upgradeCall("u1"), call("t2")]));
    expect(step.state).toEqual({
      kind: "awaiting_mode_approval",
      reason: "to write",
      toolCall: upgradeCall("u1"),
      remaining: [call("t2")],
      completed: [],
    });
    expect(step.persists).toBe(true);
    expect(noticeNames(step)).toContain("state.changed");
    expect(step.orders).toEqual([]);
    expect(step.conversation.mode).toBe("restricted");
  });

  test("AwaitingModeApproval | UserApproveUpgrade | ToolExecuting (continue) | SetMode(Unrestricted), InjectMessage, NotifyClient", () => {
    const step = expectOutcome(approving({ remaining: [call("t2"), call("t3")] }), approve());
    expect(step.conversation.mode).toBe("unrestricted");
    expect(outline(step.messages)).toEqual(["tool u1 completed", "system"]);
    expect(textOf(step.messages[0])).toContain("approved the upgrade");
    expect(textOf(step.messages[1])).toContain("now in Unrestricted mode");
    expect(step.notices).toContainEqual(MODE_TOLD);
    expect(inState(step, "tool_executing")).toMatchObject({
      current: call("t2"),
      remaining: [call("t3")],
      completed: [{ toolCallId: "u1", status: "completed" }],
    });
    expect(orderOf(step, "execute_tool").mode).toBe("unrestricted");
  });

  test("AwaitingModeApproval | UserDenyUpgrade | ToolExecuting (continue) | ToolResult(denied), NotifyClient", () => {
    const completed = [{ toolCallId: "t0", status: "completed" }] as const;
    const step = expectOutcome(approving({ remaining: [call("t2")], completed }), deny());
    expect(step.conversation.mode).toBe("restricted");
    expect(outline(step.messages)).toEqual(["tool u1 failed"]);
    expect(textOf(step.messages[0])).toContain("denied the upgrade");
    expect(inState(step, "tool_executing").completed).toEqual([
      ...completed,
      { toolCallId: "u1", status: "failed" },
    ]);
    expect(noticeNames(step)).toEqual(["state.changed"]);
    expect(orderOf(step, "execute_tool").mode).toBe("restricted");
  });

  const anyState: readonly State[] = [
    idle,
    requesting(),
    executing(),
    awaitingChildren(2),
    cancellingRequest,
    cancellingTool(),
    continuing(),
    errorState,
  ];
  test.for(anyState)(
    "Any (Idle preferred) | UserRequestDowngrade | Same | SetMode(Restricted), InjectMessage, NotifyClient: $kind",
    (state) => {
      const before = unrestricted(state);
      const step = expectOutcome(before, downgrade);
      expect(step.conversation).toEqual({ ...before, mode: "restricted", sequence: 11 });
      expect(outline(step.messages)).toEqual(["system"]);
      expect(textOf(step.messages[0])).toContain("switched the conversation to Restricted mode");
      expect(step.notices).toEqual([{ name: "mode.changed", data: { mode: "restricted", by: "user" } }]);
      expect(step.orders).toEqual([]);
    },
  );
});

describe("Modes", () => {
  test("After the decision the round goes on with its next tool, or with `awaiting_llm` if none is left", () => {
    for (const decision of [approve(), deny()]) {
      const step = expectOutcome(approving(), decision);
      expect(step.state.kind).toBe("llm_requesting");
      expect(orderKinds(step)).toEqual(["request_llm"]);
    }
  });

  test("Downgrade when already Restricted changes nothing (no message, a pending approval stays pending)", () => {
    for (const state of [idle, requesting(), approving()]) expectNothing(state, downgrade);
  });

  test("The first decision on an approval wins; the same decision repeated answers as the first", () => {
    for (const [first, other] of [
      [approve(), deny()],
      [deny(), approve()],
    ] as const) {
      const decided = expectOutcome(approving(), first).conversation;
      expectNothing(decided, first);
      expectReject(decided, other, "no_pending_approval");
    }
  });

  test("the same decision repeated answers as the first, even while another call waits", () => {
    const decided = expectOutcome(approving({ remaining: [call("t2")] }), deny()).conversation;
    const later = { ...decided, state: approving({ toolCall: upgradeCall("u2") }) };
    expectNothing(later, deny("u1"));
    expectReject(later, approve("u1"), "approval_mismatch");
  });

  test("a decision for another call than the pending one is `approval_mismatch`, which names the pending one", () => {
    expect(expectReject(approving(), approve("u9"), "approval_mismatch").message).toContain("u1");
    expectReject(approving(), deny("u9"), "approval_mismatch");
  });

  test("a decision that names no call is for the pending one", () => {
    const step = expectOutcome(approving(), approve(null));
    expect(step.conversation).toMatchObject({
      mode: "unrestricted",
      lastDecision: { toolCallId: "u1", decision: "approve" },
    });
    expect(outline(expectOutcome(approving(), deny(null)).messages)).toEqual(["tool u1 failed"]);
    expectReject(step.conversation, approve(null), "no_pending_approval");
  });

  test.for([
    idle,
    requesting(),
    executing(),
    awaitingChildren(1),
    cancellingRequest,
    continuing(),
    errorState,
  ])("a decision while no approval is pending is `no_pending_approval`: $kind", (state) => {
    for (const decision of [approve(), deny(), approve(null), deny(null)]) {
      expectReject(state, decision, "no_pending_approval");
    }
  });

  test("In `context_exhausted` a mode change is rejected", () => {
    expectReject(unrestricted(exhausted), downgrade, "context_exhausted");
    expectReject(exhausted, downgrade, "context_exhausted");
    const decided = { toolCallId: "u1", decision: "approve" } as const;
    const after = conversationIn(exhausted, { mode: "unrestricted", lastDecision: decided });
    expectReject(after, approve(), "context_exhausted");
  });

  test("without Landlock, a change to Restricted is rejected", () => {
    const bare = downgradeOn({ kind: "unavailable", reason: "No Landlock." });
    for (const state of [idle, requesting(), exhausted]) {
      const reject = expectReject(unrestricted(state), bare, "sandbox_unavailable");
      expect(reject.message).toContain("Landlock");
    }
  });

  test("a host that could not find out whether it has a sandbox changes nothing, and says why", () => {
    const untried = downgradeOn({ kind: "unknown", reason: "The disk is full." });
    for (const state of [idle, requesting(), exhausted]) {
      const reject = expectReject(unrestricted(state), untried, "sandbox_unknown");
      expect(reject.message).toContain("The disk is full.");
    }
  });

  test("a conversation that was created without a sandbox is Restricted once its host has one", () => {
    expect(expectOutcome(unrestricted(idle), downgrade).conversation.mode).toBe("restricted");
  });

  test("if Landlock is missing later, a Restricted conversation stays Restricted: only an approval lifts it", () => {
    const step = expectOutcome(requesting(), response([call("t1")]));
    expect(orderOf(step, "execute_tool").mode).toBe("restricted");
    expect(expectOutcome(approving(), approve()).conversation.mode).toBe("unrestricted");
  });

  test("only approve, deny, cancel and delete leave `awaiting_mode_approval`", () => {
    const others = [response(), requestFailed(), lost(), retryDue(), toolDone(), childDone("c1")];
    for (const event of [...others, restarted("idle"), restarted("resume"), downgrade]) {
      expectNothing(approving(), event);
    }
    for (const event of [steer("m1"), followUp("m2")]) {
      expect(expectOutcome(approving(), event).state).toEqual(approving());
    }
    expectReject(approving(), say(), "agent_busy");
    expectReject(approving(), trigger, "agent_busy");
    expect(expectOutcome(approving(), cancel()).state.kind).toBe("idle");
  });

  test("a sub-agent cannot change its mode", () => {
    for (const state of [idle, requesting(), executing()]) {
      expectReject(state, downgrade, "sub_agent_read_only", SUB_AGENT);
      expectReject(state, approve(), "no_pending_approval", SUB_AGENT);
    }
    const step = expectOutcome(requesting(), response([upgradeCall("u1")]), SUB_AGENT);
    expect(textOf(step.messages[1])).toContain('no tool named "request_mode_upgrade"');
  });
});

describe("`request_mode_upgrade` among other calls", () => {
  test("calls before it run Restricted, calls after it in the mode decided; a second one answers as already Unrestricted after an approval", () => {
    const history = new History();
    history.give(say());
    const before = history.respond([
      call("t1"),
      upgradeCall("u1"),
      call("t2"),
      upgradeCall("u2"),
      call("t3"),
    ]);
    expect(orderOf(before, "execute_tool").mode).toBe("restricted");
    expect(inState(history.finishTool(), "awaiting_mode_approval").completed).toEqual([
      { toolCallId: "t1", status: "completed" },
    ]);
    expect(orderOf(history.give(approve()), "execute_tool").mode).toBe("unrestricted");
    const after = history.finishTool();
    expect(outline(after.messages)).toEqual(["tool t2 completed", "tool u2 failed"]);
    expect(textOf(after.messages[1])).toBe("Already in Unrestricted mode");
    expect(orderOf(after, "execute_tool").call.id).toBe("t3");
  });

  test("a second one answers the same denial, without asking, after a denial; in a later response it is asked again", () => {
    const history = new History();
    history.give(say());
    history.respond([upgradeCall("u1"), call("t1"), upgradeCall("u2")]);
    const denied = history.give(deny());
    expect(orderOf(denied, "execute_tool").mode).toBe("restricted");
    const after = history.finishTool();
    expect(outline(after.messages)).toEqual(["tool t1 completed", "tool u2 failed"]);
    expect(textOf(after.messages[1])).toBe(textOf(denied.messages[0]));
    expect(after.state.kind).toBe("llm_requesting");
    expect(inState(history.respond([upgradeCall("u3")]), "awaiting_mode_approval").toolCall.id).toBe("u3");
  });

  test("in Unrestricted it answers that the mode is Unrestricted already, whatever its input", () => {
    for (const input of [{ reason: "to write" }, {}]) {
      const asked = response([call("u1", "request_mode_upgrade", input)]);
      const step = expectOutcome(unrestricted(requesting()), asked);
      expect(outline(step.messages)).toEqual(["agent", "tool u1 failed"]);
      expect(textOf(step.messages[1])).toBe("Already in Unrestricted mode");
    }
  });

  test("a downgrade applies to the next tool; a running one is not touched", () => {
    const history = new History(ROOT, "unrestricted");
    history.give(say());
    expect(orderOf(history.respond([call("t1"), call("t2")]), "execute_tool").mode).toBe("unrestricted");
    const running = history.state;
    history.give(downgrade);
    expect(history.state).toBe(running);
    expect(orderOf(history.finishTool(), "execute_tool").mode).toBe("restricted");
  });
});

describe("tools that write, in Restricted", () => {
  const hint = "Use request_mode_upgrade to request write access.";

  test.for([
    ["patch", "Patch"],
    ["write", "Write"],
    ["edit", "Edit"],
  ] as const)("%s is answered by the machine, and says how to get write access", ([name, title]) => {
    const step = expectOutcome(requesting(), response([call("t1", name)]));
    expect(outline(step.messages)).toEqual(["agent", "tool t1 failed"]);
    expect(textOf(step.messages[1])).toBe(`${title} tool is disabled in Restricted mode. ${hint}`);
    expect(orderKinds(step)).toEqual(["request_llm"]);
    const free = expectOutcome(unrestricted(requesting()), response([call("t1", name)]));
    expect(orderOf(free, "execute_tool").call.name).toBe(name);
  });

  test("bash, read and ls run Restricted", () => {
    for (const name of ["bash", "read", "ls"]) {
      const step = expectOutcome(requesting(), response([call("t1", name)]));
      expect(orderOf(step, "execute_tool")).toMatchObject({ call: { name }, mode: "restricted" });
    }
  });

  test("a sub-agent is not told to ask for write access, which it cannot get", () => {
    const step = expectOutcome(requesting(), response([call("t1", "patch")]), SUB_AGENT);
    expect(textOf(step.messages[1])).toBe(
      "Patch tool is disabled in Restricted mode. A sub-agent has to do its task without writing.",
    );
  });
});
