/** Owns: what a run consists of, all of it from its seed: conversations, their turns, the order of the faults. */
import { FAULTS, type FaultName } from "./faults.ts";
import { Random } from "./random.ts";

/** Calls of one answer: milliseconds that each command takes. */
export type Round = readonly number[];

export type Turn = {
  /** Unique in the run. */
  readonly id: string;
  /** Its place among all turns: it begins when as large a part of the faults is over. */
  readonly place: number;
} & (
  | { readonly kind: "text"; readonly words: number }
  | { readonly kind: "tools"; readonly rounds: readonly Round[] }
  | { readonly kind: "steer"; readonly rounds: readonly Round[]; readonly followUp: boolean }
  | { readonly kind: "sub_agents"; readonly children: readonly Round[] }
  | { readonly kind: "approval"; readonly decision: "approve" | "deny"; readonly thinkMs: number }
  | { readonly kind: "image" }
  | { readonly kind: "stop" }
  | { readonly kind: "continuation" }
);
export type TurnKind = Turn["kind"];

export type Plan = {
  readonly conversations: readonly { readonly restricted: boolean; readonly turns: readonly Turn[] }[];
  readonly faults: readonly { readonly name: FaultName; readonly afterMs: number }[];
  readonly chance: Random;
};

export type Size = {
  readonly conversations: number;
  readonly turns: number;
  readonly faults: readonly FaultName[];
  /** How often each fault comes, and how often it must find a tool, a request and a commit under way. */
  readonly hits: number;
  readonly needed: number;
};

export const FULL: Size = { conversations: 40, turns: 200, faults: FAULTS, hits: 11, needed: 10 };
/** A small one. */
export const SHORT: Size = { conversations: 12, turns: 36, faults: FAULTS, hits: 2, needed: 1 };

/** For defects that must be found: few conversations, and the faults after which something is done twice or late. */
export const PROOF: Size = {
  conversations: 12,
  turns: 48,
  faults: ["freeze worker", "kill worker", "kill postgres", "freeze postgres"],
  hits: 3,
  needed: 1,
};

const WEIGHTS: Readonly<Record<Exclude<TurnKind, "approval">, number>> = {
  text: 15,
  tools: 40,
  steer: 14,
  sub_agents: 10,
  image: 8,
  stop: 9,
  continuation: 4,
};
/** One conversation of so many is Restricted, and asks. */
const RESTRICTED = 8;

/** @param canRestrict the host has the sandbox; without it nobody has to ask. */
export function planOf(seed: number, size: Size, canRestrict: boolean): Plan {
  const random = new Random(seed);
  const places = random.shuffled(Array.from({ length: size.turns }, (_, n) => n));
  const kinds = random.shuffled(deckOf(size.turns));
  const conversations = Array.from({ length: size.conversations }, (_, c) => {
    const restricted = canRestrict && c % RESTRICTED === 0;
    const mine = places.filter((_place, n) => n % size.conversations === c).sort((a, b) => a - b);
    const turns = mine.map((place, t) => {
      // By an approval it would no longer be Restricted: then it is the last of its turns that asks.
      const kind = restricted ? (t === mine.length - 1 ? "approval" : "text") : (kinds.pop() ?? "text");
      return { id: `c${c}t${t}`, place, ...turnOf(kind, random) };
    });
    return { restricted, turns };
  });
  const names = size.faults.flatMap((name) => Array.from({ length: size.hits }, () => name));
  const faults = random.shuffled(names).map((name) => ({ name, afterMs: random.integer(20, 250) }));
  return { conversations, faults, chance: random.fork() };
}

/** So many kinds at least, each by its weight: a run has some of all. */
function deckOf(turns: number): TurnKind[] {
  const entries = Object.entries(WEIGHTS) as [TurnKind, number][];
  const sum = entries.reduce((all, [, weight]) => all + weight, 0);
  return entries.flatMap(([kind, weight]) =>
    Array.from({ length: Math.ceil((turns * weight) / sum) }, () => kind),
  );
}

function turnOf(kind: TurnKind, random: Random) {
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
      return {
        kind,
        decision: random.next() < 0.7 ? ("approve" as const) : ("deny" as const),
        thinkMs: random.integer(0, 1_500),
      };
    case "image":
    case "stop":
    case "continuation":
      return { kind };
  }
}
