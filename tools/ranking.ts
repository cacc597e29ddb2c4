/** Owns: which of the files, and which of their lines, say most about some terms. Pure. */

/** For each term, in the order of the terms, how many lines of each file have it. */
export type Counts = readonly ReadonlyMap<string, number>[];

export type RankedFile = {
  readonly path: string;
  readonly score: number;
  /** For each term, how many lines have it; 0 if none. */
  readonly counts: readonly number[];
};

/** How much each term says: the fewer files have it, the more. More than 0 for each term that is found at all. */
export function weigh(counts: Counts): number[] {
  const files = new Set(counts.flatMap((files) => [...files.keys()])).size;
  return counts.map(({ size }) => (size === 0 ? 0 : Math.log(1 + files / size)));
}

/**
 * Sorts the best file first, and equals by their paths. A term counts by its weight. Another line with the same term
 * never counts as much as another term of the same weight. A term in the file's name counts, too.
 */
export function rankFiles(terms: readonly string[], counts: Counts): RankedFile[] {
  const weights = weigh(counts);
  const paths = new Set(counts.flatMap((files) => [...files.keys()]));
  const ranked = [...paths].map((path): RankedFile => {
    const name = path.slice(path.lastIndexOf("/") + 1).toLowerCase();
    const lines = counts.map((files) => files.get(path) ?? 0);
    const score = weights.reduce((sum, weight, term) => {
      const found = lines[term] ?? 0;
      const inText = found === 0 ? 0 : 1 - 1 / (found + 1);
      return sum + weight * (inText + (name.includes((terms[term] ?? "").toLowerCase()) ? 0.5 : 0));
    }, 0);
    return { path, score, counts: lines };
  });
  return ranked.sort((a, b) => b.score - a.score || (a.path < b.path ? -1 : 1));
}

export type Line = { readonly number: number; readonly text: string };

/** Chooses lines one by one: each time the line with the most weight in terms that were not seen yet. */
export function bestLines<L extends Line>(
  terms: readonly string[],
  weights: readonly number[],
  lines: readonly L[],
  limit: number,
): L[] {
  const candidates = lines.map((line) => {
    const text = line.text.toLowerCase();
    return { line, terms: terms.flatMap((term, n) => (text.includes(term.toLowerCase()) ? [n] : [])) };
  });
  const seen = new Set<number>();
  const chosen: L[] = [];
  while (chosen.length < limit && candidates.length > 0) {
    const scores = candidates.map(({ terms }) =>
      terms.reduce((sum, term) => sum + (weights[term] ?? 0) * (seen.has(term) ? 0.1 : 1), 0),
    );
    const best = scores.reduce((best, score, n) => (score > (scores[best] ?? 0) ? n : best), 0);
    for (const { line, terms } of candidates.splice(best, 1)) {
      chosen.push(line);
      for (const term of terms) seen.add(term);
    }
  }
  return chosen.sort((a, b) => a.number - b.number);
}
