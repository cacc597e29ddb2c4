/** Owns: many numbers as few ranges. */

/** Both ends belong to it. */
export type Range = readonly [first: number, last: number];

/**
 * Ranges that hold all of the numbers, `count` at most: where there were more, the closest become one, with what lies
 * between them.
 */
export function rangesOf(numbers: readonly number[], count: number): readonly Range[] {
  const sorted = [...new Set(numbers)].sort((a, b) => a - b);
  const steps = sorted.slice(1).map((number, n) => number - (sorted[n] ?? number));
  // Ranges are parted by the `count - 1` widest steps, and by none from one number to the next.
  const joined = Math.max(1, steps.sort((a, b) => b - a)[count - 1] ?? 1);
  const ranges: [number, number][] = [];
  for (const number of sorted) {
    const last = ranges.at(-1);
    if (last !== undefined && number - last[1] <= joined) last[1] = number;
    else ranges.push([number, number]);
  }
  return ranges;
}
