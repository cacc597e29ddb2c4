/** A cancel of the parent at each stage of its sub-agents: all of them end, and only then is the parent idle. */
import { randomUUID } from "node:crypto";
import { describe, expect, test } from "vitest";
import { hold } from "../../local/scripted/cues.ts";
import { fail, rateLimited, say, toolCall, type Answer } from "../../local/scripted/script.ts";
import { archiveUpdate, removeUpdate } from "../../protocol/workflow.ts";
import { TestConversation } from "../support/conversation.ts";
import { outcomesIn, spawnFamily, type Family } from "../support/family.ts";
import { lastingCommand } from "../support/lasting.ts";
import { resetWorkflow } from "../support/reset.ts";
import { startSystem } from "../support/system.ts";

const system = await startSystem();

const submit = (result: string) => toolCall("submit_result", { result });

/** Waits until no sub-agent that has a row has an open workflow. Returns the kinds of their states. */
async function expectEnded(family: Family): Promise<readonly string[]> {
  const kinds: string[] = [];
  for (const child of await family.children()) {
    await closed(async () => (await child.handle.describe()).status.name !== "RUNNING");
    kinds.push((await child.stored()).conversation.state.kind);
  }
  return kinds.sort();
}

/** Asks until the answer is yes: a workflow closes a moment after its last commit. */
async function closed(ask: () => Promise<boolean>): Promise<void> {
  while (!(await ask())) await new Promise((resolve) => setTimeout(resolve, 10));
}

const stages: Readonly<
  Record<
    string,
    () => {
      readonly script: readonly Answer[];
      readonly met: (family: Family) => Promise<unknown>;
      /** What runs there. */
      readonly processes?: () => readonly string[];
    }
  >
> = {
  "in a request": () => {
    const held = hold();
    return { script: [say("… ", held)], met: () => held.reached };
  },
  "waiting for another attempt": () => ({
    script: [rateLimited(30), say(submit("late"))],
    met: async (family) =>
      (await family.child(1)).until(
        ({ conversation: { state } }) => state.kind === "llm_requesting" && state.retry !== null,
      ),
  }),
  "in a tool": () => {
    const lasting = lastingCommand();
    return {
      script: [say("Now. ", lasting.call), say(submit("never"))],
      met: lasting.running,
      processes: lasting.processes,
    };
  },
  reminded: () => {
    const held = hold();
    return { script: [say("Done."), say("… ", held)], met: () => held.reached };
  },
};

describe("a cancel of the parent", () => {
  test.for(Object.entries(stages))("ends a sub-agent %s, before the parent is idle", async ([, stage]) => {
    const { script, met, processes = () => [] } = stage();
    const family = await spawnFamily(system, [{ script }], { calls: [toolCall("ls", {})] });
    await met(family);
    await Promise.all([family.parent.cancel(), family.parent.cancel()]);
    await family.parent.untilState("idle");
    expect(processes()).toEqual([]);
    expect(await expectEnded(family)).toEqual(["failed"]);
    const { status, text } = await family.report();
    expect(status).toBe("cancelled");
    expect(outcomesIn(text)).toEqual(["Failed (interrupted)"]);
    expect(text).toContain("Cancelled with its parent");
    expect((await family.parent.results()).map((result) => result.status)).toEqual(["cancelled", "skipped"]);
    await family.parent.send("And now?");
    await family.parent.untilState("idle");
  });

  test("ends sub-agents at different stages, keeps finished ones, and starts none that wait for a place", async () => {
    const lasting = lastingCommand();
    const held = [hold(), hold(), hold(), hold(), hold(), hold()];
    const family = await spawnFamily(system, [
      { script: [say(submit("finished"))] },
      { script: [fail("authentication_error")] },
      { script: [say("Now. ", lasting.call)] },
      ...held.map((one) => ({ script: [say("… ", one)] })),
      ...Array.from({ length: 7 }, () => ({ script: [say("… ", hold())] })),
    ]);
    await lasting.running();
    await Promise.all(held.map((one) => one.reached));
    await family.parent.until(
      ({ conversation: { state } }) => "finished" in state && state.finished.length === 2,
    );
    await family.parent.cancel();
    await family.parent.untilState("idle");
    expect(lasting.processes()).toEqual([]);
    const kinds = await expectEnded(family);
    expect(kinds.filter((kind) => kind === "completed")).toHaveLength(1);
    expect(kinds.filter((kind) => kind !== "completed" && kind !== "failed")).toEqual([]);
    const { text } = await family.report();
    expect(outcomesIn(text)).toEqual([
      "Succeeded",
      "Failed (auth)",
      ...Array.from({ length: 14 }, () => "Failed (interrupted)"),
    ]);
    // The sub-agents that waited for a place never began.
    expect(kinds.length).toBeLessThanOrEqual(10);
  });

  test("ends sub-agents at the very moment in which they start", async () => {
    for (let n = 0; n < 10; n++) {
      const family = await spawnFamily(
        system,
        Array.from({ length: 4 }, () => ({ script: [say("… ", hold())] })),
      );
      await family.parent.until(({ conversation: { state } }) => state.kind === "awaiting_sub_agents");
      await new Promise((resolve) => setTimeout(resolve, 5 * n));
      await family.parent.cancel();
      await family.parent.untilState("idle");
      expect(new Set(await expectEnded(family))).toEqual(
        new Set((await family.children()).map(() => "failed")),
      );
      expect(outcomesIn((await family.report()).text)).toHaveLength(4);
    }
  });

  test("keeps one outcome of a sub-agent that ends by itself at the same time", async () => {
    for (let n = 0; n < 5; n++) {
      const held = hold();
      const family = await spawnFamily(system, [{ script: [say("… ", held, submit("just in time"))] }]);
      await held.reached;
      held.release();
      await Promise.all([new Promise((resolve) => setTimeout(resolve, 8 * n)), family.parent.cancel()]);
      await family.parent.untilState("idle");
      expect(outcomesIn((await family.report()).text)).toHaveLength(1);
      await expectEnded(family);
    }
  });
});

describe("sub-agents end with their parent", () => {
  test("archiving the parent stops and archives them, and a message brings them back", async () => {
    const lasting = lastingCommand();
    const family = await spawnFamily(system, [
      { script: [say("Now. ", lasting.call)] },
      { script: [say(submit("done"))] },
    ]);
    await lasting.running();
    await family.parent.handle.executeUpdate(archiveUpdate, { args: [{ archived: true }] });
    await family.parent.until(({ archived }) => archived);
    expect(lasting.processes()).toEqual([]);
    await expectEnded(family);
    const archived = async () =>
      Promise.all((await family.children()).map(async (child) => (await child.stored()).archived));
    expect(await archived()).toEqual([true, true]);
    await family.parent.send("Go on.");
    await family.parent.untilState("idle");
    expect(await archived()).toEqual([false, false]);
  });

  test("deleting the parent stops them and removes their rows", async () => {
    const lasting = lastingCommand();
    const family = await spawnFamily(system, [
      { script: [say("Now. ", lasting.call)] },
      { script: [say(submit("done"))] },
    ]);
    await lasting.running();
    const { id } = await family.child(1);
    await family.parent.handle.executeUpdate(removeUpdate, { args: [{ remove: true }] });
    expect(lasting.processes()).toEqual([]);
    expect(await family.children()).toEqual([]);
    const child = new TestConversation(system, id);
    await closed(async () => (await child.handle.describe()).status.name !== "RUNNING");
  });

  test("removing a parent whose sub-agent cannot end leaves no workflow behind", async () => {
    const held = hold();
    const family = await spawnFamily(system, [{ script: [say("… ", held)] }]);
    await held.reached;
    const child = await family.child(1);
    const release = await child.block();
    const { handle } = family.parent;
    const archiving = handle.executeUpdate(archiveUpdate, { args: [{ archived: true }] });
    await family.parent.untilState("cancelling");
    const removing = handle.executeUpdate(removeUpdate, { args: [{ remove: true }] });
    await closed(async () => {
      const [row] = await system.db.sql<{ waits: boolean }[]>`
        select count(*) > 0 as waits from pg_stat_activity
        where wait_event_type = 'Lock' and query like '%delete from conversations%' and datname = current_database()`;
      return row?.waits === true;
    });
    await release();
    await Promise.all([archiving, removing]);
    for (const one of [handle, child.handle])
      await closed(async () => (await one.describe()).status.name !== "RUNNING");
  });

  test("a parent whose row is gone ends, whatever signals it gets then", async () => {
    const held = hold();
    const family = await spawnFamily(system, [{ script: [say("… ", held)] }]);
    await held.reached;
    await system.db.sql`delete from conversations where id = ${family.parent.id}`;
    const { handle } = family.parent;
    for (let n = 0; n < 10; n++) await handle.signal("archive", {});
    await closed(async () => (await handle.describe()).status.name !== "RUNNING");
  });

  test("a sub-agent that starts when its parent is gone ends", async () => {
    const { createInput } = await orphan();
    const handle = await system.temporal.workflow.start("conversation", {
      workflowId: createInput.config.id,
      taskQueue: system.config.taskQueue,
      args: [{ conversationId: createInput.config.id, createInput }],
    });
    expect(await handle.result()).toBeNull();
  });

  test.for([
    // The new run gets the sub-agents that it had started by then. The others belong to the earlier run.
    { when: "before their start", outcome: "Failed (interrupted)", ends: "failed" },
    { when: "after their start", outcome: "Succeeded", ends: "completed" },
  ])("after a reset of the parent to $when they end, and it gets the outcomes", async ({ outcome, ends }) => {
    const holds = [hold(), hold()];
    const family = await spawnFamily(
      system,
      holds.map((held) => ({ script: [say("… ", held, submit("kept"))] })),
    );
    await Promise.all(holds.map((held) => held.reached));
    await resetWorkflow(family.parent, (tasks, all) => {
      const spawned = all.findIndex(
        (event) => event.startChildWorkflowExecutionInitiatedEventAttributes != null,
      );
      // The task that spawned is the event before.
      return tasks.findLast((task) => ends === "completed" || all.indexOf(task) < spawned - 1);
    });
    if (ends === "completed") for (const held of holds) held.release();
    await family.parent.untilState("idle");
    expect(await expectEnded(family)).toEqual([ends, ends]);
    expect(outcomesIn((await family.report()).text)).toEqual([outcome, outcome]);
  });

  test("after the parent is terminated, they are cancelled, and it goes on with the next message", async () => {
    const lasting = lastingCommand();
    const family = await spawnFamily(system, [{ script: [say("Now. ", lasting.call)] }]);
    await lasting.running();
    await family.parent.handle.terminate("test");
    await (await family.child(1)).untilState("failed");
    expect(lasting.processes()).toEqual([]);
    await family.parent.send("Go on.");
    await family.parent.untilState("idle");
    expect((await family.parent.results()).map(({ status }) => status)).toEqual(["interrupted"]);
  });
});

/** The create input of a sub-agent whose parent has no row. */
async function orphan() {
  const { createInputFor } = await import("../support/create-input.ts");
  const id = randomUUID();
  const base = createInputFor(system, id);
  const config = { ...base.config, parentId: randomUUID(), userInitiated: false };
  return { createInput: { ...base, config, task: { messageId: `task-${id}`, text: "too late" } } };
}
