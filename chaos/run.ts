/** Owns: one run: what is set up, its virtual users, the faults, and the verdict. */
import { join } from "node:path";
import { hostSandbox } from "../test/support/host-sandbox.ts";
import { countOf, lacks, misses, type Outcomes } from "./coverage.ts";
import { keepEvidence } from "./evidence.ts";
import { drawFault, FAULTS } from "./faults.ts";
import { checkEverything } from "./final-check.ts";
import { Injector, type Faults } from "./injector.ts";
import type { Places } from "./model.ts";
import { Pace } from "./pace.ts";
import { planOf, without, type Plan, type Size } from "./plan.ts";
import { NEXT_RELEASE } from "./release.ts";
import type { Scene } from "./scene.ts";
import { onSite, type Ends } from "./site.ts";
import { SmallDisk } from "./small-disk.ts";
import { Sources, type Edit } from "./sources.ts";
import { dataIn, placesIn, setStage } from "./stage.ts";
import { VirtualUser } from "./virtual-user.ts";

export type Verdict = {
  readonly seed: number;
  readonly complaints: readonly string[];
  /** Hits of the planned faults. */
  readonly hits: Readonly<Record<string, number>>;
  readonly seconds: number;
  readonly messages: number;
  /** Conversations that ran tools under both releases. */
  readonly carriedOver: number;
  readonly outcomes: Outcomes;
  /** Turns that a restart has ended, and that their virtual users asked for again. */
  readonly interruptions: number;
};

export type RunOptions = {
  readonly seed: number;
  readonly size: Size;
  readonly say: (line: string) => void;
  /** Changes to the product: a defect, for the tests of this test. */
  readonly edits?: readonly Edit[];
};

/** @throws the reason of `interrupted`, when everything that was started has ended. */
export async function run(options: RunOptions, interrupted: AbortSignal): Promise<Verdict> {
  const { result, leftovers } = await onSite((folder, ends) => perform(options, folder, ends), interrupted);
  return { ...result, complaints: [...result.complaints, ...leftovers] };
}

/** @param ends gets a function for each started part that ends it */
async function perform(
  { seed, size: wanted, say, edits = [] }: RunOptions,
  folder: string,
  ends: Ends,
): Promise<Verdict> {
  const disk = wanted.faults.includes("fill disk") ? await SmallDisk.mount(dataIn(folder)) : null;
  if (disk instanceof SmallDisk) ends.push(() => disk.unmount());
  if (typeof disk === "string") say(`no disk is full here, for none can be made: ${disk}`);
  const size = disk instanceof SmallDisk ? wanted : without(wanted, "fill disk");
  const places = await placesIn(folder);
  const sources = new Sources(join(folder, "sources"));
  sources.change(edits);
  const stage = await setStage(folder, sources, places, {
    ends,
    disk: disk instanceof SmallDisk ? disk : null,
  });
  const { world, remarks } = stage;
  return liveThrough({
    ...{ seed, size, places, say, remarks, scene: world },
    faults: { names: FAULTS, draw: (name, chance) => drawFault(name, world, chance) },
    deploy: async () => {
      sources.change(NEXT_RELEASE);
      await world.workers.roll();
    },
    gaveUp: world.product.gaveUp.then((how) => `npm start has ended by itself: ${how}`),
    logs: [join(dataIn(folder), "logs"), join(folder, "second-worker")],
  });
}

export type Course<Name extends string> = {
  readonly seed: number;
  readonly size: Size<Name>;
  readonly scene: Scene;
  readonly faults: Faults<Name>;
  readonly places: Places;
  readonly say: (line: string) => void;
  /** The model's complaints about requests. */
  readonly remarks: readonly string[];
  /** Happens in the middle of the run. */
  readonly deploy: () => Promise<void>;
  /** Resolves with a reason when the run cannot go on. */
  readonly gaveUp: Promise<string>;
  /** Kept when the run fails. */
  readonly logs: readonly string[];
};

/** The virtual users live through the plan of this seed while the faults strike. Then everything is checked. */
export async function liveThrough<Name extends string>(course: Course<Name>): Promise<Verdict> {
  const { seed, size, scene, places, say } = course;
  const began = performance.now();
  const { available, reason } = await hostSandbox();
  if (!available) say(`nobody is Restricted here, and nobody asks for more: ${reason ?? ""}`);
  const { users, hits } = await Promise.race([
    runWorkload(planOf(seed, size, available), course),
    course.gaveUp.then((how) => Promise.reject(new Error(how))),
  ]);
  say("no more faults; checking what is left");
  const { complaints: left, carriedOver, resumed, rejoined } = await checkEverything(scene, users, places);
  const outcomes = countOf(users.flatMap((user) => user.outcomes));
  const cutsStreams = size.faults.some((name) => name === "kill api");
  const complaints = [
    ...[
      ...left,
      ...course.remarks,
      ...scene.restarts.complaints,
      ...misses(hits, size),
      ...lacks(outcomes, size, available),
    ],
    ...(resumed === 0 && cutsStreams ? ["no stream was ever cut off"] : []),
    ...(rejoined === 0 && size.rare.length > 0 ? ["no client came back in the middle of an answer"] : []),
    ...(carriedOver < size.carriedOver ? [`${carriedOver} conversations ran under both releases`] : []),
  ];
  if (complaints.length > 0) say(`kept in ${await keepEvidence(seed, complaints, scene, course.logs)}`);
  const messages = users.flatMap(({ chapters }) => chapters.flatMap(({ accepted }) => accepted)).length;
  const seconds = Math.round((performance.now() - began) / 1_000);
  const interruptions = users.reduce((sum, user) => sum + user.interruptions, 0);
  const drawn = [...size.faults, ...size.rare];
  const meant = Object.fromEntries(drawn.map((name) => [name, hits[name]]));
  return { seed, complaints, hits: meant, messages, carriedOver, outcomes, interruptions, seconds };
}

async function runWorkload<Name extends string>(
  plan: Plan<Name>,
  { scene, faults, places, deploy, say }: Course<Name>,
) {
  const pace = new Pace(plan.conversations.reduce((sum, { turns }) => sum + turns.length, 0));
  const users = plan.conversations.map((each) => new VirtualUser(scene, each, places, pace));
  await Promise.all(users.map((user) => user.arrive()));
  const injector = new Injector(scene, faults, pace);
  const lives = users.map((user) =>
    user.live().catch((error: unknown) => void user.complaints.push(String(error))),
  );
  try {
    await injector.run(plan, deploy, say);
  } finally {
    pace.advance(1);
    await injector.close();
  }
  await Promise.all(lives);
  return { users, hits: injector.hits };
}
