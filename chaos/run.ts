/** Owns: one run: the product, its people, the faults, and the verdict. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openDatabase } from "../db/connect.ts";
import { sandboxOfHost } from "../sandbox/host.ts";
import { picture } from "../test/support/pictures.ts";
import { startProduct } from "../test/support/product.ts";
import { startProxy, type TcpProxy } from "../test/support/tcp-proxy.ts";
import * as checks from "./checks.ts";
import { DeafClients } from "./deaf-clients.ts";
import { keepEvidence } from "./evidence.ts";
import type { World } from "./faults.ts";
import { Injector, type Hits } from "./injector.ts";
import { leftoversOf } from "./leftovers.ts";
import { answerOf, SCRIPT, type Places } from "./model.ts";
import { Pace } from "./pace.ts";
import { OUTCOMES, Person } from "./person.ts";
import { planOf, type Plan, type Size } from "./plan.ts";
import { NEXT_RELEASE } from "./release.ts";
import { Sources, type Edit } from "./sources.ts";
import { Workers } from "./workers.ts";

export type Verdict = {
  readonly seed: number;
  readonly complaints: readonly string[];
  readonly hits: Hits;
  readonly seconds: number;
  readonly messages: number;
  /** Conversations that ran tools under both releases. */
  readonly carriedOver: number;
  /** What turns came to, and how many of them did. */
  readonly outcomes: Readonly<Record<string, number>>;
};

/** A part of the turns; each fails whose provider cannot be reached three times in a row. */
const FAILED_AT_MOST = 0.2;

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
  const stage = await build(folder, sources, places, ends);
  const deploy = async (): Promise<void> => {
    sources.change(NEXT_RELEASE);
    await stage.world.workers.roll();
  };
  const { people, hits } = await storm(plan, stage.world, { places, deploy, say });
  say("the storm is over; looking at what is left");
  const { complaints, carriedOver } = await look(stage.world, people, places);
  complaints.push(...stage.remarks, ...misses(hits, size));
  if (carriedOver < size.needed) complaints.push(`${carriedOver} conversations ran under both releases`);
  const outcomes = countOf(people.flatMap((person) => person.outcomes));
  complaints.push(...lacks(outcomes, size, available));
  if (complaints.length > 0) {
    const logs = [join(folder, "data", "logs"), join(folder, "second-worker")];
    say(`kept in ${await keepEvidence(seed, complaints, stage.world.product, logs)}`);
  }
  const messages = people.flatMap(({ chapters }) => chapters.flatMap(({ accepted }) => accepted)).length;
  const seconds = Math.round((performance.now() - began) / 1_000);
  return { seed, complaints, hits, messages, carriedOver, outcomes, seconds };
}

/** Remarks are the model's, about what it was asked. */
type Stage = { readonly world: World; readonly remarks: readonly string[] };

async function build(
  folder: string,
  { root }: Sources,
  places: Places,
  ends: (() => Promise<unknown>)[],
): Promise<Stage> {
  const dataDir = join(folder, "data");
  const proxies: TcpProxy[] = [];
  const product = await startProduct({
    root,
    dataDir,
    providerBehind: async (url) => {
      const { hostname, port } = new URL(url);
      const proxy = await startProxy({ host: hostname, port: Number(port) });
      proxies.push(proxy);
      ends.push(() => proxy.cut());
      return addressOf(proxy);
    },
  });
  ends.push(product.stop);
  const [provider] = proxies;
  if (provider === undefined) throw new Error("There is no way to the provider.");
  const workers = await Workers.start(product, {
    ...{ root, dataDir, provider: addressOf(provider) },
    folder: join(folder, "second-worker"),
  });
  ends.push(() => workers.stop());
  const remarks: string[] = [];
  product.model.script(SCRIPT, ({ body }) => {
    try {
      return answerOf(body, places);
    } catch (error) {
      remarks.push(`the model says: ${String(error)}`);
      throw error;
    }
  });
  const deaf = await DeafClients.prepare(product);
  ends.push(() => deaf.close());
  return { world: { product, workers, provider, deaf, cwd: places.cwd }, remarks };
}

const addressOf = ({ port }: TcpProxy): string => `http://127.0.0.1:${port}`;

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

/** Every fault must have found a tool, a request and a commit under way, all at once. */
function misses(hits: Hits, { faults, needed }: Size): string[] {
  return faults
    .filter((name) => hits[name].all < needed)
    .map((name) => `"${name}" found a tool, a request and a commit ${hits[name].all} times of ${needed}`);
}

function countOf(outcomes: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const outcome of outcomes) counts[outcome] = (counts[outcome] ?? 0) + 1;
  return counts;
}

/** Every kind of turn must have taken place, and most turns must have come to what they were for. */
function lacks(outcomes: Readonly<Record<string, number>>, { turns }: Size, canRestrict: boolean): string[] {
  const { failed = 0 } = outcomes;
  const wanted = OUTCOMES.filter(
    (outcome) => canRestrict || (outcome !== "approved" && outcome !== "denied"),
  );
  return [
    ...wanted
      .filter((outcome) => outcomes[outcome] === undefined)
      .map((outcome) => `no turn was "${outcome}"`),
    ...(failed > turns * FAILED_AT_MOST ? [`${failed} of ${turns} turns failed`] : []),
  ];
}

async function look({ product, workers, deaf }: World, people: readonly Person[], places: Places) {
  const db = openDatabase(product.databaseUrl, { applicationName: "chaos", max: 4 });
  try {
    await Promise.all(
      people.map((person) =>
        person.farewell().catch((error: unknown) => void person.complaints.push(String(error))),
      ),
    );
    const complaints = people.flatMap((person) => person.complaints);
    const chapters = people.flatMap((person) => person.chapters);
    for (const chapter of chapters) {
      complaints.push(...(await checks.checkAccepted(chapter)), ...(await checks.checkHeard(db, chapter)));
    }
    if (chapters.every(({ talk }) => talk.resumed === 0)) complaints.push("no stream was ever cut off");
    complaints.push(...(await checks.checkEvents(db)), ...(await checks.checkLedger(db, places.ledger)));
    complaints.push(...checks.checkRequests(product), ...(await leftoversOf(places.cwd)));
    // Workers that remember nothing have to replay.
    await workers.restart();
    const roots = [deaf.talk.id, ...chapters.map(({ talk }) => talk.id)];
    const everybody = await checks.checkEverybody(db, roots);
    const replayed = everybody.ids.map((id) => checks.checkReplay(product, db, id));
    complaints.push(...everybody.complaints, ...(await Promise.all(replayed)).flat());
    const others = everybody.ids.filter((id) => id !== deaf.talk.id);
    const carriedOver = await checks.countCarriedOver(product, others);
    for (const { talk } of chapters) talk.close();
    return { complaints, carriedOver };
  } finally {
    await db.close();
  }
}

async function placesIn(folder: string): Promise<Places> {
  const cwd = join(folder, "work");
  mkdirSync(cwd);
  const files = { ledger: join(folder, "ledger"), picture: join(folder, "picture.png") };
  writeFileSync(files.ledger, "");
  writeFileSync(files.picture, await picture("png", { width: 200, height: 100 }));
  return { ...files, cwd, pidsOf: (turn) => join(folder, `${turn}.pids`) };
}
