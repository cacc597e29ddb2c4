/** A parent with its sub-agents, and a sub-agent from its task to its end (REQ-BED-008, 009, 018, 024). */
import { describe, expect, test } from "vitest";
import { aggregate } from "../../machine/children.ts";
import { outcomeOf } from "../../machine/outcome.ts";
import type { ConversationEvent } from "../../machine/event.ts";
import {
  cancel,
  childDone,
  childFailed,
  requestFailed,
  response,
  restarted,
  retryDue,
  say,
  toolDone,
  trigger,
} from "./events.ts";
import { History } from "./history.ts";
import {
  awaitingChildren,
  call,
  childrenOf,
  completed,
  conversationIn,
  executing,
  failedState,
  idle,
  requesting,
  spawnCall,
  submitCall,
  usage,
} from "./states.ts";
import {
  expectNothing,
  expectOutcome,
  expectReject,
  inState,
  limited,
  orderOf,
  outline,
  ROOT,
  SUB_AGENT,
  textOf,
} from "./support.ts";

const given: ConversationEvent = { kind: "task_given", messageId: "task", task: "count the files" };

describe("a parent", () => {
  test("spawns each task as requested, each with its own id, and a time limit if it has none", () => {
    const tasks = [
      { task: "look", model: "small", timeoutSeconds: 9 },
      { task: "look", more: true },
    ];
    const context = limited({ subAgentTimeoutSeconds: 60 });
    const step = expectOutcome(requesting(), response([call("s1", "spawn_agents", { tasks })]), context);
    const { pending } = inState(step, "awaiting_sub_agents");
    const [first, second] = pending;
    expect(first).toEqual({ id: first?.id, task: "look", model: "small", timeoutSeconds: 9 });
    expect(second).toEqual({ id: second?.id, task: "look", timeoutSeconds: 60 });
    expect(first?.id).not.toBe(second?.id);
  });

  test("runs eight at once; the next starts when one of them has finished, in any order", () => {
    const tasks = Array.from({ length: 10 }, (_, n) => `task ${n + 1}`);
    const spawned = expectOutcome(requesting(), response([spawnCall("s1", ...tasks)]));
    const { all } = inState(spawned, "awaiting_sub_agents");
    expect(spawned.orders).toEqual(
      all.slice(0, 8).map((subAgent) => ({ kind: "spawn_sub_agent", subAgent, mode: "restricted" })),
    );
    const idOf = (n: number): string => all[n]?.id ?? "";
    const ninth = expectOutcome(spawned.conversation, childDone(idOf(4)), ROOT, 2);
    expect(ninth.orders).toEqual([{ kind: "spawn_sub_agent", subAgent: all[8], mode: "restricted" }]);
    const tenth = expectOutcome(ninth.conversation, childFailed(idOf(8)), ROOT, 3);
    expect(tenth.orders).toEqual([{ kind: "spawn_sub_agent", subAgent: all[9], mode: "restricted" }]);
    expect(expectOutcome(tenth.conversation, childDone(idOf(0)), ROOT, 4).orders).toEqual([]);
  });

  test("tells clients of each end as it comes", () => {
    const step = expectOutcome(awaitingChildren(2), childDone("c2", "found"));
    expect(step.notices[0]).toEqual({
      name: "subagent.finished",
      data: { id: "c2", outcome: { success: true, result: "found" } },
    });
    expect(inState(step, "awaiting_sub_agents")).toMatchObject({
      pending: [{ id: "c1" }],
      finished: [{ id: "c2" }],
      all: [{ id: "c1" }, { id: "c2" }],
    });
    expect(step.messages).toEqual([]);
  });

  test("takes one outcome from each sub-agent; a repeat, or one of an unknown sub-agent, changes nothing", () => {
    const step = expectOutcome(awaitingChildren(2), childDone("c1"));
    expectNothing(step.conversation, childDone("c1"));
    expectNothing(step.conversation, childFailed("c1"));
    expectNothing(step.conversation, childDone("c9"));
    expectNothing(idle, childDone("c1"));
    expectNothing(requesting(), childDone("c1"));
  });

  test("gets one result with every outcome, failures too, in the order of the tasks", () => {
    const second = expectOutcome(awaitingChildren(3, { remaining: [call("t2")] }), {
      kind: "sub_agent_finished",
      id: "c3",
      outcome: { error: "Context window exhausted", errorKind: "context_exhausted", partialResult: "half" },
    });
    const third = expectOutcome(second.conversation, {
      kind: "sub_agent_finished",
      id: "c1",
      outcome: { success: false, result: "could not" },
    });
    const last = expectOutcome(third.conversation, childDone("c2", "found"));
    expect(outline(last.messages)).toEqual(["tool s1 completed"]);
    expect(textOf(last.messages[0])).toBe(
      [
        "Task 1: task 1\nDid not succeed: could not",
        "Task 2: task 2\nSucceeded: found",
        "Task 3: task 3\nFailed (context_exhausted): Context window exhausted\nPartial result: half",
      ].join("\n\n"),
    );
    expect(inState(last, "tool_executing")).toMatchObject({
      current: call("t2"),
      completed: [{ toolCallId: "s1", status: "completed" }],
    });
  });

  test("reads each finished outcome under its task's number", () => {
    const outcome = { success: true, result: "found" };
    expect(aggregate({ ...childrenOf(3), finished: [{ id: "c2", outcome }] })).toEqual([
      { type: "text", text: "Task 2: task 2\nSucceeded: found" },
    ]);
  });

  test("reads at most 16 KiB of a task", () => {
    const all = [{ id: "c1", task: "y".repeat(20_000), timeoutSeconds: 60 }];
    const step = expectOutcome(awaitingChildren(1, { pending: all, all }), childDone("c1"));
    expect(textOf(step.messages[0])).toContain("3616 characters cut");
  });
});

describe("a sub-agent's outcome for its parent", () => {
  const limit = 16_384;
  const submitted = (result: string) => outcomeOf({ kind: "completed", success: true, result });

  test("is null while the sub-agent works", () => {
    expect(outcomeOf(idle)).toBeNull();
    expect(outcomeOf(executing())).toBeNull();
  });

  test("holds at most 16 KiB of each text, cut between characters", () => {
    expect(submitted("x".repeat(limit))).toEqual({ success: true, result: "x".repeat(limit) });
    expect(submitted("x".repeat(limit + 5))).toEqual({
      success: true,
      result: `${"x".repeat(limit)}\n… 5 characters cut …`,
    });
    // Postgres cannot store a lone surrogate as jsonb.
    expect(JSON.stringify(submitted(`x${"😀".repeat(limit)}`))).not.toMatch(/\\ud[89a-f]/u);
    // The limit counts the bytes as they are stored.
    expect(JSON.stringify(submitted("\u0001".repeat(limit))).length).toBeLessThan(limit + 100);
  });

  test("bounds errors and partial results alike; the sub-agent's own state keeps the full text", () => {
    const long = "y".repeat(20_000);
    const failure = { kind: "failed", error: long, errorKind: "unknown", partialResult: long } as const;
    expect(JSON.stringify(outcomeOf(failure)).match(/3616 characters cut/gu)).toHaveLength(2);
    const history = new History(SUB_AGENT);
    history.give(given);
    const last = history.respond([submitCall("t1", long)]);
    expect(last.state).toEqual({ kind: "completed", result: long, success: true });
    expect(outcomeOf(last.state)).toEqual(submitted(long));
    expect(last.orders).toEqual([]);
  });
});

describe("a sub-agent", () => {
  test("begins with its task, a message of its parent's model", () => {
    const step = expectOutcome(conversationIn(idle, { sequence: 0, hasMessages: false }), given, SUB_AGENT);
    expect(step.messages).toMatchObject([
      {
        id: "task",
        type: "user",
        actor: "llm_agent",
        content: [{ type: "text", text: "count the files" }],
        display: { kind: "direct" },
        sequence: 1,
        cycleId: "task",
      },
    ]);
    expect(orderOf(step, "request_llm").attempt).toBe(1);
    expect(step.conversation).toMatchObject({ hasMessages: true });
    expect(step.conversation.run).toEqual({
      cycleId: "task",
      requests: 1,
      truncations: 0,
      reminders: 0,
      upgradeDenied: false,
    });
  });

  test("takes one task only, and a person's conversation takes none", () => {
    expectNothing(requesting(), given, SUB_AGENT);
    expectNothing(completed, given, SUB_AGENT);
    expectNothing(idle, given, ROOT);
  });

  test("that ends its turn without submitting is reminded twice, then fails", () => {
    const history = new History(SUB_AGENT);
    history.give(given);
    for (const reminders of [1, 2]) {
      const step = history.respond();
      expect(outline(step.messages)).toEqual(["agent", "system"]);
      expect(textOf(step.messages[1])).toContain("Call submit_result");
      expect(orderOf(step, "request_llm").attempt).toBe(1);
      expect(step.conversation.run?.reminders).toBe(reminders);
    }
    const last = history.respond();
    const outcome = { error: "The sub-agent ended without submitting a result.", errorKind: "unknown" };
    expect(last.state).toEqual({ kind: "failed", ...outcome });
    expect(outcomeOf(last.state)).toEqual(outcome);
    expect(last.orders).toEqual([]);
    expect(outline(last.messages)).toEqual(["agent", "error unknown", "run_stop error"]);
    expect(textOf(last.messages[1])).toBe(outcome.error);
  });

  test("gets a configurable number of reminders", () => {
    const step = expectOutcome(requesting(), response(), limited({ reminders: 0 }, SUB_AGENT));
    expect(step.state.kind).toBe("failed");
  });

  test("works like any other conversation until it submits", () => {
    const history = new History(SUB_AGENT);
    history.give(given);
    history.respond([call("t1")]);
    history.finishTool();
    const last = history.respond([submitCall("t2", "42 files")]);
    expect(last.state).toEqual({ kind: "completed", result: "42 files", success: true });
    expect(outcomeOf(last.state)).not.toBeNull();
    expect(last.orders).toEqual([]);
    expect(history.outline.at(-1)).toBe("run_stop completed");
  });

  test("has no continuation, neither by hand nor at 90 %", () => {
    for (const state of [idle, requesting(), completed]) {
      expectReject(state, trigger, "sub_agent_read_only", SUB_AGENT);
    }
    const full = expectOutcome(requesting(), response([call("t1")], { usage: usage(90_000) }), SUB_AGENT);
    expect(full.state).toMatchObject({ kind: "failed", errorKind: "context_exhausted" });
    expect(full.orders).toEqual([]);
  });

  test("fails when it makes too many requests", () => {
    const step = expectOutcome(executing(), toolDone(), limited({ requestsPerRun: 1 }, SUB_AGENT));
    expect(step.state).toMatchObject({ kind: "failed", errorKind: "runaway" });
    expect(outcomeOf(step.state)).not.toBeNull();
    expect(step.orders).toEqual([]);
  });

  test.for([completed, failedState])("that has ended absorbs everything: $kind", (state) => {
    const events = [response(), requestFailed(), retryDue(), toolDone(), childDone("c1"), given];
    for (const event of [...events, cancel({ by: "parent" }), restarted("idle"), restarted("resume")]) {
      expectNothing(state, event, SUB_AGENT);
    }
    expectReject(state, say(), "sub_agent_read_only", SUB_AGENT);
  });
});
