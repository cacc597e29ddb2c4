/** Owns: one run: the product, its people, the faults, and the verdict. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { sandboxOfHost } from "../sandbox/host.ts";
import { look } from "./aftermath.ts";
import { countOf, lacks, misses, type Outcomes } from "./coverage.ts";
import { keepEvidence } from "./evidence.ts";
import type { World } from "./faults.ts";
import { Injector, type Hits } from "./injector.ts";
import { leftoversOf } from "./leftovers.ts";
import type { Places } from "./model.ts";
import { Pace } from "./pace.ts";
import { Person } from "./person.ts";
import { planOf, type Plan, type Size } from "./plan.ts";
import { NEXT_RELEASE } from "./release.ts";
import { Sources, type Edit } from "./sources.ts";
import { placesIn, setStage } from "./stage.ts";

export type Verdict = {
  readonly seed: number;
  readonly complaints: readonly string[];
  readonly hits: Hits;
  readonly seconds: number;
  readonly messages: number;
  /** Conversations that ran tools under both releases. */
  readonly carriedOver: number;
  readonly outcomes: Outcomes;
};

export type RunOptions = {
  readonly seed: number;
  readonly size: Size;
  readonly say: (line: string) => void;
  /** What is changed in the product: a defect, for the tests of this test. */
  readonly edits?: readonly Edit[];
};

/** @throws what `interrupted` was aborted with, when everything that was started has ended. */
export async function run(options: RunOptions, interrupted: AbortSignal): Promise<Verdict> {
  const folder = mkdtempSync(join(tmpdir(), "bedrock-chaos-"));
  const ends: (() => Promise<unknown>)[] = [];
  const interruption = new Promise<never>((_resolve, reject) => {
    interrupted.addEventListener("abort", () => reject(interrupted.reason as Error), { once: true });
  });
  try {
    const verdict = await Promise.race([perform(options, folder, ends), interruption]).finally(async () => {
      for (const end of ends.reverse()) await end();
    });
    return { ...verdict, complaints: [...verdict.complaints, ...(await leftoversOf(folder))] };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** @param ends gets what ends it, part by part */
async function perform(
  { seed, size, say, edits = [] }: RunOptions,
  folder: string,
  ends: (() => Promise<unknown>)[],
): Promise<Verdict> {
  const began = performance.now();
  const { available, reason } = await sandboxOfHost();
  if (!available) say(`nobody is Restricted here, and nobody asks for more: ${reason ?? ""}`);
  const plan = planOf(seed, size, available);
  const places = await placesIn(folder);
  const sources = new Sources(join(folder, "sources"));
  sources.change(edits);
  const stage = await setStage(folder, sources, places, ends);
  const deploy = async (): Promise<void> => {
    sources.change(NEXT_RELEASE);
    await stage.world.workers.roll();
  };
  const { people, hits } = await storm(plan, stage.world, { places, deploy, say });
  say("the storm is over; looking at what is left");
  const { complaints: left, carriedOver } = await look(stage.world, people, places);
  const outcomes = countOf(people.flatMap((person) => person.outcomes));
  const complaints = [
    ...[...left, ...stage.remarks, ...misses(hits, size), ...lacks(outcomes, size, available)],
    ...(carriedOver < size.needed ? [`${carriedOver} conversations ran under both releases`] : []),
  ];
  if (complaints.length > 0) {
    const logs = [join(folder, "data", "logs"), join(folder, "second-worker")];
    say(`kept in ${await keepEvidence(seed, complaints, stage.world.product, logs)}`);
  }
  const messages = people.flatMap(({ chapters }) => chapters.flatMap(({ accepted }) => accepted)).length;
  const seconds = Math.round((performance.now() - began) / 1_000);
  return { seed, complaints, hits, messages, carriedOver, outcomes, seconds };
}

type Doing = {
  readonly places: Places;
  readonly deploy: () => Promise<void>;
  readonly say: (line: string) => void;
};

async function storm(plan: Plan, world: World, { places, deploy, say }: Doing) {
  const pace = new Pace(plan.conversations.reduce((sum, { turns }) => sum + turns.length, 0));
  const people = plan.conversations.map((each) => new Person(world.product, each, places, pace));
  const injector = new Injector(world, pace);
  const lives = people.map((person) =>
    person.live().catch((error: unknown) => void person.complaints.push(String(error))),
  );
  try {
    await injector.run(plan, deploy, say);
  } finally {
    pace.advance(1);
    await injector.close();
  }
  await Promise.all(lives);
  return { people, hits: injector.hits };
}
