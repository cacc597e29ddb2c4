/** Each way in which a sub-agent ends, exactly once, and the outcome that its parent reads (REQ-BED-008, 024). */
import { describe, expect, test } from "vitest";
import { hold } from "../../local/scripted/cues.ts";
import { answer, fail, say, toolCall, type Answer } from "../../local/scripted/script.ts";
import { cancelSignal, cancelUpdate, removeUpdate } from "../../protocol/workflow.ts";
import { outcomesIn, spawnFamily, type Family } from "../support/family.ts";
import { lastingCommand } from "../support/lasting.ts";
import { resetWorkflow } from "../support/reset.ts";
import { startSystem } from "../support/system.ts";
import { until } from "../support/waiting.ts";

const system = await startSystem();

const submit = (result: string, success = true) => toolCall("submit_result", { result, success });

/** The only sub-agent of a family and its parent's report. Checks that its end was announced once. */
async function endOf(family: Family) {
  const { status, text } = await family.report();
  await family.parent.untilState("idle");
  const [child] = await family.children();
  const told = await system.db.sql`
    select from events where conversation_id = ${family.parent.id} and name = 'subagent.finished'`;
  expect(told).toHaveLength(1);
  expect(status).toBe("completed");
  const { state } = (await child?.stored())?.conversation ?? {};
  return { text, outcome: outcomesIn(text), state, types: (await child?.types()) ?? [] };
}

const spawnOne = (script: readonly Answer[], timeoutSeconds?: number): Promise<Family> =>
  spawnFamily(system, [timeoutSeconds === undefined ? { script } : { script, timeoutSeconds }]);

describe("a sub-agent ends", () => {
  test("when it submits: later calls in the response are skipped", async () => {
    const family = await spawnOne([say(submit("all of it"), toolCall("bash", { command: "echo never" }))]);
    const { outcome, state, types } = await endOf(family);
    expect(outcome).toEqual(["Succeeded"]);
    expect(state).toEqual({ kind: "completed", result: "all of it", success: true });
    expect(types).toEqual(["user", "agent", "tool", "tool", "run_stop"]);
  });

  test("when it submits that it did not succeed", async () => {
    const { outcome, state } = await endOf(await spawnOne([say(submit("no way", false))]));
    expect(outcome).toEqual(["Did not succeed"]);
    expect(state).toMatchObject({ kind: "completed", success: false });
  });

  test("when it stops without submitting: it is reminded twice, and then it has failed", async () => {
    const family = await spawnOne([say("Done."), say("Done, I said."), say("What?")]);
    const { text, outcome, types } = await endOf(family);
    expect(outcome).toEqual(["Failed (unknown)"]);
    expect(text).toContain("without submitting a result");
    expect(types).toEqual(["user", "agent", "system", "agent", "system", "agent", "error", "run_stop"]);
  });

  test("with a result when it submits after a reminder", async () => {
    const { outcome } = await endOf(await spawnOne([say("Done."), say(submit("here it is"))]));
    expect(outcome).toEqual(["Succeeded"]);
  });

  test("when the model's provider refuses its request", async () => {
    const { text, outcome } = await endOf(await spawnOne([fail("authentication_error")]));
    expect(outcome).toEqual(["Failed (auth)"]);
    expect(text).toContain("Failed (auth): ");
  });

  test("when the provider fails three times", async () => {
    const failing = [fail("overloaded_error"), fail("overloaded_error"), fail("overloaded_error")];
    const { text, outcome } = await endOf(await spawnOne(failing));
    expect(outcome).toEqual(["Failed (overloaded)"]);
    expect(text).toContain("after 3 attempts");
  });

  test("REQ-BED-024: when its context is full, without a continuation; what it submitted is kept", async () => {
    const full = { usage: { input_tokens: 950_000 } };
    const family = await spawnOne([answer([toolCall("ls", {}), submit("nearly all of it")], full)]);
    const { text, outcome, state } = await endOf(family);
    expect(outcome).toEqual(["Failed (context_exhausted)"]);
    expect(text).toContain("Partial result: nearly all of it");
    expect(state).toMatchObject({ kind: "failed", partialResult: "nearly all of it" });
    expect(system.model.requestsOf(family.names.children[0] ?? null)).toHaveLength(1);
  });

  test("when its timeout expires, with all processes that it had started", async () => {
    const lasting = lastingCommand();
    const family = await spawnOne([say("Now. ", lasting.call)], 1);
    await lasting.running();
    const { text, outcome, types } = await endOf(family);
    expect(outcome).toEqual(["Failed (interrupted)"]);
    expect(text).toContain("Failed (interrupted): Timed out after 1 s. What it had found is lost");
    expect(types).toEqual(["user", "agent", "tool", "error", "run_stop"]);
    expect(lasting.processes()).toEqual([]);
  });

  test("when its timeout expires in a request", async () => {
    const { outcome, text, state } = await endOf(await spawnOne([say("… ", hold())], 0.3));
    expect(outcome).toEqual(["Failed (interrupted)"]);
    expect(text).toContain("Timed out after 0.3 s.");
    expect(state).toEqual({ kind: "failed", error: "Timed out", errorKind: "interrupted" });
  });

  test("when the time is over that the system gives to a task without a limit of its own", async () => {
    const hasty = await startSystem({ hasSandbox: false, env: { SUB_AGENT_TIMEOUT_SECONDS: "1" } });
    const family = await spawnFamily(hasty, [
      { script: [say("… ", hold())] },
      { script: [say("… ", hold())], timeoutSeconds: 0.5 },
    ]);
    const { text } = await family.report();
    expect(outcomesIn(text)).toEqual(["Failed (interrupted)", "Failed (interrupted)"]);
    expect(text).toMatch(/Task 1: .*\n.*Timed out after 1 s\.[^]*Task 2: .*\n.*Timed out after 0\.5 s\./);
    const [asked] = hasty.model.requestsOf(family.names.parent);
    expect(JSON.stringify(asked?.body.tools)).toContain("default 1, at most 86400");
  });

  test("before its timeout, which then has no effect", async () => {
    const { outcome } = await endOf(await spawnOne([say(submit("quick"))], 3_600));
    expect(outcome).toEqual(["Succeeded"]);
  });

  test.for([
    {
      how: "by the API",
      cancel: (id: string) =>
        void system.temporal.workflow.getHandle(id).executeUpdate(cancelUpdate, { args: [{ queue: "run" }] }),
    },
    {
      how: "by signal",
      cancel: (id: string) => void system.temporal.workflow.getHandle(id).signal(cancelSignal, {}),
    },
  ])("when a person cancels it $how", async ({ cancel }) => {
    const lasting = lastingCommand();
    const family = await spawnOne([say("Now. ", lasting.call)]);
    await lasting.running();
    cancel((await family.child(1)).id);
    const { outcome, text } = await endOf(family);
    expect(outcome).toEqual(["Failed (interrupted)"]);
    expect(text).toContain("Cancelled by user");
    expect(lasting.processes()).toEqual([]);
  });

  test("when its workflow is cancelled in the Temporal UI", async () => {
    const lasting = lastingCommand();
    const family = await spawnOne([say("Now. ", lasting.call)]);
    await lasting.running();
    await (await family.child(1)).handle.cancel();
    const { outcome } = await endOf(family);
    expect(outcome).toEqual(["Failed (interrupted)"]);
    expect(lasting.processes()).toEqual([]);
  });

  test("when its workflow is terminated in the Temporal UI: its row says so, and its processes die", async () => {
    const lasting = lastingCommand();
    const family = await spawnOne([say("Now. ", lasting.call)]);
    await lasting.running();
    await (await family.child(1)).handle.terminate("test");
    const { outcome, state, types } = await endOf(family);
    expect(outcome).toEqual(["Failed (interrupted)"]);
    expect(state).toMatchObject({ kind: "failed", errorKind: "interrupted" });
    expect(types).toEqual(["user", "agent", "tool", "error", "run_stop"]);
    await until(() => lasting.processes().length === 0);
  });

  test("with its result when its workflow is terminated just after it has submitted", async () => {
    const family = await spawnOne([say(submit("in time"))]);
    const child = await family.child(1);
    await child.untilState("completed");
    await child.handle.terminate("test").catch(() => undefined);
    expect((await endOf(family)).outcome).toEqual(["Succeeded"]);
  });

  test("when it is deleted", async () => {
    const lasting = lastingCommand();
    const family = await spawnOne([say("Now. ", lasting.call)]);
    await lasting.running();
    await (await family.child(1)).handle.executeUpdate(removeUpdate, { args: [{ remove: true }] });
    const { text } = await family.report();
    expect(outcomesIn(text)).toEqual(["Failed (interrupted)"]);
    expect(await family.children()).toEqual([]);
    expect(lasting.processes()).toEqual([]);
    await family.parent.untilState("idle");
  });

  test("when an operator resets its workflow, which then goes on from the row", async () => {
    const lasting = lastingCommand();
    const family = await spawnOne([say("Now. ", lasting.call)]);
    await lasting.running();
    const child = await family.child(1);
    await resetWorkflow(child, (tasks) => tasks[1]);
    const { outcome, state } = await endOf(family);
    expect(outcome).toEqual(["Failed (interrupted)"]);
    expect(state).toMatchObject({ kind: "failed" });
    await until(() => lasting.processes().length === 0);
  });
});
