/** The least that a durable round can be made of, for comparison: two activities and two local activities. */
import { proxyActivities, proxyLocalActivities } from "@temporalio/workflow";

type Nothing = { nothing(): Promise<void> };

const remote = proxyActivities<Nothing>({ startToCloseTimeout: "10 seconds" });
const local = proxyLocalActivities<Nothing>({ startToCloseTimeout: "10 seconds" });

/** Milliseconds of each round, by the workflow's clock. */
export async function floor(rounds: number): Promise<number[]> {
  const samples: number[] = [];
  for (let n = 0; n < rounds; n++) {
    const started = Date.now();
    await remote.nothing();
    await local.nothing();
    await remote.nothing();
    await local.nothing();
    samples.push(Date.now() - started);
  }
  return samples;
}
