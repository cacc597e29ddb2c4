/** REQ-BED-008, 009: several sub-agents at once, their results at the parent, and the tools that they do not have. */
import { randomUUID } from "node:crypto";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { hold } from "../../local/scripted/cues.ts";
import { answer, say, toolCall, type Answer } from "../../local/scripted/script.ts";
import { TestConversation, textOf } from "../support/conversation.ts";
import { outcomesIn, spawnFamily, spawning } from "../support/family.ts";
import { startSystem } from "../support/system.ts";

const system = await startSystem();

const submit = (result: string) => toolCall("submit_result", { result });
const done = (result: string): Answer => say(submit(result));
const bash = (command: string) => toolCall("bash", { command });

describe("sub-agents", () => {
  test("8 work at the same time: all have a request in flight before one goes on", async () => {
    const holds = Array.from({ length: 8 }, () => hold());
    const family = await spawnFamily(
      system,
      holds.map((held, n) => ({ script: [say("… ", held, submit(`result ${n + 1}`))] })),
    );
    await Promise.all(holds.map((held) => held.reached));
    for (const held of holds.toReversed()) held.release();
    const { status, text } = await family.report();
    expect(status).toBe("completed");
    // In the order of the tasks, whichever ended first.
    expect(text.match(/result \d/g)).toEqual(holds.map((_, n) => `result ${n + 1}`));
    await family.parent.untilState("idle");
  });

  test("at most 8 of 16 work at once, and each that ends makes room for the next", async () => {
    const holds = Array.from({ length: 16 }, () => hold());
    let [working, most] = [0, 0];
    const family = await spawnFamily(
      system,
      holds.map((held, n) => ({
        script: () => {
          most = Math.max(most, ++working);
          return say("… ", held, submit(`result ${n + 1}`));
        },
      })),
    );
    await Promise.all(holds.slice(0, 8).map((held) => held.reached));
    expect(system.model.requestsOf(family.names.children[8] ?? null)).toEqual([]);
    for (const [n, held] of holds.entries()) {
      working--;
      held.release();
      await holds[n + 8]?.reached;
    }
    const { text } = await family.report();
    expect(outcomesIn(text)).toEqual(holds.map(() => "Succeeded"));
    expect(most).toBe(8);
    expect(await family.children()).toHaveLength(16);
  });

  test("16 that print 1 MB each deliver every result, and the parent's result is bounded", async () => {
    const tasks = Array.from({ length: 16 }, () => ({
      script: [say(bash("head -c 1000000 /dev/zero | tr '\\0' x")), done("y".repeat(100_000))],
    }));
    const family = await spawnFamily(system, tasks);
    const { status, text } = await family.report();
    expect(status).toBe("completed");
    expect(outcomesIn(text)).toEqual(tasks.map(() => "Succeeded"));
    expect(text.match(/83616 characters cut/g)).toHaveLength(16);
    // The sub-agent itself keeps all of its submission.
    const [first] = await family.children();
    const { state } = (await first?.stored())?.conversation ?? {};
    expect(state).toMatchObject({ kind: "completed", result: "y".repeat(100_000) });
  });

  test("two parents at once each get the results of their own sub-agents", async () => {
    const ask = (who: string) =>
      spawnFamily(
        system,
        Array.from({ length: 3 }, (_, n) => ({ script: [done(`${who} ${n}`)] })),
      );
    const [a, b] = await Promise.all([ask("a"), ask("b")]);
    expect((await a.report()).text.match(/: [ab] \d/g)).toEqual([": a 0", ": a 1", ": a 2"]);
    expect((await b.report()).text.match(/: [ab] \d/g)).toEqual([": b 0", ": b 1", ": b 2"]);
  });

  test("REQ-BED-024: the parent reads of a failure, and may spawn a replacement; its other calls run after", async () => {
    const again = spawning(system, [{ script: [done("found")] }]);
    const file = join(system.cwd, randomUUID());
    const held = hold();
    const family = await spawnFamily(
      system,
      [
        { script: [answer(["Too much."], { usage: { input_tokens: 950_000 } })] },
        { script: [say("… ", held, submit("late"))] },
      ],
      {
        parent: await TestConversation.open(system, "unrestricted"),
        calls: [bash(`touch ${file}`)],
        then: [say("Again. ", again.call), say("Done.")],
      },
    );
    await held.reached;
    // One has failed, the other still works: nothing else of the round has begun.
    const { conversation } = await family.parent.until(
      ({ conversation: { state } }) => "finished" in state && state.finished.length === 1,
    );
    expect(conversation.state.kind).toBe("awaiting_sub_agents");
    expect(existsSync(file)).toBe(false);
    held.release();
    const first = await family.report();
    expect(outcomesIn(first.text)).toEqual(["Failed (context_exhausted)", "Succeeded"]);
    expect((await family.report(2)).text).toContain("found");
    await family.parent.untilState("idle");
    expect(existsSync(file)).toBe(true);
    // The model asks for the replacement after it has read of the failure.
    const [, reading] = system.model.requestsOf(family.names.parent);
    expect(JSON.stringify(reading?.body.messages.at(-1))).toContain("Failed (context_exhausted)");
    expect((await family.parent.results()).map(({ name }) => name)).toEqual([
      "spawn_agents",
      "bash",
      "spawn_agents",
    ]);
  });

  test("two calls in one response run one after the other", async () => {
    const held = hold();
    const second = spawning(system, [{ script: [done("two")] }]);
    const family = await spawnFamily(system, [{ script: [say("… ", held, submit("one"))] }], {
      calls: [second.call],
    });
    await held.reached;
    expect(system.model.requestsOf(second.names[0] ?? null)).toEqual([]);
    held.release();
    expect((await family.report(1)).text).toContain("one");
    expect((await family.report(2)).text).toContain("two");
  });

  test("REQ-BED-009, 018: a tool that a sub-agent does not have gives a failed result, and it goes on", async () => {
    const family = await spawnFamily(system, [
      {
        script: [
          say(
            toolCall("spawn_agents", { tasks: [{ task: "nested" }] }),
            toolCall("request_mode_upgrade", { reason: "please" }),
            bash("echo went on"),
          ),
          done("alone"),
        ],
      },
    ]);
    expect((await family.report()).text).toContain("Succeeded: alone");
    const [child] = await family.children();
    const results = (await child?.results()) ?? [];
    expect(results.map(({ name, status }) => [name, status])).toEqual([
      ["spawn_agents", "failed"],
      ["request_mode_upgrade", "failed"],
      ["bash", "completed"],
      ["submit_result", "completed"],
    ]);
    expect(textOf(results[0])).toBe('There is no tool named "spawn_agents" in this conversation.');
    const offered = system.model.requestsOf(family.names.children[0] ?? null)[0]?.body.tools ?? [];
    const names = offered.map(({ name }) => name);
    expect(names).toContain("submit_result");
    expect(names).toContain("bash");
    expect(names).not.toContain("spawn_agents");
    expect(names).not.toContain("request_mode_upgrade");
  });

  test("REQ-BED-009: a sub-agent has a state, messages and events of its own", async () => {
    const held = hold();
    const family = await spawnFamily(system, [{ script: [say("… ", held, submit("mine"))] }]);
    await held.reached;
    const child = await family.child(1);
    const { config, conversation } = await child.stored();
    expect(config).toMatchObject({ parentId: family.parent.id, userInitiated: false, cwd: system.cwd });
    expect(conversation.state.kind).toBe("llm_requesting");
    expect(await child.types()).toEqual(["user"]);
    held.release();
    expect(await child.untilState("completed")).toEqual({
      kind: "completed",
      result: "mine",
      success: true,
    });
    expect(await child.types()).toEqual(["user", "agent", "tool", "run_stop"]);
    await family.parent.untilState("idle");
    expect(await family.parent.types()).toEqual(["user", "agent", "tool", "agent", "run_stop"]);
    const events = await system.db.sql<{ name: string; data: unknown }[]>`
      select name, data from events where conversation_id = ${family.parent.id} and name like 'subagent%'
      order by number`;
    expect(events).toMatchObject([
      { name: "subagent.spawned", data: { id: child.id } },
      { name: "subagent.finished", data: { id: child.id, outcome: { success: true, result: "mine" } } },
    ]);
  });
});
