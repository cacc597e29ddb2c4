/** Measures: the cost of a sub-agent: time to its first request, wall time beside others, time to cancel it, memory. */
import { randomUUID } from "node:crypto";
import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { pause as takeTime } from "../local/scripted/cues.ts";
import { say, toolCall, type Answer } from "../local/scripted/script.ts";
import { isDead, survivors } from "../test/support/processes.ts";
import type { Product } from "../test/support/product.ts";
import { Talk } from "../test/support/talk.ts";

/** Sub-agents of one generation. */
export const GENERATION = 128;

const submit = toolCall("submit_result", { result: "done" });

/**
 * Scripts for `count` sub-agents that take a second of the model's time each. A sub-agent that ended at once would
 * delay those that have not begun.
 */
const slow = (count: number): (readonly Answer[])[] =>
  Array.from({ length: count }, () => [say("… ", takeTime(1_000), submit)]);

/** Lets a conversation spawn sub-agents with these scripts. Returns the scripts' names, and its next idle. */
async function spawn(talk: Talk, scripts: readonly (readonly Answer[])[]) {
  const { model } = talk.product;
  const names = scripts.map((_, n) => `${talk.id}-${n}`);
  const tasks = names.map((name, n) => ({ task: `do it ${model.script(name, scripts[n] ?? [])}` }));
  const idle = talk.nextState("idle");
  await talk.send(`go ${model.script(talk.id, [say(toolCall("spawn_agents", { tasks })), say("Done.")])}`);
  return { names, idle };
}

/** Milliseconds from the end of the parent's response to the first request of the last of `count` sub-agents. */
export async function firstRequests(
  product: Product,
  cwd: string,
  count: number,
  rounds: number,
): Promise<number[]> {
  const samples: number[] = [];
  for (let round = 0; round < rounds; round++) {
    const talk = await Talk.open(product, cwd);
    const { names, idle } = await spawn(talk, slow(count));
    await idle;
    const ended = product.model.requestsOf(talk.id)[0]?.endedAt ?? Number.NaN;
    const arrivals = names.map((name) => product.model.requestsOf(name)[0]?.arrivedAt ?? Number.NaN);
    samples.push(Math.max(...arrivals) - ended);
    talk.close();
  }
  return samples;
}

/** Milliseconds of a call of `count` sub-agents that take a second of the model's time each, POST to idle. */
export async function wallTime(product: Product, cwd: string, count: number): Promise<number> {
  const talk = await Talk.open(product, cwd);
  const started = performance.now();
  const { idle } = await spawn(talk, slow(count));
  const ended = (await idle).at;
  talk.close();
  return ended - started;
}

/** Milliseconds from the POST of the parent's cancel to the death of the last process of its sub-agents. */
export async function cancelsOfFamilies(
  product: Product,
  dir: string,
  count: number,
  rounds: number,
): Promise<number[]> {
  const samples: number[] = [];
  for (let round = 0; round < rounds; round++) {
    const cwd = join(dir, `family-${count}-${round}`);
    mkdirSync(cwd);
    const talk = await Talk.open(product, cwd);
    // A mark in the environment finds them: a sub-agent may not write.
    const mark = randomUUID();
    const tree = "(setsid sleep 300 & wait) & (trap '' TERM; sleep 300) & wait";
    const command = `MARK=${mark} bash -c ${JSON.stringify(tree)}`;
    const scripts = Array.from({ length: count }, () => [say(toolCall("bash", { command })), say(submit)]);
    const { idle } = await spawn(talk, scripts);
    while (survivors(mark).length < 5 * count) await pause(5);
    const all = survivors(mark).map(Number);
    const posted = performance.now();
    void talk.cancel();
    while (!all.every(isDead)) await pause(1);
    samples.push(performance.now() - posted);
    await idle;
    talk.close();
  }
  return samples;
}

/** Resident bytes of the worker after each of some generations of finished sub-agents. */
export async function memoryOfFinished(product: Product, cwd: string): Promise<readonly number[]> {
  const sizes: number[] = [];
  for (let generation = 0; generation < 6; generation++) {
    for (let n = 0; n < GENERATION / 16; n++) {
      const talk = await Talk.open(product, cwd);
      const scripts = Array.from({ length: 16 }, () => [say(toolCall("ls", {})), say(submit)]);
      await (
        await spawn(talk, scripts)
      ).idle;
      talk.close();
    }
    sizes.push(residentBytes(product.pidOf("worker")));
  }
  return sizes;
}

function residentBytes(pid: number): number {
  const [, kilobytes] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
  return Number(kilobytes) * 1024;
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => void setTimeout(resolve, ms));
