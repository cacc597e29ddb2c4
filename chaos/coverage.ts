/** Owns: whether a run proves anything: the faults hit, and the turns took place. */
import type { Hits } from "./injector.ts";
import { STOP_QUEUES, type Size } from "./plan.ts";
import { OUTCOMES, stoppedWith } from "./virtual-user.ts";

/** The number of turns by their outcome. */
export type Outcomes = Readonly<Record<string, number>>;

/** Share of the turns. A turn fails if the provider cannot be reached three times in a row. */
const FAILED_AT_MOST = 0.2;

/** Every fault must have found a tool, a request and a commit under way, all at once. */
export function misses<Name extends string>(
  hits: Hits<Name>,
  { faults, needed, rare, rareHits }: Size<Name>,
): string[] {
  const wanted = [
    ...faults.map((name) => ({ name, times: needed })),
    ...rare.map((name) => ({ name, times: rareHits })),
  ];
  return wanted
    .filter(({ name, times }) => hits[name] < times)
    .map(
      ({ name, times }) => `"${name}" found a tool, a request and a commit ${hits[name]} times of ${times}`,
    );
}

export function countOf(outcomes: readonly string[]): Outcomes {
  const counts: Record<string, number> = {};
  for (const outcome of outcomes) counts[outcome] = (counts[outcome] ?? 0) + 1;
  return counts;
}

/** Every kind of turn must have taken place, and most turns must have had their intended outcome. */
export function lacks(
  outcomes: Outcomes,
  { turns, stopQueues }: Pick<Size, "turns" | "stopQueues">,
  canRestrict: boolean,
): string[] {
  const { failed = 0 } = outcomes;
  const wanted = OUTCOMES.filter(
    (outcome) => canRestrict || (outcome !== "approved" && outcome !== "denied"),
  );
  const stops = STOP_QUEUES.filter((queue) => outcomes[stoppedWith(queue)] !== undefined);
  return [
    ...(stops.length < stopQueues
      ? [`Stops met waiting messages with ${stops.join(", ") || "nothing"} alone`]
      : []),
    ...wanted
      .filter((outcome) => outcomes[outcome] === undefined)
      .map((outcome) => `no turn was "${outcome}"`),
    ...(failed > turns * FAILED_AT_MOST ? [`${failed} of ${turns} turns failed`] : []),
  ];
}
