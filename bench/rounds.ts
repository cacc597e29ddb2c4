/** Measures: from the end of a response to the arrival of the next request, with `bash true` between; turns. */
import { say, toolCall } from "../local/scripted/script.ts";
import type { Product } from "../test/support/product.ts";
import { Talk } from "../test/support/talk.ts";

const ROUNDS = 50;
const WARM_UP = 5;

/** Milliseconds of each round but the first few, and the conversation that had them. */
export async function toolRounds(
  product: Product,
  cwd: string,
): Promise<{ readonly id: string; readonly samples: readonly number[] }> {
  const conversation = await Talk.open(product, cwd);
  const name = `rounds-${conversation.id}`;
  const rounds = Array.from({ length: ROUNDS + WARM_UP }, () => say(toolCall("bash", { command: "true" })));
  const idle = conversation.nextState("idle");
  await conversation.send(`go ${product.model.script(name, [...rounds, say("Done.")])}`);
  await idle;
  const requests = product.model.requestsOf(name);
  const samples = requests
    .slice(1)
    .map((request, n) => request.arrivedAt - (requests[n]?.endedAt ?? Number.NaN))
    .slice(WARM_UP);
  return { id: conversation.id, samples };
}

/** Milliseconds from the POST of a message to `state.changed` idle, without tools. */
export async function plainTurns(product: Product, cwd: string, turns: number): Promise<number[]> {
  const conversation = await Talk.open(product, cwd);
  const answers = Array.from({ length: turns + WARM_UP }, () => say("Yes."));
  const tag = product.model.script(`turns-${conversation.id}`, answers);
  const samples: number[] = [];
  for (let n = 0; n < turns + WARM_UP; n++) {
    const idle = conversation.nextState("idle");
    const posted = performance.now();
    await conversation.send(`go ${tag}`);
    samples.push((await idle).at - posted);
  }
  return samples.slice(WARM_UP);
}
