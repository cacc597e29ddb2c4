/** Measures: what conversations cost that nobody talks to, and how long one takes to wake. */
import { say } from "../../local/scripted/script.ts";
import type { Product } from "../../test/support/product.ts";
import { openConversation, Talk } from "../../test/support/talk.ts";
import { memoryOf, processesOf, type ByProcess } from "../processes.ts";

/** Conversations that are made at once. */
const AT_ONCE = 16;
const WAKES = 60;

type Idle = {
  /** How many there are. */
  readonly conversations: number;
  /** Bytes. */
  readonly memory: ByProcess;
};

export type IdleFigures = {
  readonly idle: readonly Idle[];
  /** Milliseconds of a message's POST to its request, for conversations that no worker has in memory. */
  readonly wakes: readonly number[];
  /** The same for conversations that one has. */
  readonly cached: readonly number[];
};

/** @param counts of conversations at which memory is looked at, ascending */
export async function idle(product: Product, cwd: string, counts: readonly number[]): Promise<IdleFigures> {
  const ids: string[] = [];
  const looks: Idle[] = [{ conversations: 0, memory: memoryOf(processesOf(product)) }];
  for (const count of counts) {
    const make = async (): Promise<void> => {
      while (ids.length < count) {
        // Its place is taken before the next one looks.
        const place = ids.push("") - 1;
        ids[place] = await openConversation(product, cwd, "unrestricted");
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, make));
    looks.push({ conversations: count, memory: memoryOf(processesOf(product)) });
    console.log(`    ${count} idle conversations`);
  }
  const every = Math.max(1, Math.floor(ids.length / 2 / WAKES));
  const old = Array.from({ length: WAKES }, (_, n) => ids[n * every] ?? "");
  const tags = new Map(
    old.map((id) => [id, product.model.script(scriptOf(id), [say("Yes."), say("Again.")])]),
  );
  return {
    idle: looks,
    wakes: await wake(product, old, (id) => `go ${tags.get(id) ?? ""}`),
    cached: await wake(product, old, () => "And now?"),
  };
}

const scriptOf = (id: string): string => `wake-${id}`;

async function wake(
  product: Product,
  ids: readonly string[],
  textFor: (id: string) => string,
): Promise<readonly number[]> {
  const samples: number[] = [];
  for (const id of ids) {
    const talk = await Talk.follow(product, id);
    const rests = talk.nextRest();
    const posted = performance.now();
    await talk.send(textFor(id));
    await rests;
    samples.push((product.model.requestsOf(scriptOf(id)).at(-1)?.arrivedAt ?? Number.NaN) - posted);
    talk.close();
  }
  return samples;
}
