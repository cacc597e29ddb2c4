/** Owns: an API and a worker as processes of their own, whose metrics can be scraped, and a workload for them. */
import { randomUUID } from "node:crypto";
import { setTimeout as pass } from "node:timers/promises";
import { inject } from "vitest";
import { freePort } from "../../local/ports.ts";
import { rateLimited, say, toolCall } from "../../local/scripted/script.ts";
import { TestConversation } from "../support/conversation.ts";
import { startSystem, type System } from "../support/system.ts";
import { spawnPart, startWorkerProcess } from "../support/worker-process.ts";

export type Metered = {
  readonly system: System;
  readonly api: { readonly url: string; readonly port: number };
  readonly worker: { readonly url: string; readonly port: number };
};

export async function startMetered(env: Readonly<Record<string, string>> = {}): Promise<Metered> {
  const system = await startSystem({ workers: 0 });
  const [apiPort, workerPort] = [await freePort(), await freePort()];
  const { config } = system;
  await startWorkerProcess(system, { METRICS_PORT: String(workerPort), ...env });
  const api = spawnPart(
    { program: "api/main.ts", ready: "api ready" },
    {
      DATABASE_URL: config.databaseUrl,
      TEMPORAL_ADDRESS: inject("temporalAddress"),
      TASK_QUEUE: config.taskQueue,
      TOOL_HOST: config.toolHost,
      PORT: String(apiPort),
      ANONYMOUS_ROLE: "admin",
      ...env,
    },
  );
  system.defer(async () => {
    api.signal("SIGKILL");
    await api.exited;
  });
  await api.ready;
  return {
    system,
    api: { url: `http://127.0.0.1:${apiPort}`, port: apiPort },
    worker: { url: `http://127.0.0.1:${workerPort}`, port: workerPort },
  };
}

/** Turns with everything that is counted: tools, a retry, a Stop, a message that waits. */
export async function work({ system, api }: Metered): Promise<void> {
  const send = async (id: string, message: object): Promise<void> => {
    const response = await fetch(`${api.url}/api/conversations/${id}/messages`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ id: randomUUID(), ...message }),
    });
    if (response.status !== 202) throw new Error(await response.text());
  };
  const script = (...answers: Parameters<typeof system.model.script>[1] & readonly unknown[]) =>
    `go ${system.model.script(randomUUID(), answers)}`;
  const first = await TestConversation.open(system, "unrestricted");
  await send(first.id, {
    text: script(
      rateLimited(1),
      say(toolCall("bash", { command: "sleep 0.5" }), toolCall("no_such_tool", {})),
      say("Done."),
      say("And that."),
    ),
  });
  await first.untilState("tool_executing");
  await send(first.id, { text: "And then?", delivery: "followUp" });
  await first.untilState("idle");
  const second = await TestConversation.open(system, "unrestricted");
  await send(second.id, { text: script(say(toolCall("bash", { command: "sleep 300" }))) });
  await second.untilState("tool_executing");
  await second.cancel();
  await second.untilState("idle");
  await fetch(`${api.url}/api/conversations/${second.id}`);
  // Turns are counted a moment after their end.
  await pass(2_500);
}

export const scrape = async (url: string): Promise<string> => {
  const response = await fetch(`${url}/metrics`);
  if (!response.ok) throw new Error(`${url}/metrics answers ${response.status}`);
  return response.text();
};

export type Sample = { readonly name: string; readonly labels: Readonly<Record<string, string>> };

/** The samples of a scrape, without their values. */
export function samplesIn(text: string): readonly Sample[] {
  return text
    .split("\n")
    .filter((line) => line !== "" && !line.startsWith("#"))
    .map((line) => {
      const [, name = "", labels = ""] = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? /.exec(line) ?? [];
      const pairs = [...labels.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)];
      return { name, labels: Object.fromEntries(pairs.map(([, label = "", value = ""]) => [label, value])) };
    });
}
