/**
 * Measures: turns of conversations that rest on a version of the workers that is not the current one any more, beside
 * turns of those that are not moved. Two workers of the same sources have a version each, and become current in turn.
 */
import { setTimeout as pause } from "node:timers/promises";
import { say } from "../local/scripted/script.ts";
import type { Product } from "../test/support/product.ts";
import { Talk } from "../test/support/talk.ts";
import { spawnWorkerOf } from "../test/support/worker-process.ts";

const DEPLOYMENT = "bench";
const BUILDS = ["1", "2"] as const;
const CONVERSATIONS = 20;
const WARM_UP = 3;
/** Milliseconds until the server's queues know which version is current. */
const SETTLED_MS = 2_000;

export type Moves = {
  /** Milliseconds from POST to idle. */
  readonly moved: readonly number[];
  readonly others: readonly number[];
};

type Turn = { readonly took: number; readonly isMoved: boolean };

/** @param changes of the current version; each moves all conversations */
export async function movedTurns(product: Product, dir: string, changes: number): Promise<Moves> {
  const { temporal } = product;
  const makeCurrent = async (buildId: string): Promise<void> => {
    await temporal.workflowService.setWorkerDeploymentCurrentVersion({
      ...{ namespace: "default", deploymentName: DEPLOYMENT, buildId },
      ignoreMissingTaskQueues: true,
    });
    await pause(SETTLED_MS);
  };
  const workers = BUILDS.map((WORKER_BUILD) =>
    spawnWorkerOf(product, {
      ...{ WORKER_ROLES: "conversations,requests", WORKER_DEPLOYMENT: DEPLOYMENT, WORKER_BUILD },
    }),
  );
  await Promise.all(workers.map(({ ready }) => ready));
  await makeCurrent(BUILDS[0]);
  const talks = await Promise.all(Array.from({ length: CONVERSATIONS }, () => Talk.open(product, dir)));
  const turns = (changes * 2 + WARM_UP) * CONVERSATIONS;
  const tag = product.model.script(
    "upgrade",
    Array.from({ length: turns }, () => say("Yes.")),
  );
  const runOf = async ({ id }: Talk): Promise<string> =>
    (await temporal.workflow.getHandle(id).describe()).runId;
  const round = async (): Promise<readonly Turn[]> => {
    const samples: Turn[] = [];
    for (const talk of talks) {
      const before = await runOf(talk);
      const idle = talk.nextRest();
      const posted = performance.now();
      await talk.send(`go ${tag}`);
      const took = (await idle).at - posted;
      samples.push({ took, isMoved: (await runOf(talk)) !== before });
    }
    return samples;
  };
  for (let n = 0; n < WARM_UP; n++) await round();
  const samples: Turn[] = [];
  for (let n = 1; n <= changes; n++) {
    samples.push(...(await round()));
    await makeCurrent(BUILDS[n % 2] ?? "");
    samples.push(...(await round()));
  }
  await makeCurrent("");
  for (const talk of talks) talk.close();
  for (const worker of workers) worker.signal("SIGTERM");
  await Promise.all(workers.map(({ exited }) => exited));
  const took = (isMoved: boolean) =>
    samples.flatMap((sample) => (sample.isMoved === isMoved ? [sample.took] : []));
  return { moved: took(true), others: took(false) };
}
