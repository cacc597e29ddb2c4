/** Measures: the time of a delta from the provider to the client's socket; messages while many conversations stream. */
import { hold } from "../local/scripted/cues.ts";
import { answer, say, text } from "../local/scripted/script.ts";
import type { Product } from "../test/support/product.ts";
import { Talk } from "../test/support/talk.ts";

const LONG = "x".repeat(4_000);

/** Milliseconds from the release of the first delta of a response to its event. */
export async function firstDeltas(product: Product, cwd: string, count: number): Promise<number[]> {
  const samples: number[] = [];
  for (let n = 0; n < count; n++) {
    const conversation = await Talk.open(product, cwd);
    const held = hold();
    const tag = product.model.script(`delta-${conversation.id}`, [say(held, "first", " second")]);
    const seen = conversation.next(({ name }) => name === "text.delta");
    await conversation.send(`go ${tag}`);
    await held.reached;
    const released = performance.now();
    held.release();
    samples.push((await seen).at - released);
    conversation.close();
  }
  return samples;
}

/** Milliseconds from the POST of a message to its 202, which follows its commit, while others stream. */
export async function commitsWhileStreaming(
  product: Product,
  cwd: string,
  streams: number,
  count: number,
): Promise<number[]> {
  const pace = { characters: 4, delayMs: 20 };
  const streaming = await Promise.all(
    Array.from({ length: streams }, async () => {
      const conversation = await Talk.open(product, cwd);
      const long = answer([text(LONG, LONG)], { pace });
      await conversation.send(`go ${product.model.script(`stream-${conversation.id}`, [long])}`);
      return conversation;
    }),
  );
  const samples: number[] = [];
  const conversation = await Talk.open(product, cwd);
  const answers = Array.from({ length: count }, () => say("Yes."));
  const tag = product.model.script(`commit-${conversation.id}`, answers);
  for (let n = 0; n < count; n++) {
    const idle = conversation.nextState("idle");
    const posted = performance.now();
    await conversation.send(`go ${tag}`);
    samples.push(performance.now() - posted);
    await idle;
  }
  for (const busy of streaming) {
    await busy.cancel();
    busy.close();
  }
  return samples;
}
