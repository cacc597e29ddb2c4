/** Measures: folding long conversations into request cycles, and whether every steer reaches the next request. */
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { say, toolCall } from "../local/scripted/script.ts";
import { foldCycles, viewOf } from "../machine/cycles.ts";
import type { Message } from "../machine/message.ts";
import { agent, list, result, stop, text, use, user } from "../test/machine/cycles-messages.ts";
import type { Product } from "../test/support/product.ts";
import { Talk } from "../test/support/talk.ts";
import { until } from "../test/support/waiting.ts";
import { quantile } from "./stats.ts";

export type FoldTimes = { readonly fold: number; readonly withSteps: number };

/** Milliseconds to fold `count` messages, alone and with every cycle shown as steps, too; medians of five runs. */
export function foldTimes(count: number): FoldTimes {
  const messages = conversationOf(count);
  const [fold, withSteps]: [number[], number[]] = [[], []];
  for (let n = 0; n < 5; n++) {
    const started = performance.now();
    const { cycles } = foldCycles(messages);
    fold.push(performance.now() - started);
    for (const cycle of cycles) viewOf(cycle, "steps");
    withSteps.push(performance.now() - started);
  }
  return { fold: quantile(fold, 0.5), withSteps: quantile(withSteps, 0.5) };
}

/** Cycles of ten messages: three tool rounds each, with a steer. */
function conversationOf(count: number): Message[] {
  return list(
    ...Array.from({ length: count / 10 }, (_, n) => [
      user(`m${n}`),
      agent(`a${n}`, text("I look."), use(`t${n}.1`, "read"), use(`t${n}.2`)),
      result(`t${n}.1`),
      result(`t${n}.2`),
      user(`s${n}`, "steer"),
      agent(`b${n}`, use(`t${n}.3`, "edit")),
      result(`t${n}.3`),
      agent(`c${n}`, use(`t${n}.4`)),
      result(`t${n}.4`),
      stop(`e${n}`),
    ]).flat(),
  );
}

export type Steers = { readonly sent: number; readonly arrived: number };

/** `conversations` run tools at the same time; each gets a steer while its tool runs, round after round. */
export async function steers(product: Product, conversations: number, rounds: number): Promise<Steers> {
  const counts = await Promise.all(
    Array.from({ length: conversations }, () => steerThrough(product, rounds)),
  );
  return { sent: conversations * rounds, arrived: counts.reduce((sum, count) => sum + count, 0) };
}

/** The number of steers that were in the request after the tool during which they were sent. */
async function steerThrough(product: Product, rounds: number): Promise<number> {
  const talk = await Talk.open(product);
  const file = (round: number, what: string): string => join(product.cwd, `${talk.id}.${round}.${what}`);
  const wait = (round: number): string =>
    `touch ${file(round, "up")}; until [ -e ${file(round, "go")} ]; do sleep 0.05; done`;
  const tag = product.model.script(talk.id, (_request, n) =>
    n > rounds ? say("Done.") : say(toolCall("bash", { command: wait(n) })),
  );
  const idle = talk.nextState("idle");
  await talk.send(`go ${tag}`);
  for (let round = 1; round <= rounds; round++) {
    await until(() => existsSync(file(round, "up")));
    const { status } = await talk.send(`steer ${talk.id}.${round}.`, "steer");
    if (status !== 202) throw new Error(`a steer was answered with ${status}`);
    writeFileSync(file(round, "go"), "");
  }
  await idle;
  talk.close();
  const requests = product.model.requestsOf(talk.id).map(({ json }) => JSON.stringify(json));
  return requests.filter((request, n) => n > 0 && request.includes(`steer ${talk.id}.${n}.`)).length;
}
