/** Owns: what was spent, in the words that a person reads, and when it comes near a limit. */
import { inDollars, type Limit, type SpentView } from "../protocol/spending.ts";

/** From this share of a limit on, a person is warned. */
const WARNING = 0.8;

const inTokens = (count: number): string => `${count.toLocaleString("en-US")} tokens`;

/** "$0.12", or that nobody knows it. */
export const costInWords = ({ dollars }: SpentView): string =>
  dollars === null ? "cost unknown" : inDollars(dollars);

/** "$0.12, 12,345 tokens" */
export const spentInWords = (spent: SpentView): string => `${costInWords(spent)}, ${inTokens(spent.tokens)}`;

/** "$20.00 and 1,000,000 tokens"; null: there is none. */
export function limitInWords({ dollars, tokens }: Limit): string | null {
  const parts = [
    ...(dollars === null ? [] : [inDollars(dollars)]),
    ...(tokens === null ? [] : [inTokens(tokens)]),
  ];
  return parts.length === 0 ? null : parts.join(" and ");
}

/** "$8.20 of $10.00" from 80 % of a limit on; null below. Of two limits the one that is nearer. */
export function nearLimit(spent: SpentView, limit: Limit): string | null {
  const { dollars, tokens } = spent;
  const costs =
    limit.dollars === null || dollars === null
      ? []
      : [{ share: dollars / limit.dollars, words: `${inDollars(dollars)} of ${inDollars(limit.dollars)}` }];
  const counts =
    limit.tokens === null
      ? []
      : [
          {
            share: tokens / limit.tokens,
            words: `${tokens.toLocaleString("en-US")} of ${inTokens(limit.tokens)}`,
          },
        ];
  const [nearest] = [...costs, ...counts].sort((a, b) => b.share - a.share);
  return nearest !== undefined && nearest.share >= WARNING ? nearest.words : null;
}
