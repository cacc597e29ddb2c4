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
import { keepEvidence } from "./evidence.ts";
import type { World } from "./faults.ts";
import { Injector, type Hits } from "./injector.ts";
import { answerOf, SCRIPT, type Places } from "./model.ts";
import { Pace } from "./pace.ts";
import { Person } from "./person.ts";
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
    return await Promise.race([perform(options, folder, ends), interruption]);
  } finally {
    for (const end of ends.reverse()) await end();
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
  const plan = planOf(seed, size, (await sandboxOfHost()).available);
  const places = await placesIn(folder);
  const sources = new Sources(join(folder, "sources"));
  sources.change(edits);
  const stage = await build(folder, sources, ends);
  stage.product.model.script(SCRIPT, ({ body }) => answerOf(body, places));
  const deploy = async (): Promise<void> => {
    sources.change(NEXT_RELEASE);
    await stage.workers.roll();
  };
  const { people, hits } = await storm(plan, stage, { places, deploy, say });
  say("the storm is over; looking at what is left");
  const { complaints, carriedOver } = await look(stage, people, places);
  complaints.push(...misses(hits, size));
  if (carriedOver < size.needed) complaints.push(`${carriedOver} conversations ran under both releases`);
  if (complaints.length > 0) {
    const logs = [join(folder, "data", "logs"), join(folder, "second-worker")];
    say(`kept in ${await keepEvidence(seed, complaints, stage.product, logs)}`);
  }
  const messages = people.flatMap(({ chapters }) => chapters.flatMap(({ accepted }) => accepted)).length;
  const seconds = Math.round((performance.now() - began) / 1_000);
  return { seed, complaints, hits, messages, carriedOver, seconds };
}

type Stage = Omit<World, "conversations">;

async function build(folder: string, { root }: Sources, ends: (() => Promise<unknown>)[]): Promise<Stage> {
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
  return { product, workers, provider };
}

const addressOf = ({ port }: TcpProxy): string => `http://127.0.0.1:${port}`;

type Doing = {
  readonly places: Places;
  readonly deploy: () => Promise<void>;
  readonly say: (line: string) => void;
};

async function storm(plan: Plan, stage: Stage, { places, deploy, say }: Doing) {
  const pace = new Pace(plan.conversations.reduce((sum, { turns }) => sum + turns.length, 0));
  const people = plan.conversations.map((each) => new Person(stage.product, each, places, pace));
  const conversations = (): string[] => people.flatMap(({ chapters }) => chapters.map(({ talk }) => talk.id));
  const injector = new Injector({ ...stage, conversations }, people, pace);
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

/** Every fault must have found a tool, a request and a commit under way. */
function misses(hits: Hits, { faults, needed }: Size): string[] {
  return faults.flatMap((name) =>
    (["tool", "request", "commit"] as const).flatMap((what) => {
      const times = hits[name][what];
      return times >= needed ? [] : [`"${name}" found a ${what} under way ${times} times of ${needed}`];
    }),
  );
}

async function look({ product, workers }: Stage, people: readonly Person[], places: Places) {
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
    complaints.push(...(await checks.checkLedger(db, places.ledger)), ...checks.checkRequests(product));
    complaints.push(...(await checks.checkSurvivors(places.cwd)));
    // Workers that remember nothing have to replay.
    await workers.restart();
    const families = await Promise.all(chapters.map(({ talk }) => checks.familyOf(db, talk.id)));
    const replayed = families.flat().map((id) => checks.checkReplay(product, db, id));
    complaints.push(...(await Promise.all(replayed)).flat());
    const carriedOver = await checks.countCarriedOver(product, families.flat());
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
