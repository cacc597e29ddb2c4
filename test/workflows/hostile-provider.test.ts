/**
 * A provider that sends without end, while the same worker runs another conversation's command. The worker keeps its
 * heartbeats and its memory, and only the conversation that asked is affected.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { request as httpRequest, type IncomingMessage, type ServerResponse } from "node:http";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { say, toolCall } from "../../local/scripted/script.ts";
import { TestConversation, textOf } from "../support/conversation.ts";
import { ATTACKS, startHostileProvider } from "../support/hostile-provider.ts";
import { startSystem } from "../support/system.ts";
import { startWorkerProcess } from "../support/worker-process.ts";

type Name = keyof typeof ATTACKS;
const NAMES = Object.keys(ATTACKS) as Name[];

type Body = { readonly messages: readonly { readonly content: readonly { readonly text?: string }[] }[] };

/** The attack that the person asked for last. */
function attackOf(body: string) {
  const last = body === "" ? "" : (JSON.parse(body) as Body).messages.at(-1)?.content.at(-1)?.text;
  const name = NAMES.find((candidate) => last === `attack: ${candidate}`);
  return name === undefined ? null : ([name, ATTACKS[name]] as const);
}

/** Forwards a request to the scripted model. */
const forwardTo = (url: string) => (from: IncomingMessage, body: string, to: ServerResponse) => {
  const { method, headers, url: path = "/" } = from;
  const forwarded = httpRequest(`${url}${path}`, { method, headers }, (answer) => {
    to.writeHead(answer.statusCode ?? 500, answer.headers);
    answer.pipe(to);
  });
  to.on("close", () => forwarded.destroy());
  forwarded.on("error", () => to.destroy());
  forwarded.end(body);
};

/** Resident memory of a process. Megabytes. */
const memoryOf = (pid: number): number =>
  Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) / 1024;

/** Looks every 10 ms. Only root could reset the kernel's own maximum of a process whose memory is closed. */
function watchMemory(pid: number): { readonly growth: () => number } {
  const before = memoryOf(pid);
  let most = before;
  const timer = setInterval(() => (most = Math.max(most, memoryOf(pid))), 10);
  onTestFinished(() => clearInterval(timer));
  return { growth: () => most - before };
}

test("an endless answer of any kind ends only its own run, once, with an error message", async () => {
  const system = await startSystem({ workers: 0 });
  const provider = await startHostileProvider(attackOf, forwardTo(system.model.url));
  system.defer(() => provider.close());
  const worker = await startWorkerProcess(system, { ANTHROPIC_BASE_URL: provider.url });

  const neighbour = await TestConversation.open(system);
  const command = "while ! test -e go; do sleep 0.1; done; echo whole";
  const running = system.model.script("neighbour", [say(toolCall("bash", { command })), say("Done.")]);
  await neighbour.send(`go ${running}`);
  await neighbour.untilState("tool_executing");

  const attacked = await TestConversation.open(system);
  const onwards = system.model.script(
    "onwards",
    NAMES.map(() => say("I go on.")),
  );
  const memory = watchMemory(worker.pid);
  for (const name of NAMES) {
    await attacked.send(`attack: ${name}`);
    const { message } = await attacked.untilState("error");
    expect(message, name).toMatch(
      name === "an error without end"
        ? /^The provider refused the request/
        : /^The model's answer could not be kept: /,
    );
    expect(provider.asked(name), name).toBe(1);
    await attacked.send(`go ${onwards}`);
    await attacked.until(({ conversation }) => conversation.state.kind === "idle");
  }
  expect(memory.growth()).toBeLessThan(150);

  expect((await neighbour.stored()).conversation.state.kind).toBe("tool_executing");
  writeFileSync(join(system.cwd, "go"), "");
  await neighbour.untilState("idle");
  const [result] = await neighbour.results();
  expect(result?.status).toBe("completed");
  expect(textOf(result)).toContain("whole");
}, 120_000);
