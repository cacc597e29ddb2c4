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

/** A round or turn: milliseconds since the epoch. */
export type Span = { readonly from: number; readonly to: number };

/**
 * Each round except the first few of each run, and the conversation's id. A conversation continues as new about once in
 * 20 rounds; many rounds show what that costs.
 */
export async function toolRounds(
  product: Product,
  cwd: string,
  runs: number,
): Promise<{ readonly id: string; readonly rounds: readonly Span[] }> {
  const conversation = await Talk.open(product, cwd);
  const name = `rounds-${conversation.id}`;
  const rounds = Array.from({ length: ROUNDS_A_RUN + WARM_UP }, () =>
    say(toolCall("bash", { command: "true" })),
  );
  // One script for all runs: the first tag in a request's messages decides which script answers it.
  const answers = Array.from({ length: runs }, () => [...rounds, say("Done.")]).flat();
  const tag = product.model.script(name, answers);
  for (let run = 0; run < runs; run++) {
    const idle = conversation.nextRest();
    await conversation.send(`go ${tag}`);
    await idle;
  }
  const requests = product.model.requestsOf(name);
  const spans = Array.from({ length: runs }, (_, run) => {
    const ofRun = requests.slice(run * (rounds.length + 1), (run + 1) * (rounds.length + 1));
    const all = ofRun.slice(1).map(({ arrivedAt }, n) => spanOf(ofRun[n]?.endedAt ?? Number.NaN, arrivedAt));
    return all.slice(WARM_UP);
  }).flat();
  conversation.close();
  return { id: conversation.id, rounds: spans };
}

/** From the POST of a message to `state.changed` idle, without tools; and the conversation's id. */
export async function plainTurns(
  product: Product,
  cwd: string,
  turns: number,
  afterEach: (turns: number) => Promise<void> = () => Promise.resolve(),
): Promise<{ readonly id: string; readonly turns: readonly Span[] }> {
  const conversation = await Talk.open(product, cwd);
  const answers = Array.from({ length: turns + WARM_UP }, () => say("Yes."));
  const tag = product.model.script(`turns-${conversation.id}`, answers);
  const spans: Span[] = [];
  for (let n = 0; n < turns + WARM_UP; n++) {
    const idle = conversation.nextRest();
    const posted = performance.now();
    await conversation.send(`go ${tag}`);
    spans.push(spanOf(posted, (await idle).at));
    await afterEach(n + 1);
  }
  conversation.close();
  return { id: conversation.id, turns: spans.slice(WARM_UP) };
}

/** @param from as `performance.now()` has it, as `to` */
const spanOf = (from: number, to: number): Span => ({
  from: performance.timeOrigin + from,
  to: performance.timeOrigin + to,
});
