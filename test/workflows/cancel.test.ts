/** REQ-BED-005: the Stop of a tool: how it reaches the tool, and what is stored when everything is dead. */
import { randomUUID } from "node:crypto";
import { NativeConnection } from "@temporalio/worker";
import { RunningTools } from "../../activities/running-tools.ts";
import { describe, expect, inject, test, vi } from "vitest";
import { say, toolCall } from "../../local/scripted/script.ts";
import { PUSH, startTemporal } from "../../local/temporal/server.ts";
import { textOf, TestConversation } from "../support/conversation.ts";
import { lastingCommand } from "../support/lasting.ts";
import { until } from "../support/waiting.ts";
import { startSystem, type System } from "../support/system.ts";
import { startWorkerProcess } from "../support/worker-process.ts";
import { startWorker } from "../../worker.ts";

describe("a cancel of a tool", () => {
  test("keeps what was printed, leads to idle only after the last process is dead, and the model reads that it was cancelled", async () => {
    const system = await startSystem();
    const conversation = await TestConversation.open(system);
    const lasting = lastingCommand();
    const tag = system.model.script(randomUUID(), [
      say("Now. ", lasting.call, toolCall("bash", { command: "echo never" })),
      say("After."),
    ]);
    await conversation.send(`go ${tag}`);
    await lasting.running();
    const states: { readonly kind: string; readonly alive: number }[] = [];
    const unsubscribe = system.notifications.onCommit(() => {
      void conversation
        .stored()
        .then(({ conversation: { state } }) =>
          states.push({ kind: state.kind, alive: lasting.processes().length }),
        );
    });
    await Promise.all([conversation.cancel(), conversation.cancel()]);
    await conversation.untilState("idle");
    expect(lasting.processes()).toEqual([]);
    await conversation.cancel();
    await conversation.send("What happened?");
    await conversation.until(
      ({ conversation: { state, sequence } }) => state.kind === "idle" && sequence > 6,
    );
    unsubscribe();
    expect(states.filter(({ kind, alive }) => kind === "idle" && alive > 0)).toEqual([]);

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
    expect(textOf(cancelled)).toContain("begun");
    expect(skipped?.status).toBe("skipped");
    const read = JSON.stringify(system.model.requests.at(-1)?.json);
    expect(read).toMatch(/"begun.{0,60}"Cancelled by user".{0,20}"is_error":true/);
  });

  test("reaches a tool on another worker before any heartbeat, also where the server pushes nothing", async () => {
    const old = await startTemporal({ binary: inject("temporalBinary"), without: PUSH });
    const system = await startSystem({ workers: 0, env: { TEMPORAL_ADDRESS: old.address } });
    system.defer(() => old.stop());
    const stop = await apart(system);
    // A heartbeat that is due just then may come first.
    const told = [await stop()];
    while (told.at(-1) === true && told.length < 5) told.push(await stop());
    expect(told.at(-1)).toBe(false);
  });

  test("reaches it with the next heartbeat where the workers do not hear each other, either", async () => {
    const old = await startTemporal({ binary: inject("temporalBinary"), without: PUSH });
    const system = await startSystem({ workers: 0, env: { TEMPORAL_ADDRESS: old.address } });
    system.defer(() => old.stop());
    const deaf = vi.spyOn(RunningTools.prototype, "stop").mockImplementation(() => undefined);
    const stop = await apart(system);
    expect([await stop(), await stop()]).toEqual([true, true]);
    deaf.mockRestore();
  });
});

/**
 * Opens a conversation whose workflow runs in another process than its tools, so that a Stop goes through the server.
 * The function that it returns starts a tool and stops it. Its answer: had the answer to a heartbeat told of the Stop
 * when the tool was dead?
 */
async function apart(system: System): Promise<() => Promise<boolean>> {
  await startWorkerProcess(system, { TOOL_HOST: "another-host" });
  const connecting = vi.spyOn(NativeConnection, "connect");
  const tools = await startWorker({ ...system.config, taskQueue: randomUUID() }, () =>
    Promise.resolve(inject("bundlePath")),
  );
  system.defer(() => tools.stop());
  const [connection] = connecting.mock.settledResults;
  connecting.mockRestore();
  if (connection?.type !== "fulfilled") throw new Error("The worker has no connection.");
  const heartbeats = vi.spyOn(connection.value.workflowService, "recordActivityTaskHeartbeat");
  const conversation = await TestConversation.open(system);
  const commands = new Array<ReturnType<typeof lastingCommand>>();
  const tag = system.model.script(randomUUID(), () => say(commands.at(-1)?.call ?? "Nothing to do."));
  return async () => {
    const lasting = lastingCommand();
    commands.push(lasting);
    await conversation.send(`go ${tag}`);
    await lasting.running();
    const before = heartbeats.mock.results.length;
    const cancelled = conversation.cancel();
    await until(() => lasting.processes().length === 0);
    const answers = heartbeats.mock.settledResults.slice(before);
    await cancelled;
    await conversation.untilState("idle");
    return answers.some(({ type, value }) => type === "fulfilled" && value.cancelRequested);
  };
}
