/** Owns: covering many numbers with few ranges. */

/** Both ends are included. */
export type Range = readonly [first: number, last: number];

/**
 * At most `count` ranges that together hold all of the numbers. If there would be more, the closest are joined, with
 * the numbers between them.
 */
export function rangesOf(numbers: readonly number[], count: number): readonly Range[] {
  const sorted = [...new Set(numbers)].sort((a, b) => a - b);
  const steps = sorted.slice(1).map((number, n) => number - (sorted[n] ?? number));
  // The `count - 1` widest steps separate the ranges. A step from one number to the next never does.
  const joined = Math.max(1, steps.sort((a, b) => b - a)[count - 1] ?? 1);
  const ranges: [number, number][] = [];
  for (const number of sorted) {
    const last = ranges.at(-1);
    if (last !== undefined && number - last[1] <= joined) last[1] = number;
    else ranges.push([number, number]);
  }
  return ranges;
}
