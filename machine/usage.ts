/**
 * Owns: token sums and the two thresholds of the context window (REQ-BED-012, 019, 022, 023).
 * Used context = input + output + cache-read + cache-creation tokens of the last response.
 */
import type { TokenUsage } from "./message.ts";
import type { Usage } from "./conversation.ts";

/** REQ-BED-019, in percent so that the comparison is exact. */
const CONTINUATION_PERCENT = 90;
/** REQ-BED-023. */
const WARNING_PERCENT = 80;

export function totalTokens(usage: TokenUsage): number {
  return usage.inputTokens + usage.outputTokens + usage.cacheReadTokens + usage.cacheCreationTokens;
}

export function addTokens(a: TokenUsage, b: TokenUsage): TokenUsage {
  return {
    inputTokens: a.inputTokens + b.inputTokens,
    outputTokens: a.outputTokens + b.outputTokens,
    cacheReadTokens: a.cacheReadTokens + b.cacheReadTokens,
    cacheCreationTokens: a.cacheCreationTokens + b.cacheCreationTokens,
  };
}

/** The conversation's usage after one more response. */
export function afterResponse(usage: Usage, response: TokenUsage, contextWindow: number): Usage {
  return { ...addTokens(usage, response), contextUsed: totalTokens(response), contextWindow };
}

const reaches = (used: number, window: number, percent: number): boolean => used * 100 >= window * percent;

export const isExhausted = (used: number, window: number): boolean =>
  reaches(used, window, CONTINUATION_PERCENT);
export const isWarning = (used: number, window: number): boolean => reaches(used, window, WARNING_PERCENT);
/** 0 to 1 and beyond. */
export const contextRatio = (used: number, window: number): number => used / window;

/** Usage as clients see it (docs/http.md). */
export type UsageView = Usage & {
  /** contextUsed / contextWindow. */
  readonly contextRatio: number;
  /** 80 % or more (REQ-BED-023). */
  readonly warning: boolean;
};

export function viewUsage(usage: Usage): UsageView {
  const { contextUsed, contextWindow } = usage;
  return {
    ...usage,
    contextRatio: contextRatio(contextUsed, contextWindow),
    warning: isWarning(contextUsed, contextWindow),
  };
}
