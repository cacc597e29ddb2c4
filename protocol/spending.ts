/**
 * Owns: what was spent, the limits on it, and the sentence with which a request or a message is refused. A worker and
 * the API refuse by the same limits and in the same words (docs/spending.md).
 * Not here: what a request costs (llm/price.ts), how sums are kept (db/spending.ts).
 */

/** Billionths of a US dollar in a dollar: the unit in which costs are kept. */
export const NANODOLLARS = 1_000_000_000;

export type Spent = {
  /** Of every kind, those from the provider's cache included. */
  readonly tokens: number;
  /** Of the requests whose model had a price. */
  readonly nanodollars: number;
  /** There were also requests whose model had none. */
  readonly isPartlyUnknown: boolean;
};

/** What a conversation with its sub-agents, and all conversations on a day, have spent. */
export type Sums = { readonly conversation: Spent; readonly day: Spent };

/** null: no limit. */
export type Limit = { readonly tokens: number | null; readonly dollars: number | null };
/** `day`: for all conversations together, from 00:00 to 24:00 UTC. */
export type SpendingLimits = { readonly conversation: Limit; readonly day: Limit };

export const NO_LIMITS: SpendingLimits = {
  conversation: { tokens: null, dollars: null },
  day: { tokens: null, dollars: null },
};

const isSet = ({ tokens, dollars }: Limit): boolean => tokens !== null || dollars !== null;

/** Which sums a check needs. */
export const limitsSet = (limits: SpendingLimits): { readonly [K in keyof SpendingLimits]: boolean } => ({
  conversation: isSet(limits.conversation),
  day: isSet(limits.day),
});

/** Why no more may be spent. `reason` is a sentence; it says what to do. */
export type Refusal = {
  readonly kind: "conversation" | "day" | "no_price";
  readonly reason: string;
};

/** The setting of each limit. */
const SETTINGS = {
  conversation: { tokens: "LIMIT_CONVERSATION_TOKENS", dollars: "LIMIT_CONVERSATION_DOLLARS" },
  day: { tokens: "LIMIT_DAY_TOKENS", dollars: "LIMIT_DAY_DOLLARS" },
} as const;

type Scope = keyof SpendingLimits;

/**
 * A limit that is reached refuses; null: none is.
 *
 * @param sums those without a limit may be null
 */
export function refusalOf(
  limits: SpendingLimits,
  sums: { readonly [K in keyof Sums]: Sums[K] | null },
): Refusal | null {
  return refusalOfScope("conversation", limits, sums.conversation) ?? refusalOfScope("day", limits, sums.day);
}

/** A limit in dollars cannot be kept on a model whose price is not known, and a limit that does not count is none. */
export function refusalOfModel(
  limits: SpendingLimits,
  model: { readonly id: string; readonly price: object | null },
): Refusal | null {
  const scope = (["conversation", "day"] as const).find((each) => limits[each].dollars !== null);
  if (scope === undefined || model.price !== null) return null;
  const reason = `What ${model.id} costs is not known, so ${SETTINGS[scope].dollars} cannot be kept. Give its price in MODELS_FILE (docs/spending.md), or choose another model.`;
  return { kind: "no_price", reason };
}

function refusalOfScope(scope: Scope, limits: SpendingLimits, spent: Spent | null): Refusal | null {
  const { tokens, dollars } = limits[scope];
  if (spent === null) return null;
  if (dollars !== null && spent.nanodollars >= Math.round(dollars * NANODOLLARS))
    return reached(
      scope,
      SETTINGS[scope].dollars,
      inDollars(spent.nanodollars / NANODOLLARS),
      inDollars(dollars),
    );
  if (tokens !== null && spent.tokens >= tokens)
    return reached(scope, SETTINGS[scope].tokens, inTokens(spent.tokens), inTokens(tokens));
  return null;
}

function reached(scope: Scope, setting: string, spent: string, limit: string): Refusal {
  const reason =
    scope === "conversation"
      ? `This conversation has spent ${spent}, and may spend ${limit}. Begin a new conversation, or raise ${setting}.`
      : `All conversations together have spent ${spent} today, and may spend ${limit}. Wait until 00:00 UTC, or raise ${setting}.`;
  return { kind: scope, reason };
}

const inTokens = (count: number): string => `${count.toLocaleString("en-US")} tokens`;

/** With as many decimals as a small amount needs. */
export function inDollars(amount: number): string {
  const decimals = amount === 0 || amount >= 1 ? 2 : amount >= 0.01 ? 3 : 6;
  return `$${amount.toFixed(decimals)}`;
}

/** `YYYY-MM-DD`, UTC. */
export const dayOf = (at: Date): string => at.toISOString().slice(0, 10);

/** Until 00:00 UTC; at least one. */
export function secondsLeftOf(at: Date): number {
  const midnight = Date.UTC(at.getUTCFullYear(), at.getUTCMonth(), at.getUTCDate() + 1);
  return Math.max(1, Math.ceil((midnight - at.getTime()) / 1_000));
}

/** What clients see. */
export type SpentView = {
  readonly tokens: number;
  /** null: part of it has no known price. */
  readonly dollars: number | null;
};

export const viewSpent = ({ tokens, nanodollars, isPartlyUnknown }: Spent): SpentView => ({
  tokens,
  dollars: isPartlyUnknown ? null : nanodollars / NANODOLLARS,
});
