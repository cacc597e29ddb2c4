/** Owns: the plan of a run, drawn entirely from its seed: conversations, their turns, the order of the faults. */
import { FAULTS, type FaultName } from "./faults.ts";
import { Random } from "./random.ts";

/** What a Stop does with messages that wait (docs/http.md). */
export const STOP_QUEUES = ["run", "hold", "clear"] as const;
export type StopQueue = (typeof STOP_QUEUES)[number];

/** Calls of one answer: milliseconds that each command takes. */
export type Round = readonly number[];

export type Turn = {
  /** Unique in the run. */
  readonly id: string;
  /** Its place among all turns: it begins when the same share of the faults is over. */
  readonly place: number;
} & (
  | { readonly kind: "text"; readonly words: number }
  | { readonly kind: "tools"; readonly rounds: readonly Round[] }
  | { readonly kind: "steer"; readonly rounds: readonly Round[]; readonly followUp: boolean }
  | { readonly kind: "sub_agents"; readonly children: readonly Round[] }
  | { readonly kind: "approval"; readonly decision: "approve" | "deny"; readonly thinkMs: number }
  | { readonly kind: "image" }
  | { readonly kind: "stop"; readonly queue: StopQueue }
  | { readonly kind: "continuation" }
);
type TurnKind = Turn["kind"];

export type Plan<Name extends string = FaultName> = {
  readonly conversations: readonly {
    /** Counted from 0; it says on which of the tool hosts it is. */
    readonly number: number;
    readonly restricted: boolean;
    readonly turns: readonly Turn[];
  }[];
  readonly faults: readonly { readonly name: Name; readonly afterMs: number }[];
  readonly chance: Random;
};

export type Size<Name extends string = FaultName> = {
  readonly conversations: number;
  readonly turns: number;
  readonly faults: readonly Name[];
  /**
   * `hits`: how often each fault comes, if none misses. `needed`: how often it must find a tool, a request and a commit
   * under way.
   */
  readonly hits: number;
  readonly needed: number;
  /** The number of conversations that must have run tools under both releases. */
  readonly carriedOver: number;
  /** The number of `STOP_QUEUES` of which a Stop must have met a message that waits. */
  readonly stopQueues: number;
  /** Faults that interrupt everything under way, each time that they come. */
  readonly rare: readonly Name[];
  readonly rareHits: number;
};

/** After these faults the product is started again. */
const RESTARTS: readonly FaultName[] = [
  "kill npm start",
  "power cut, temporal older",
  "power cut, temporal lost",
];
const IN_SMALL_RUNS = FAULTS.slice(0, FAULTS.indexOf("fill a client's socket") + 1);

export const FULL: Size = {
  ...{ conversations: 40, turns: 260 },
  ...{ faults: FAULTS.filter((name) => !RESTARTS.includes(name)), hits: 10, needed: 10 },
  ...{ rare: RESTARTS, rareHits: 3, carriedOver: 10, stopQueues: 3 },
};
/** A small run. */
export const SHORT: Size = {
  ...{ conversations: 12, turns: 36 },
  ...{ faults: IN_SMALL_RUNS, hits: 2, needed: 1 },
  ...{ rare: [], rareHits: 0, carriedOver: 1, stopQueues: 1 },
};

/** For defects that must be found: few conversations, and faults that can make something happen twice or late. */
export const PROOF: Size = {
  conversations: 12,
  turns: 48,
  faults: ["freeze worker", "kill worker", "kill postgres", "freeze postgres"],
  hits: 3,
  needed: 1,
  rare: [],
  rareHits: 0,
  carriedOver: 1,
  stopQueues: 1,
};

/** A small run with these faults alone. */
export const smallWith = (names: readonly FaultName[]): Size => ({
  ...SHORT,
  faults: names.filter((name) => !RESTARTS.includes(name)),
  hits: 5,
  rare: names.filter((name) => RESTARTS.includes(name)),
  rareHits: 2,
  carriedOver: 0,
});

/** The same size without a fault that is not possible here. */
export const without = (size: Size, name: FaultName): Size => ({
  ...size,
  faults: size.faults.filter((each) => each !== name),
});

const WEIGHTS: Readonly<Record<Exclude<TurnKind, "approval">, number>> = {
  text: 15,
  tools: 40,
  steer: 14,
  sub_agents: 10,
  image: 8,
  stop: 9,
  continuation: 4,
};
/** One in this many conversations is Restricted, and asks for more rights. */
const RESTRICTED = 8;

/** @param canRestrict the host has the sandbox; without it no conversation has to ask. */
export function planOf<Name extends string>(
  seed: number,
  size: Size<Name>,
  canRestrict: boolean,
): Plan<Name> {
  const random = new Random(seed);
  const places = random.shuffled(Array.from({ length: size.turns }, (_, n) => n));
  const isRestricted = (c: number): boolean => canRestrict && c % RESTRICTED === 0;
  const placesOf = (c: number): number[] =>
    places.filter((_place, n) => n % size.conversations === c).sort((a, b) => a - b);
  const all = Array.from({ length: size.conversations }, (_, c) => c);
  const free = all.filter((c) => !isRestricted(c)).reduce((sum, c) => sum + placesOf(c).length, 0);
  const kinds = random.shuffled(deckOf(free));
  let stops = 0;
  const nextStopQueue = (): StopQueue => STOP_QUEUES[stops++ % STOP_QUEUES.length] ?? "run";
  const conversations = all.map((c) => {
    const restricted = isRestricted(c);
    const mine = placesOf(c);
    // After an approval it is no longer Restricted, so only its last turn asks.
    const asks = mine.map((_place, t): TurnKind => (t === mine.length - 1 ? "approval" : "text"));
    const dealt = restricted ? asks : soonest(kinds.splice(0, mine.length));
    const turns = mine.map((place, t) => {
      // One in three is denied, also in small runs.
      const decision = c % (3 * RESTRICTED) === RESTRICTED ? "deny" : "approve";
      return { id: `c${c}t${t}`, place, ...turnOf(dealt[t] ?? "text", decision, nextStopQueue, random) };
    });
    return { number: c, restricted, turns };
  });
  const timesEach = (names: readonly Name[], times: number): Name[] =>
    names.flatMap((name) => Array.from({ length: times }, () => name));
  const names = [...timesEach(size.faults, size.hits), ...timesEach(size.rare, size.rareHits)];
  const order = forgettingFirst(random.shuffled(names));
  const faults = order.map((name) => ({ name, afterMs: random.integer(20, 250) }));
  return { conversations, faults, chance: random.fork() };
}

/**
 * When Temporal loses its histories, it is no longer known which conversations ran under both releases. So these faults
 * come well before the deploy.
 */
function forgettingFirst<Name extends string>(names: readonly Name[]): Name[] {
  const [order, third] = [[...names], Math.floor(names.length / 3)];
  const isLost = (name: string): boolean => name === "power cut, temporal lost";
  for (const [n, late] of names.entries()) {
    const earlier = order.findIndex((name) => !isLost(name));
    const other = order[earlier];
    if (n >= third && isLost(late) && other !== undefined) [order[n], order[earlier]] = [other, late];
  }
  return order;
}

/** A continuation summarises what was said before, so it is never the first turn. */
function soonest(kinds: readonly TurnKind[]): TurnKind[] {
  const [first, ...others] = kinds;
  if (first !== "continuation") return [...kinds];
  const other = others.findIndex((kind) => kind !== "continuation");
  return other === -1 ? ["text", ...others] : [others[other] ?? "text", ...others.with(other, first)];
}

/** Each kind by its weight, and once at least. */
function deckOf(turns: number): TurnKind[] {
  const entries = Object.entries(WEIGHTS) as [TurnKind, number][];
  const sum = entries.reduce((all, [, weight]) => all + weight, 0);
  const deck = entries.flatMap(([kind, weight]) =>
    Array.from({ length: Math.max(1, Math.floor((turns * weight) / sum)) }, () => kind),
  );
  return [...deck, ...Array.from({ length: Math.max(0, turns - deck.length) }, () => "tools" as const)];
}

function turnOf(
  kind: TurnKind,
  decision: "approve" | "deny",
  nextStopQueue: () => StopQueue,
  random: Random,
) {
  const round = (): Round => Array.from({ length: random.integer(1, 3) }, () => random.integer(30, 400));
  const rounds = (): readonly Round[] => Array.from({ length: random.integer(4, 8) }, round);
  switch (kind) {
    case "text":
      return { kind, words: random.integer(5, 60) };
    case "tools":
      return { kind, rounds: rounds() };
    case "steer":
      return { kind, rounds: rounds(), followUp: random.next() < 0.5 };
    case "sub_agents":
      return { kind, children: Array.from({ length: random.integer(1, 3) }, round) };
    case "approval":
      return { kind, decision, thinkMs: random.integer(0, 1_500) };
    case "stop":
      return { kind, queue: nextStopQueue() };
    case "image":
      return { kind };
    case "continuation":
      return { kind };
  }
}
