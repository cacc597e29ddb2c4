/** Measures: the costs of a long conversation: time around the model's answers, bytes in Temporal, cached input. */
import { say, toolCall, type Answer } from "../local/scripted/script.ts";
import { hitRatio } from "../local/scripted/usage.ts";
import type { Product } from "../test/support/product.ts";
import { Talk } from "../test/support/talk.ts";

const SAMPLES = 40;
/** A plain turn stores the message, the answer and the end of the run. */
const MESSAGES_A_TURN = 3;
const SHORT = 10;
const LONG = 2_000;
/** Lengths of the conversation, in messages, at which the bytes of turns are measured. */
const LENGTHS = [SHORT, 100, 500, 1_000, LONG];
const TURNS_AT_LENGTH = 7;

const ANSWER = "It is as you say, and there is more to it than that. ".repeat(10);
const QUESTION = "And what of the other part, which we had put off until now? ".repeat(4);

export type LongFigures = {
  /** Milliseconds of each turn outside the model: from the POST to its request, and from its last byte to idle. */
  readonly short: readonly number[];
  readonly long: readonly number[];
  /** Median bytes that a turn added to the workflow's history, by the length of the conversation in messages. */
  readonly bytes: ReadonlyMap<number, number>;
};

export async function longConversations(product: Product, cwd: string): Promise<LongFigures> {
  const long = await Turns.begin(product, cwd);
  const bytes = new Map<number, number>();
  for (const length of LENGTHS) {
    while (long.messages < length) await long.turn();
    const added: number[] = [];
    while (added.length < TURNS_AT_LENGTH) added.push(...(await long.bytesOfTurn()));
    bytes.set(length, added.sort((a, b) => a - b)[Math.floor(added.length / 2)] ?? Number.NaN);
  }
  // Short and long turns alternate, so that both run under the same conditions.
  const [shortTimes, longTimes]: [number[], number[]] = [[], []];
  for (let n = 0; n < SAMPLES; n++) {
    const short = await Turns.begin(product, cwd);
    while (short.messages < SHORT) await short.turn();
    shortTimes.push(await short.turn());
    short.talk.close();
    longTimes.push(await long.turn());
  }
  long.talk.close();
  return { short: shortTimes, long: longTimes, bytes };
}

/** A conversation that goes on, turn by turn. */
class Turns {
  readonly talk: Talk;
  readonly #product: Product;
  readonly #tag: string;
  messages = 0;

  private constructor(product: Product, talk: Talk) {
    this.#product = product;
    this.talk = talk;
    this.#tag = product.model.script(talk.id, (): Answer => say(ANSWER));
  }

  static async begin(product: Product, cwd: string): Promise<Turns> {
    return new Turns(product, await Talk.open(product, cwd));
  }

  /** Milliseconds outside the model. */
  async turn(): Promise<number> {
    const { model } = this.#product;
    const asked = model.nextRequest(this.talk.id);
    const idle = this.talk.nextState("idle");
    const posted = performance.now();
    await this.talk.send(`${QUESTION} ${this.#tag}`);
    const [request, { at }] = await Promise.all([asked, idle]);
    this.messages += MESSAGES_A_TURN;
    return request.arrivedAt - posted + (at - (request.endedAt ?? Number.NaN));
  }

  /** Empty if a new run of the workflow began in between. */
  async bytesOfTurn(): Promise<number[]> {
    const before = await this.#history();
    await this.turn();
    const after = await this.#history();
    return after.runId === before.runId ? [after.bytes - before.bytes] : [];
  }

  async #history(): Promise<{ readonly runId: string; readonly bytes: number }> {
    const { runId, raw } = await this.#product.temporal.workflow.getHandle(this.talk.id).describe();
    return { runId, bytes: Number(raw.workflowExecutionInfo?.historySizeBytes ?? Number.NaN) };
  }
}

/** The share of input tokens that came from the provider's cache, among those of 30 tool rounds that could have. */
export async function cachedShare(product: Product, cwd: string): Promise<number> {
  const talk = await Talk.open(product, cwd);
  const round = (n: number): Answer => say(`Step ${n}.`, toolCall("bash", { command: `seq ${n * 20}` }));
  const rounds = Array.from({ length: 30 }, (_, n) => round(n));
  const idle = talk.nextState("idle");
  await talk.send(`go ${product.model.script(talk.id, [...rounds, say("Done.")])}`);
  await idle;
  talk.close();
  const uses = product.model.requestsOf(talk.id).map(({ cacheUse }) => cacheUse ?? { read: 0, possible: 0 });
  return hitRatio(uses);
}
