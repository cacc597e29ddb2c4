/** REQ-BED-005: the Stop of a tool, from the update to the end of its last process and to the stored messages. */
import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { describe, expect, inject, test } from "vitest";
import { say, toolCall } from "../../local/scripted/script.ts";
import { startTemporal } from "../../local/temporal/server.ts";
import { textOf, TestConversation } from "../support/conversation.ts";
import { isDead, pidIn } from "../support/processes.ts";
import { until } from "../support/waiting.ts";
import { startSystem, type System } from "../support/system.ts";
import { startWorkerProcess } from "../support/worker-process.ts";

const TREE = `echo partly; trap "" TERM; (setsid sleep 300 &); echo $$ > pid-$NAME; while :; do sleep 1; done`;

/** A conversation whose tool runs, and the id of its shell. */
async function withRunningTool(system: System) {
  const opened = await TestConversation.open(system);
  const name = randomUUID();
  const call = toolCall("bash", { command: TREE.replace("$NAME", name) });
  const tag = system.model.script(name, [
    say("Now. ", call, toolCall("bash", { command: "echo never" })),
    say("After."),
  ]);
  await opened.send(`go ${tag}`);
  const pid = await pidIn(join(system.cwd, `pid-${name}`));
  return { conversation: opened, pid, name };
}

describe("a cancel of a tool", () => {
  test("keeps what was printed, leads to idle only after the last process is dead, and the model reads that it was cancelled", async () => {
    const system = await startSystem();
    const { conversation, pid } = await withRunningTool(system);
    const states: { readonly kind: string; readonly alive: boolean }[] = [];
    const unsubscribe = system.notifications.onCommit(() => {
      const alive = !isDead(pid);
      void conversation
        .stored()
        .then(({ conversation: { state } }) => states.push({ kind: state.kind, alive }));
    });
    await Promise.all([conversation.cancel(), conversation.cancel()]);
    await conversation.untilState("idle");
    expect(isDead(pid)).toBe(true);
    await conversation.cancel();
    await conversation.send("What happened?");
    await conversation.until(
      ({ conversation: { state, sequence } }) => state.kind === "idle" && sequence > 6,
    );
    unsubscribe();
    expect(states.filter(({ kind, alive }) => kind === "idle" && alive)).toEqual([]);

    expect(await conversation.types()).toEqual([
      "user",
      "agent",
      "tool",
      "tool",
      "run_stop",
      "user",
      "agent",
      "run_stop",
    ]);
    const [cancelled, skipped] = await conversation.results();
    expect(cancelled?.status).toBe("cancelled");
    expect(textOf(cancelled)).toContain("partly");
    expect(skipped?.status).toBe("skipped");
    const read = JSON.stringify(system.model.requests.at(-1)?.json);
    expect(read).toMatch(/"partly.{0,60}"Cancelled by user".{0,20}"is_error":true/);
  });

  test(
    "reaches the worker by the server's push; without it, by the next heartbeat",
    { timeout: 120_000 },
    async () => {
      const old = await startTemporal({ binary: inject("temporalBinary"), pushesCancels: false });
      const pushing = await startSystem({ workers: 0 });
      const beating = await startSystem({ workers: 0, env: { TEMPORAL_ADDRESS: old.address } });
      beating.defer(() => old.stop());
      const [pushed, beaten] = [await openApart(pushing), await openApart(beating)];
      const times = { push: [] as number[], beat: [] as number[] };
      for (let n = 0; n < 5; n++) {
        times.push.push(await timeOfCancel(pushed, n));
        times.beat.push(await timeOfCancel(beaten, n));
      }
      // A heartbeat comes every 500 ms, a push at once. The tool has to die in either case.
      expect(median(times.push)).toBeLessThan(median(times.beat));
      expect(Math.max(...times.beat)).toBeLessThan(5_000);
    },
  );
});

/** A conversation whose tools run in another process than its workflow, so that a Stop goes through the server. */
async function openApart(system: System) {
  await startWorkerProcess(system, { TOOL_HOST: "another-host" });
  const conversation = await TestConversation.open(system);
  await system.startWorker();
  const name = randomUUID();
  const tag = system.model.script(name, (_request, n) =>
    say(toolCall("bash", { command: TREE.replace("$NAME", `${name}-${n - 1}`) })),
  );
  return { conversation, tag, pid: (n: number) => pidIn(join(system.cwd, `pid-${name}-${n}`)) };
}

/** Milliseconds from the cancel to the death of the tool's shell. */
async function timeOfCancel(apart: Awaited<ReturnType<typeof openApart>>, n: number): Promise<number> {
  const { conversation } = apart;
  await conversation.send(`go ${apart.tag}`);
  const pid = await apart.pid(n);
  const started = performance.now();
  const cancelled = conversation.cancel();
  await until(() => isDead(pid));
  const took = performance.now() - started;
  await cancelled;
  await conversation.untilState("idle");
  return took;
}

const median = (values: readonly number[]): number =>
  [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
