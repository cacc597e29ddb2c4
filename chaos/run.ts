/** Owns: one run: the product, its people, the faults, and the verdict. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { openDatabase } from "../db/connect.ts";
import { sandboxOfHost } from "../sandbox/host.ts";
import { picture } from "../test/support/pictures.ts";
import { startProduct, type Product } from "../test/support/product.ts";
import { startProxy, type TcpProxy } from "../test/support/tcp-proxy.ts";
import * as checks from "./checks.ts";
import { kill } from "./faults.ts";
import { Injector, type Hits } from "./injector.ts";
import { answerOf, SCRIPT, type Places } from "./model.ts";
import { Person } from "./person.ts";
import { planOf, type Plan, type Size } from "./plan.ts";

export type Verdict = {
  readonly seed: number;
  readonly complaints: readonly string[];
  readonly hits: Hits;
  readonly seconds: number;
  readonly messages: number;
};

export type RunOptions = {
  readonly seed: number;
  readonly size: Size;
  readonly say: (line: string) => void;
  /** Other sources, and what is done to the product before it begins: for the tests of this test. */
  readonly root?: string;
  readonly sabotage?: (product: Product) => Promise<void>;
};

export async function run({ seed, size, say, root, sabotage }: RunOptions): Promise<Verdict> {
  const began = performance.now();
  const plan = planOf(seed, size, (await sandboxOfHost()).available);
  const folder = mkdtempSync(join(tmpdir(), "bedrock-chaos-"));
  const places = await placesIn(folder);
  const proxies: TcpProxy[] = [];
  const product = await startProduct({
    ...(root === undefined ? {} : { root }),
    providerBehind: async (url) => {
      const { hostname, port } = new URL(url);
      const proxy = await startProxy({ host: hostname, port: Number(port) });
      proxies.push(proxy);
      return `http://127.0.0.1:${proxy.port}`;
    },
  });
  try {
    const [provider] = proxies;
    if (provider === undefined) throw new Error("there is no way to the provider");
    await sabotage?.(product);
    product.model.script(SCRIPT, ({ body }) => answerOf(body, places));
    const { people, hits } = await storm(plan, { product, provider, places, say });
    say("the storm is over; looking at what is left");
    const complaints = [...misses(hits, size), ...(await look(product, people, places))];
    const messages = people.flatMap(({ chapters }) => chapters.flatMap(({ accepted }) => accepted)).length;
    return { seed, complaints, hits, messages, seconds: Math.round((performance.now() - began) / 1_000) };
  } finally {
    await product.stop();
    await Promise.all(proxies.map((proxy) => proxy.cut()));
    rmSync(folder, { recursive: true, force: true });
  }
}

type Stage = {
  readonly product: Product;
  readonly provider: TcpProxy;
  readonly places: Places;
  readonly say: (line: string) => void;
};

async function storm(plan: Plan, { product, provider, places, say }: Stage) {
  let injector: Injector | null = null;
  const turns = plan.conversations.reduce((sum, { turns: each }) => sum + each.length, 0);
  const mayBegin = async (place: number): Promise<void> => {
    while ((injector?.progress ?? 0) < (place / turns) * 0.95) await pause(50);
  };
  const people = plan.conversations.map((each) => new Person(product, each, places, mayBegin));
  const conversations = (): string[] => people.flatMap(({ chapters }) => chapters.map(({ talk }) => talk.id));
  injector = new Injector({ product, provider, conversations }, people);
  const lives = people.map((person) =>
    person.live().catch((error: unknown) => void person.complaints.push(String(error))),
  );
  try {
    await injector.run(plan, say);
  } finally {
    injector.progress = 1;
    await injector.close();
  }
  await Promise.all(lives);
  return { people, hits: injector.hits };
}

/** Every fault must have found a tool, a request and a commit under way. */
function misses(hits: Hits, { needed }: Size): string[] {
  return Object.entries(hits).flatMap(([name, found]) =>
    (["tool", "request", "commit"] as const).flatMap((what) =>
      found[what] >= needed ? [] : [`"${name}" found a ${what} under way ${found[what]} times of ${needed}`],
    ),
  );
}

async function look(product: Product, people: readonly Person[], places: Places): Promise<string[]> {
  const db = openDatabase(product.databaseUrl, { applicationName: "chaos", max: 4 });
  try {
    const complaints = people.flatMap((person) => person.complaints);
    const farewells = people.map((person) =>
      person.farewell().catch((error: unknown) => void complaints.push(`farewell: ${String(error)}`)),
    );
    await Promise.all(farewells);
    complaints.push(
      ...people.flatMap((person) => person.complaints.filter((each) => !complaints.includes(each))),
    );
    const chapters = people.flatMap((person) => person.chapters);
    for (const chapter of chapters) {
      complaints.push(...(await checks.checkAccepted(chapter)), ...(await checks.checkHeard(db, chapter)));
    }
    complaints.push(...(await checks.checkLedger(db, places.ledger)), ...checks.checkRequests(product));
    complaints.push(...(await checks.checkSurvivors(places.cwd)));
    // A worker that remembers nothing has to replay.
    await kill(product, "worker");
    for (const { talk } of chapters) {
      for (const id of await checks.familyOf(db, talk.id)) {
        complaints.push(...(await checks.checkReplay(product, db, id)));
      }
      talk.close();
    }
    return complaints;
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
