/**
 * Measures: the time from `kill -9` of a process, in a request or in a tool, until the provider gets the conversation's
 * next request. The process manager starts the killed process again; with `another` a second worker is already running.
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { hold } from "../local/scripted/cues.ts";
import { say, toolCall } from "../local/scripted/script.ts";
import type { ProcessName, Product } from "../test/support/product.ts";
import { Talk } from "../test/support/talk.ts";
import { spawnWorkerOf } from "../test/support/worker-process.ts";

export type Crash = {
  readonly of: ProcessName;
  readonly during: "request" | "tool";
  readonly another?: boolean;
};

/** Milliseconds. */
export async function recovery(product: Product, dir: string, crash: Crash): Promise<number> {
  const talk = await Talk.open(product, dir);
  const name = `crash-${talk.id}`;
  const held = hold();
  const command = `until [ -e ${name} ]; do sleep 0.02; done`;
  const call = say("Now. ", toolCall("bash", { command }));
  const first = crash.during === "request" ? say("half ", held, toolCall("bash", { command: "true" })) : call;
  const tag = product.model.script(name, [first, say("Whole.")]);
  const executing = talk.nextState("tool_executing");
  await talk.send(`go ${tag}`);
  await (crash.during === "request" ? held.reached : executing);
  const stopAnother = crash.another === true ? await startAnother(product) : null;
  const pid = product.pidOf(crash.of);
  const killed = performance.now();
  process.kill(pid, "SIGKILL");
  // This does not reach a request or command that was killed with its worker.
  held.release();
  writeFileSync(join(dir, name), "");
  const next = await product.model.nextRequest(name, 2);
  await talk.untilState("idle");
  talk.close();
  await stopAnother?.();
  return next.arrivedAt - killed;
}

async function startAnother(product: Product): Promise<() => Promise<void>> {
  const worker = spawnWorkerOf(product);
  await worker.ready;
  return () => {
    worker.signal("SIGTERM");
    return worker.exited;
  };
}
