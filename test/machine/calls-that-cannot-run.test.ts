/** Every sentence of the sections "Calls that cannot run" and "Control tools", and the guards of the control tools. */
import { describe, expect, test } from "vitest";
import { checkSpawn, checkSubmit, checkUpgrade } from "../../machine/control-tools.ts";
import { outcomeOf } from "../../machine/outcome.ts";
import type { ToolCall } from "../../machine/conversation.ts";
import type { Json } from "../../machine/message.ts";
import { childDone, response } from "./events.ts";
import { call, requesting, spawnCall, submitCall, upgradeCall } from "./states.ts";
import {
  contextOf,
  expectOutcome,
  inState,
  orderKinds,
  orderOf,
  outline,
  ROOT,
  SUB_AGENT,
  textOf,
} from "./support.ts";

/** The text of the result that the only call of a response gets at once. */
function refusalOf(bad: ToolCall, context = ROOT, fields = {}): string {
  const step = expectOutcome(requesting(), response([bad], fields), context);
  expect(outline(step.messages)).toEqual(["agent", `tool ${bad.id} failed`]);
  expect(step.results[0]).toMatchObject({ name: bad.name, durationMs: 0 });
  expect(orderKinds(step)).toEqual(["request_llm"]);
  return textOf(step.messages[1]);
}

describe("Calls that cannot run", () => {
  test("An unknown tool: the result is `failed` without a run", () => {
    expect(refusalOf(call("t1", "fly"))).toBe('There is no tool named "fly" in this conversation.');
  });

  test("a tool that this conversation does not have: the result is `failed` without a run", () => {
    expect(refusalOf(submitCall("t1"))).toContain('no tool named "submit_result"');
    expect(refusalOf(upgradeCall("t1"), SUB_AGENT)).toContain('no tool named "request_mode_upgrade"');
    expect(refusalOf(spawnCall("t1", "x"), SUB_AGENT)).toContain('no tool named "spawn_agents"');
    expect(refusalOf(call("t1", "bash"), contextOf({ tools: [] }))).toContain('no tool named "bash"');
  });

  test("invalid input: the result is `failed` without a run", () => {
    const upgrade = refusalOf(call("t1", "request_mode_upgrade", {}));
    expect(upgrade).toMatch(/^Invalid input for request_mode_upgrade: "reason"/u);
    expect(refusalOf(call("t1", "spawn_agents", {}))).toMatch(/^Invalid input for spawn_agents: "tasks"/u);
    const submit = refusalOf(call("t1", "submit_result", {}), SUB_AGENT);
    expect(submit).toMatch(/^Invalid input for submit_result: "result"/u);
  });

  test("input that is not JSON: the result is `failed` without a run", () => {
    const defects = [{ call: 0, defect: "malformed_json" }] as const;
    expect(refusalOf(call("t1"), ROOT, { defects })).toContain("not valid JSON");
  });

  test("the round goes on: the calls that can run do, in order", () => {
    const calls = [call("t1", "fly"), call("t2"), call("t3", "swim"), call("t4", "ls")];
    const step = expectOutcome(requesting(), response(calls));
    expect(outline(step.messages)).toEqual(["agent", "tool t1 failed"]);
    expect(inState(step, "tool_executing")).toMatchObject({
      current: call("t2"),
      remaining: [call("t3", "swim"), call("t4", "ls")],
      completed: [{ toolCallId: "t1", status: "failed" }],
    });
  });

  test("a defect belongs to the call at its position", () => {
    const defects = [{ call: 1, defect: "malformed_json" }] as const;
    const step = expectOutcome(requesting(), response([call("t1"), call("t2")], { defects }));
    expect(inState(step, "tool_executing").remaining).toEqual([{ ...call("t2"), defect: "malformed_json" }]);
    expect(orderOf(step, "execute_tool").call).toEqual(call("t1"));
  });

  test("two `spawn_agents` in one response run one after the other", () => {
    const calls = [spawnCall("s1", "look"), spawnCall("s2", "count")];
    const first = expectOutcome(requesting(), response(calls));
    const [child] = inState(first, "awaiting_sub_agents").pending;
    expect(first.orders).toHaveLength(1);
    const second = expectOutcome(first.conversation, childDone(child?.id ?? ""), ROOT, 2);
    expect(outline(second.messages)).toEqual(["tool s1 completed"]);
    expect(inState(second, "awaiting_sub_agents")).toMatchObject({
      toolCall: spawnCall("s2", "count"),
      pending: [{ task: "count" }],
      finished: [],
      completed: [{ toolCallId: "s1", status: "completed" }],
    });
    expect(orderKinds(second)).toEqual(["spawn_sub_agent"]);
  });

  test("`submit_result` ends the sub-agent, and every call after it is `skipped`", () => {
    const calls = [submitCall("t1", "42"), call("t2"), submitCall("t3", "43")];
    const step = expectOutcome(requesting(), response(calls), SUB_AGENT);
    expect(step.state).toEqual({ kind: "completed", result: "42", success: true });
    expect(outline(step.messages)).toEqual([
      "agent",
      "tool t1 completed",
      "tool t2 skipped",
      "tool t3 skipped",
      "run_stop completed",
    ]);
    expect(textOf(step.messages[1])).toBe("Result submitted.");
    expect(textOf(step.messages[2])).toContain("already submitted");
    expect(outcomeOf(step.state)).toEqual({ result: "42", success: true });
    expect(step.orders).toEqual([]);
  });

  test("after a submission with invalid input the round goes on", () => {
    const calls = [call("t1", "submit_result", { result: 1 }), submitCall("t2", "42")];
    const step = expectOutcome(requesting(), response(calls), SUB_AGENT);
    expect(outline(step.messages)).toEqual([
      "agent",
      "tool t1 failed",
      "tool t2 completed",
      "run_stop completed",
    ]);
  });
});

describe("Control tools", () => {
  test("never become activities", () => {
    for (const control of [upgradeCall("t1"), spawnCall("t1", "x")]) {
      const step = expectOutcome(requesting(), response([control]));
      expect(orderKinds(step)).not.toContain("execute_tool");
    }
    const submitted = expectOutcome(requesting(), response([submitCall("t1")]), SUB_AGENT);
    expect(orderKinds(submitted)).not.toContain("execute_tool");
  });

  test("a submission may say that it did not succeed", () => {
    const submission = call("t1", "submit_result", { result: "no way", success: false });
    const step = expectOutcome(requesting(), response([submission]), SUB_AGENT);
    expect(step.state).toEqual({ kind: "completed", result: "no way", success: false });
  });
});

describe("the guards", () => {
  const NO_OBJECTS: readonly Json[] = [null, "text", 1, true, [], ["reason"], {}];

  test("request_mode_upgrade takes a reason that says something", () => {
    expect(checkUpgrade({ reason: "to write", more: 1 })).toEqual({
      ok: true,
      value: { reason: "to write" },
    });
    for (const input of [...NO_OBJECTS, { reason: "" }, { reason: " \n" }, { reason: 1 }]) {
      const problem = '"reason" must be a text that says why write access is needed.';
      expect(checkUpgrade(input)).toEqual({ ok: false, problem });
    }
    expect(checkUpgrade(JSON.parse('{"__proto__":{"reason":"x"}}') as Json).ok).toBe(false);
    expect(checkUpgrade(Object.create({ reason: "inherited" }) as Json).ok).toBe(false);
  });

  test("submit_result takes a result, the empty one too, and success is assumed", () => {
    expect(checkSubmit({ result: "" })).toEqual({ ok: true, value: { result: "", success: true } });
    expect(checkSubmit({ result: "x", success: false })).toEqual({
      ok: true,
      value: { result: "x", success: false },
    });
    for (const input of [...NO_OBJECTS, { result: null }, { result: {} }]) {
      expect(checkSubmit(input)).toEqual({ ok: false, problem: '"result" must be a text.' });
    }
    for (const success of ["yes", 1, []]) {
      const problem = '"success" must be true or false.';
      expect(checkSubmit({ result: "x", success })).toEqual({ ok: false, problem });
    }
    expect(checkSubmit({ result: "x", success: null })).toMatchObject({ value: { success: true } });
  });

  test("spawn_agents takes 1 to 16 tasks", () => {
    const tasks = (count: number): Json => ({ tasks: Array.from({ length: count }, () => ({ task: "x" })) });
    const none = { ok: false, problem: '"tasks" must be a list of at least one task.' };
    for (const input of [...NO_OBJECTS, { tasks: "x" }, { tasks: {} }, tasks(0)]) {
      expect(checkSpawn(input)).toEqual(none);
    }
    expect(checkSpawn(tasks(1))).toEqual({ ok: true, value: [{ task: "x" }] });
    expect(checkSpawn(tasks(16)).ok).toBe(true);
    expect(checkSpawn(tasks(17))).toEqual({ ok: false, problem: '"tasks" may hold at most 16 tasks.' });
  });

  test("a task has a text, and may have a model and a timeout", () => {
    const one = (entry: Json): unknown => checkSpawn({ tasks: [entry] });
    expect(one({ task: "x", timeoutSeconds: 86_400 })).toMatchObject({ ok: true });
    const full = { task: "x", model: "small", timeoutSeconds: 0.5 };
    expect(one({ ...full, more: 1 })).toEqual({ ok: true, value: [full] });
    expect(one({ task: "x" })).toStrictEqual({ ok: true, value: [{ task: "x" }] });
    const noText = { ok: false, problem: 'each task needs a "task" text.' };
    for (const entry of [null, "x", [], {}, { task: "" }, { task: " " }, { task: 1 }]) {
      expect(one(entry)).toEqual(noText);
    }
    const noModel = { ok: false, problem: '"model" must be the id of a model.' };
    for (const model of ["", " ", 1, null, "a b", "x".repeat(201)])
      expect(one({ task: "x", model })).toEqual(noModel);
    const noTimeout = { ok: false, problem: '"timeoutSeconds" must be a positive number of at most 86400.' };
    for (const timeoutSeconds of [0, -1, "5", null, Infinity, NaN, 86_401]) {
      expect(one({ task: "x", timeoutSeconds })).toEqual(noTimeout);
    }
  });

  test("spawn_agents refuses tasks of more than 49152 bytes in all", () => {
    const tasks = (length: number): Json => ({ tasks: [{ task: "x".repeat(length) }, { task: "y" }] });
    const around = JSON.stringify([{ task: "" }, { task: "y" }]).length;
    expect(checkSpawn(tasks(49_152 - around))).toMatchObject({ ok: true });
    const long = checkSpawn(tasks(49_153 - around));
    expect(long.ok || long.problem).toContain("at most 49152 bytes in all");
  });

  test("one invalid task refuses the call, and no other task is spawned", () => {
    const step = expectOutcome(
      requesting(),
      response([call("s1", "spawn_agents", { tasks: [{ task: "x" }, { task: 2 }] })]),
    );
    expect(orderKinds(step)).toEqual(["request_llm"]);
  });
});
