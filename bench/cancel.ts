/** Measures: the time from the POST of a cancel to the death of the last process, with other tools running. */
import { mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { say, toolCall } from "../local/scripted/script.ts";
import { isDead } from "../test/support/processes.ts";
import type { Product } from "../test/support/product.ts";
import { Talk } from "../test/support/talk.ts";

/** Each tree creates a file for each of its processes in its directory, named by the process id. */
export const TREES = {
  "sleep 300": "touch $$; exec sleep 300",
  "setsid, nohup, traps":
    "touch $$; (setsid sleep 300 & touch $!; wait) & (nohup sleep 300 > /dev/null & touch $!; wait) & " +
    "(trap '' TERM INT HUP; touch $BASHPID; while :; do sleep 1; done) & wait",
  "a re-parented daemon": "touch $$; (setsid bash -c 'touch $$; exec sleep 300' &); sleep 300",
} as const;

const DEATH_MS = 10_000;

export type Cancels = { readonly samples: readonly number[]; readonly survivors: number };

/** @param at conversations that run the tree; they are cancelled in turn, `count` cancels in all. */
export async function cancels(
  product: Product,
  dir: string,
  tree: keyof typeof TREES,
  at: number,
  count: number,
): Promise<Cancels> {
  const running = await inBatches(
    Array.from({ length: at }, (_, n) => async () => {
      const cwd = join(dir, `${tree.replaceAll(/\W+/g, "-")}-${at}-${n}`);
      mkdirSync(cwd, { recursive: true });
      const conversation = await Talk.open(product, cwd);
      const command = `rm -f [0-9]*; ${TREES[tree]}`;
      const calls = Array.from({ length: count + 1 }, () => say(toolCall("bash", { command })));
      const tag = product.model.script(`tree-${conversation.id}`, calls);
      await startTree(conversation, cwd, tree, tag);
      return { conversation, cwd, tag };
    }),
  );
  const samples: number[] = [];
  let survivors = 0;
  for (let n = 0; n < count; n++) {
    const one = running[n % at];
    if (one === undefined) break;
    const pids = pidsIn(one.cwd);
    const idle = one.conversation.nextState("idle");
    const posted = performance.now();
    void one.conversation.cancel();
    const died = await allDead(pids);
    if (died === null) survivors++;
    else samples.push(died - posted);
    await idle;
    if (n + at < count) await startTree(one.conversation, one.cwd, tree, one.tag);
  }
  await Promise.all(running.map(({ conversation }) => conversation.cancel()));
  return { samples, survivors };
}

async function startTree(
  conversation: Talk,
  cwd: string,
  tree: keyof typeof TREES,
  tag: string,
): Promise<void> {
  const executing = conversation.nextState("tool_executing");
  await conversation.send(`go ${tag}`);
  await executing;
  const wanted = TREES[tree].split("touch ").length - 1;
  for (;;) {
    const pids = pidsIn(cwd);
    if (pids.length >= wanted && !pids.some(isDead)) return;
    await pause(2);
  }
}

const pidsIn = (cwd: string): number[] =>
  readdirSync(cwd)
    .map(Number)
    .filter((pid) => pid > 0);

/** Opens a few at a time: the speed of opening conversations is not measured. */
async function inBatches<T>(starts: readonly (() => Promise<T>)[]): Promise<T[]> {
  const started: T[] = [];
  for (let n = 0; n < starts.length; n += 4) {
    started.push(...(await Promise.all(starts.slice(n, n + 4).map((start) => start()))));
  }
  return started;
}

/** The time of the last death, to a millisecond; null if a process survives. */
async function allDead(pids: readonly number[]): Promise<number | null> {
  const started = performance.now();
  while (performance.now() - started < DEATH_MS) {
    if (pids.every(isDead)) return performance.now();
    await pause(1);
  }
  return null;
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => void setTimeout(resolve, ms));
