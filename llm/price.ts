/**
 * Owns: what a request costs by its model's price. Whole billionths of a dollar: a sum of them is exact, and a price has
 * at most three decimals.
 */
import type { TokenUsage } from "../machine/message.ts";
import { NANODOLLARS } from "../protocol/spending.ts";

/** US dollars per million tokens, by their kind. */
type Rates = {
  readonly input: number;
  readonly output: number;
  readonly cacheRead: number;
  readonly cacheCreation: number;
};

export type Price = Rates & {
  /** Holds for the whole request when its prompt, cached or not, has more than `above` tokens. */
  readonly longPrompt?: (Rates & { readonly above: number }) | undefined;
};

/** Of a dollar per million tokens, for one token. */
const PER_TOKEN = NANODOLLARS / 1_000_000;

/** The cost of one request in billionths of a dollar. */
export function costOf(price: Price, usage: TokenUsage): number {
  const { inputTokens, outputTokens, cacheReadTokens, cacheCreationTokens } = usage;
  const prompt = inputTokens + cacheReadTokens + cacheCreationTokens;
  const isLong = price.longPrompt !== undefined && prompt > price.longPrompt.above;
  const rates: Rates = isLong ? price.longPrompt : price;
  const cost = (tokens: number, rate: number): number => tokens * Math.round(rate * PER_TOKEN);
  return (
    cost(inputTokens, rates.input) +
    cost(outputTokens, rates.output) +
    cost(cacheReadTokens, rates.cacheRead) +
    cost(cacheCreationTokens, rates.cacheCreation)
  );
}
