/**
 * Measures: what calls take on a tool host: the processes of a worker that only runs tools, with all that they start. The
 * rest of the product runs beside it and is not counted.
 */
import { mkdtempSync } from "node:fs";
import { join } from "node:path";
import { say, toolCall } from "../../local/scripted/script.ts";
import { familyOf } from "../../test/support/processes.ts";
import type { Product } from "../../test/support/product.ts";
import { Talk } from "../../test/support/talk.ts";
import { spawnWorkerOf } from "../../test/support/worker-process.ts";
import { processorMs, proportionalBytes } from "../processes.ts";

const HOST = "bench-host";
const WARM_UP = 3;

export type HostLoad = {
  /** Bytes when nothing runs. */
  readonly idle: number;
  /** Of each call that runs, the `bash` and `sleep` of its command included. */
  readonly perRunning: number;
  /** Milliseconds of processor time of each call, `bash true` included. */
  readonly processor: number;
  readonly callsPerSecond: number;
};

/**
 * @param running calls that run at once while the memory is looked at
 * @param calls of each of so many conversations, one after the other, while the processor's time is looked at
 */
export async function loadOfHost(
  product: Product,
  cwd: string,
  { running, calls }: { readonly running: number; readonly calls: number },
): Promise<HostLoad> {
  const worker = spawnWorkerOf(product, {
    ...{ WORKER_ROLES: "tools", TOOL_HOST: HOST, DATA_DIR: mkdtempSync(join(cwd, "host-")) },
  });
  await worker.ready;
  const sum = (measure: (pid: number) => number): number =>
    familyOf(worker.pid).reduce((all, pid) => all + measure(pid), 0);
  const begin = async (commands: readonly string[]): Promise<Talk> => {
    const talk = await Talk.open(product, cwd, "restricted", HOST);
    const answers = commands.map((command) => say(toolCall("bash", { command })));
    await talk.send(`go ${product.model.script(`host-${talk.id}`, [...answers, say("Done.")])}`);
    return talk;
  };
  const atOnce = (commands: readonly string[]): Promise<readonly Talk[]> =>
    Promise.all(Array.from({ length: running }, () => begin(commands)));
  const rest = async (talks: readonly Talk[]): Promise<void> => {
    await Promise.all(talks.map((talk) => talk.untilState("idle")));
    for (const talk of talks) talk.close();
  };

  await rest(await atOnce(Array.from({ length: WARM_UP }, () => "true")));
  const idle = sum(proportionalBytes);
  const sleeping = await atOnce(["sleep 300"]);
  await Promise.all(sleeping.map((talk) => talk.untilState("tool_executing")));
  const perRunning = (sum(proportionalBytes) - idle) / running;
  await Promise.all(sleeping.map((talk) => talk.cancel()));
  await rest(sleeping);

  const before = sum(processorMs);
  const began = performance.now();
  await rest(await atOnce(Array.from({ length: calls }, () => "true")));
  const seconds = (performance.now() - began) / 1_000;
  const processor = (sum(processorMs) - before) / (running * calls);
  worker.signal("SIGTERM");
  await worker.exited;
  return { idle, perRunning, processor, callsPerSecond: (running * calls) / seconds };
}
