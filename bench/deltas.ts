/** Measures: from a delta's leaving the provider to the client's socket; messages while many conversations stream. */
import { hold } from "../local/scripted/cues.ts";
import { answer, say, text } from "../local/scripted/script.ts";
import { deferred } from "../test/support/waiting.ts";
import { Conversation, type Product } from "./product.ts";

const LONG = "x".repeat(4_000);

/** Milliseconds from the release of the first delta of a response to its event. */
export async function firstDeltas(product: Product, cwd: string, count: number): Promise<number[]> {
  const samples: number[] = [];
  for (let n = 0; n < count; n++) {
    const conversation = await Conversation.open(product, cwd);
    const held = hold();
    const tag = product.model.script(`delta-${conversation.id}`, [say(held, "first", " second")]);
    const { promise: seen, resolve } = deferred<number>();
    const stop = await conversation.follow((name, _data, at) => {
      if (name === "text.delta") resolve(at);
    });
    await conversation.send(`go ${tag}`);
    await held.reached;
    const released = performance.now();
    held.release();
    samples.push((await seen) - released);
    stop();
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
      const conversation = await Conversation.open(product, cwd);
      const long = answer([text(LONG, LONG)], { pace });
      const stop = await conversation.follow(() => undefined);
      await conversation.send(`go ${product.model.script(`stream-${conversation.id}`, [long])}`);
      return { conversation, stop };
    }),
  );
  const samples: number[] = [];
  const conversation = await Conversation.open(product, cwd);
  const answers = Array.from({ length: count }, () => say("Yes."));
  const tag = product.model.script(`commit-${conversation.id}`, answers);
  for (let n = 0; n < count; n++) {
    const idle = await conversation.nextState("idle");
    const posted = performance.now();
    await conversation.send(`go ${tag}`);
    samples.push(performance.now() - posted);
    await idle.at;
  }
  for (const { conversation, stop } of streaming) {
    stop();
    await conversation.cancel();
  }
  return samples;
}
