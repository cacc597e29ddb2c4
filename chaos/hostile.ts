/**
 * Owns: a run of a hundred ordinary conversations beside attacking neighbours. It measures the usual figures for a
 * while without attacks, and then under attack for a minute. The ordinary conversations must not be affected.
 */
import { setMaxListeners } from "node:events";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { openDatabase, type Database } from "../db/connect.ts";
import { hostSandbox } from "../test/support/host-sandbox.ts";
import { startProduct, type Product } from "../test/support/product.ts";
import { checkAccepted, checkEvents, checkHeard, checkLedger } from "./checks.ts";
import { holdLocks, holdPages, holdSockets, stopSupervisor } from "./hostile-commands.ts";
import { answerNeighbour, Neighbour, Ordinary, SCRIPTS } from "./hostile-people.ts";
import { ENDLESS_LINE, MANY_DELTAS, startHostileProvider, type HostileProvider } from "./hostile-provider.ts";
import { commandsIn } from "./leftovers.ts";
import { answerOf, doneWith } from "./model.ts";
import { kill } from "./processes.ts";
import { Random } from "./random.ts";
import { onSite, type Ends } from "./site.ts";
import { Sources } from "./sources.ts";
import { dataIn, placesIn } from "./stage.ts";
import { Watch, type Measured } from "./watch.ts";

const CONVERSATIONS = 100;
const CALM_MS = 25_000;
const STORM_MS = 60_000;
/** Milliseconds after a worker's death within which a tree that stops its supervisor must be dead. */
const DEATH_MS = 10_000;
/**
 * Megabytes that a process may take beyond its maximum before the attacks; 170 MB of it come from the ordinary
 * conversations.
 */
const GROWTH_MB = 400;
/** Milliseconds. If Temporal takes longer, it does not answer heartbeats in time. */
const SLOWEST_MS = 2_000;

export type HostileVerdict = { readonly complaints: readonly string[] };

export async function runHostile(
  { seed, say }: { readonly seed: number; readonly say: (line: string) => void },
  interrupted: AbortSignal,
): Promise<HostileVerdict> {
  const over = new AbortController();
  // A hundred virtual users and their neighbours listen.
  setMaxListeners(0, over.signal);
  interrupted.addEventListener("abort", () => over.abort(), { once: true });
  const { result, leftovers } = await onSite(
    (folder, ends) => perform({ folder, ends, over, say, chance: new Random(seed) }),
    interrupted,
  );
  return { complaints: [...result, ...leftovers] };
}

type Run = {
  readonly folder: string;
  readonly ends: Ends;
  readonly over: AbortController;
  readonly say: (line: string) => void;
  readonly chance: Random;
};

async function perform({ folder, ends, over, say, chance }: Run): Promise<string[]> {
  const { available, reason } = await hostSandbox();
  if (!available) say(`nobody is Restricted here, and nobody attacks from there: ${reason ?? ""}`);
  const places = await placesIn(folder);
  const providers: HostileProvider[] = [];
  const product = await startProduct({
    root: new Sources(join(folder, "sources")).root,
    dataDir: dataIn(folder),
    providerBehind: async (url) => {
      const provider = await startHostileProvider(url);
      providers.push(provider);
      return provider.url;
    },
  });
  ends.push(product.stop, ...providers.map(({ close }) => close));
  product.model.script(SCRIPTS.free, ({ body }) => answerOf(body, places));
  product.model.script(SCRIPTS.restricted, ({ body }) => answerOf(body, { ...places, ledger: "/dev/null" }));
  product.model.script(SCRIPTS.neighbour, ({ body }) => answerNeighbour(body));
  const modeOf = (n: number) => (available && n % 2 === 0 ? "restricted" : "free");
  const people = await Promise.all(
    Array.from({ length: CONVERSATIONS }, (_, n) =>
      Ordinary.open(product, modeOf(n), chance.fork(), places.cwd),
    ),
  );
  const watch = new Watch(product, people[0]?.talk.id ?? "");
  const watching = watch.run(over.signal);
  const complaints: string[] = [];
  const lives = people.map((each) =>
    each.live(over.signal).catch((error: unknown) => void complaints.push(String(error))),
  );

  say(`${CONVERSATIONS} conversations, and nobody attacks`);
  await pause(CALM_MS, null, { signal: over.signal });
  const calm = watch.take();
  const neighbours = neighboursOf(product, join(folder, "neighbours"), available);
  say(`their neighbours attack: ${neighbours.map(({ name }) => name).join(", ")}`);
  const attacks = neighbours.map(({ name, attack }) =>
    attack(over.signal).catch((error: unknown) => say(`${name}: ${String(error)}`)),
  );
  await pause(STORM_MS, null, { signal: over.signal });
  const attacked = watch.take();
  over.abort();
  await Promise.all([...lives, watching]);
  say("all of them are at rest; looking at what happened to them");
  complaints.push(...(await lookAt(product, people, places.ledger)));
  await Promise.all(attacks);
  complaints.push(...measuredAgainst(calm, attacked));
  for (const { name, neighbour } of neighbours) {
    complaints.push(...new Set(neighbour.gains.map((gain) => `${name}: ${gain}`)));
    if (neighbour.turns === 0) complaints.push(`${name}: it never attacked`);
    say(`${name}: ${neighbour.turns} attacks ${neighbour.said.slice(-300)}`);
  }
  for (const [tag, { times, read }] of Object.entries(providers[0]?.asked ?? {}))
    say(`${tag} was asked for ${times} times, and read to ${Math.round(100 * read)} % at most`);
  say(`calm ${JSON.stringify(calm)}, under attack ${JSON.stringify(attacked)}`);
  complaints.push(...(await outlives(product, join(folder, "neighbours", "last"))));
  for (const { talk } of people) talk.close();
  return complaints;
}

type Attack = {
  readonly name: string;
  readonly neighbour: Neighbour;
  readonly attack: (over: AbortSignal) => Promise<void>;
};

/** @param folder gets a folder for each neighbour */
function neighboursOf(product: Product, folder: string, canRestrict: boolean): readonly Attack[] {
  mkdirSync(folder);
  const attack = (
    name: string,
    mode: "free" | "restricted",
    how: (neighbour: Neighbour, over: AbortSignal) => Promise<void>,
  ): Attack => {
    const cwd = join(folder, name.replaceAll(" ", "-"));
    mkdirSync(cwd);
    const neighbour = new Neighbour(product, mode, cwd);
    return { name, neighbour, attack: (over) => how(neighbour, over) };
  };
  const confined = [
    attack("locks", "restricted", (each, over) => each.attack([holdLocks(product.dataDir)], over)),
    // The two attacks alternate: together they would take too much of a machine that others use, too.
    attack("memory", "restricted", (each, over) => each.attack([holdPages(), holdSockets()], over)),
  ];
  return [
    ...(canRestrict ? confined : []),
    attack("stops its supervisor", "free", (each, over) => each.attackAndStop(stopSupervisor(), over)),
    attack("endless line", "free", (each, over) => each.provoke(ENDLESS_LINE, over)),
    attack("many deltas", "free", (each, over) => each.provoke(MANY_DELTAS, over)),
  ];
}

/**
 * Complains about tool results that are not completed, errors, notes of an interruption, and missing or doubled
 * answers.
 */
async function lookAt(product: Product, people: readonly Ordinary[], ledger: string): Promise<string[]> {
  const db = openDatabase(product.databaseUrl, { applicationName: "chaos", max: 4 });
  try {
    const complaints = await Promise.all(people.map((each) => lookAtOne(db, each)));
    const all = [...complaints.flat(), ...(await checkEvents(db))];
    const ran = await checkLedger(db, ledger);
    // The ledger has neither the commands of neighbours nor those of conversations that may not write.
    const noted = people.filter(({ mode }) => mode === "free");
    const ids = noted.flatMap(({ asked }) => asked.map(({ id }) => id));
    return [...all, ...ran.filter((each) => ids.some((id) => each.startsWith(`toolu_${id}_`)))];
  } finally {
    await db.close();
  }
}

async function lookAtOne(db: Database, { talk, asked, accepted }: Ordinary): Promise<string[]> {
  const messages = await talk.messages();
  const said = JSON.stringify(messages.filter(({ type }) => type === "agent"));
  const complaints: string[] = [];
  for (const { id } of asked) {
    const times = said.split(doneWith(id)).length - 1;
    if (times !== 1) complaints.push(`turn ${id} was answered ${times} times`);
  }
  const results = await db.sql<{ status: string; times: number }[]>`
    select content #>> '{0,status}' as status, count(*) as times from messages
    where conversation_id = ${talk.id} and message_type = 'tool' group by 1`;
  const calls = asked.reduce((sum, turn) => sum + turn.calls, 0);
  for (const { status, times } of results)
    if (status !== "completed") complaints.push(`${times} of its calls were ${status}`);
  const answered = results.reduce((sum, { times }) => sum + times, 0);
  if (answered !== calls) complaints.push(`${answered} of ${calls} calls have a result`);
  for (const { type, content } of messages)
    if (type === "system" || type === "error") complaints.push(`it was told: ${JSON.stringify(content)}`);
  const { kind } = await talk.state();
  if (kind !== "idle") complaints.push(`it is ${kind} at the end`);
  return [
    ...complaints.map((each) => `${talk.id}: ${each}`),
    ...(await checkAccepted({ talk, accepted })),
    ...(await checkHeard(db, { talk, accepted })),
  ];
}

function measuredAgainst(calm: Measured, attacked: Measured): string[] {
  const grown = (["worker", "api"] as const)
    .filter((name) => attacked.memoryMb[name] > calm.memoryMb[name] + GROWTH_MB)
    .map((name) => `the ${name} took ${attacked.memoryMb[name]} MB, and ${calm.memoryMb[name]} MB before`);
  const slow = attacked.slowestMs > Math.max(SLOWEST_MS, 2 * calm.slowestMs);
  return [
    ...grown,
    ...attacked.died.map((name) => `the ${name} died`),
    ...(slow ? [`Temporal took ${Math.round(attacked.slowestMs)} ms for an answer`] : []),
  ];
}

/** A tree that stops its supervisor must die with its worker. */
async function outlives(product: Product, cwd: string): Promise<string[]> {
  mkdirSync(cwd);
  await new Neighbour(product, "free", cwd).begin(stopSupervisor());
  await kill(() => product.pidOf("worker"), "SIGKILL");
  const until = performance.now() + DEATH_MS;
  while (commandsIn(cwd).length > 0 && performance.now() < until) await pause(50);
  const alive = commandsIn(cwd).length;
  return alive === 0 ? [] : [`${alive} processes that stop their supervisor have outlived their worker`];
}
