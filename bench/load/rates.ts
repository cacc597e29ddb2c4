/** Measures: tool rounds of many conversations at once, beside Temporal's floor with as many workflows. */
import { say, toolCall } from "../../local/scripted/script.ts";
import type { Product } from "../../test/support/product.ts";
import { Talk } from "../../test/support/talk.ts";
import { floorRate } from "../floor.ts";
import { difference, dividedBy, memoryOf, processesOf, processorOf, type ByProcess } from "../processes.ts";

/** Rounds of all conversations together, about. */
const ROUNDS = 600;
/** Of one: as many as let it settle, and fewer than a run may have. */
const LEAST_ROUNDS = 6;
const MOST_ROUNDS = 90;

export type Rate = {
  readonly conversations: number;
  readonly roundsPerSecond: number;
  /** Of Temporal alone: two activities and two local ones a round. */
  readonly floorPerSecond: number;
  /** Milliseconds of each round: from the end of a response to the arrival of the next request. */
  readonly rounds: readonly number[];
  /** Milliseconds of processor time a round. */
  readonly processor: ByProcess;
  /** Bytes while they run. */
  readonly memory: ByProcess;
};

export async function rate(
  product: Product,
  cwd: string,
  conversations: number,
  processes = processesOf(product),
): Promise<Rate> {
  const each = Math.min(MOST_ROUNDS, Math.max(LEAST_ROUNDS, Math.round(ROUNDS / conversations)));
  const floorPerSecond = await floorRate(product.temporalAddress, conversations, each);
  const talks = await Promise.all(
    Array.from({ length: conversations }, async () => {
      const talk = await Talk.open(product, cwd);
      const answers = Array.from({ length: each + 1 }, () => say(toolCall("bash", { command: "true" })));
      const name = `load-${talk.id}`;
      return { talk, name, tag: product.model.script(name, [...answers, say("Done.")]) };
    }),
  );
  const before = processorOf(processes);
  const ends = talks.map(({ talk }) => talk.nextRest());
  await Promise.all(talks.map(({ talk, tag }) => talk.send(`go ${tag}`)));
  await ends[0];
  const memory = memoryOf(processes);
  await Promise.all(ends);
  const processor = difference(processorOf(processes), before);
  const requests = talks.map(({ name }) => product.model.requestsOf(name));
  for (const { talk } of talks) talk.close();
  const arrivals = requests.flatMap((ofOne) => ofOne.map(({ arrivedAt }) => arrivedAt));
  const rounds = requests.flatMap((ofOne) =>
    ofOne.slice(1).map(({ arrivedAt }, n) => arrivedAt - (ofOne[n]?.endedAt ?? Number.NaN)),
  );
  const seconds = (Math.max(...arrivals) - Math.min(...arrivals)) / 1_000;
  return {
    ...{ conversations, floorPerSecond, rounds, memory },
    roundsPerSecond: rounds.length / seconds,
    processor: dividedBy(processor, rounds.length),
  };
}
