/**
 * Workers whose activities time out while their tools run (architecture, rule 2). When a conversation is reported as
 * idle, its tools are dead, although the worker could not be reached.
 */
import { expect, test } from "vitest";
import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { say, toolCall } from "../../local/scripted/script.ts";
import { TestConversation } from "../support/conversation.ts";
import { isDead, pidIn } from "../support/processes.ts";
import { startSystem, type System } from "../support/system.ts";
import { startProxy } from "../support/tcp-proxy.ts";
import { startWorkerProcess } from "../support/worker-process.ts";

/** Starts a worker and returns the function that makes it unreachable. */
const AWAY: Readonly<Record<string, (system: System) => Promise<() => unknown>>> = {
  "is frozen": async (system) => {
    const worker = await startWorkerProcess(system);
    return () => worker.signal("SIGSTOP");
  },
  "is cut off from Temporal": async (system) => {
    const [host = "", port] = system.config.temporalAddress.split(":");
    const proxy = await startProxy({ host, port: Number(port) });
    system.defer(() => proxy.cut());
    await startWorkerProcess(system, { TEMPORAL_ADDRESS: `127.0.0.1:${proxy.port}` });
    return () => proxy.hang();
  },
};

test.concurrent.each(Object.entries(AWAY))(
  "a worker %s: its tool is dead when another worker reports that the Stop is done",
  { timeout: 60_000 },
  async (_how, start) => {
    const system = await startSystem({ workers: 0 });
    const goAway = await start(system);
    const conversation = await TestConversation.open(system, "unrestricted");
    const name = randomUUID();
    const command = `setsid sleep 300 & echo $! > ${join(system.cwd, name)}; wait`;
    const tag = system.model.script(name, [say(toolCall("bash", { command }))]);
    await conversation.send(`go ${tag}`);
    const pid = await pidIn(join(system.cwd, name));
    await goAway();
    expect(isDead(pid)).toBe(false);
    await system.startWorker();
    let wasAlive: boolean | null = null;
    const unsubscribe = system.notifications.onCommit(() => {
      void conversation.stored().then(({ conversation: { state } }) => {
        if (state.kind === "idle") wasAlive ??= !isDead(pid);
      });
    });
    await conversation.cancel();
    await conversation.untilState("idle");
    expect(isDead(pid)).toBe(true);
    unsubscribe();
    expect(wasAlive).not.toBe(true);
    expect((await conversation.results()).map(({ status }) => status)).toEqual(["cancelled"]);
  },
);
