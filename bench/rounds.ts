/**
 * Measures: tool rounds, from the end of a response to the arrival of the next request, with `bash true` between;
 * turns.
 */
import { say, toolCall } from "../local/scripted/script.ts";
import type { Product } from "../test/support/product.ts";
import { Talk } from "../test/support/talk.ts";

/** Rounds of one run; below the number of requests at which a run is stopped. */
const ROUNDS_A_RUN = 100;
const WARM_UP = 5;

/**
 * Milliseconds of each round except the first few of each run, and the conversation's id. A conversation continues as
 * new about once in 20 rounds; many rounds show what that costs.
 */
export async function toolRounds(
  product: Product,
  cwd: string,
  runs = 3,
): Promise<{ readonly id: string; readonly samples: readonly number[] }> {
  const conversation = await Talk.open(product, cwd);
  const name = `rounds-${conversation.id}`;
  const rounds = Array.from({ length: ROUNDS_A_RUN + WARM_UP }, () =>
    say(toolCall("bash", { command: "true" })),
  );
  // One script for all runs: the first tag in a request's messages decides which script answers it.
  const answers = Array.from({ length: runs }, () => [...rounds, say("Done.")]).flat();
  const tag = product.model.script(name, answers);
  for (let run = 0; run < runs; run++) {
    const idle = conversation.nextState("idle");
    await conversation.send(`go ${tag}`);
    await idle;
  }
  const requests = product.model.requestsOf(name);
  const samples = Array.from({ length: runs }, (_, run) => {
    const ofRun = requests.slice(run * (rounds.length + 1), (run + 1) * (rounds.length + 1));
    const took = ofRun.slice(1).map(({ arrivedAt }, n) => arrivedAt - (ofRun[n]?.endedAt ?? Number.NaN));
    return took.slice(WARM_UP);
  }).flat();
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
