/**
 * Owns: which chunks of a run one client gets next. It may begin after the first n, which it has. When a request is
 * tried again, the client has chunks of an answer that is no part of the run. The protocol takes nothing back: that text
 * is ended with a remark, and what follows comes in fewer chunks, until the client has as many as the run again. Pure but
 * for what it remembers.
 */
import type { Chunk, Chunks } from "./chunks.ts";

type Delta = Extract<Chunk, { readonly delta: string }>;

export class Progress {
  /** Chunks that the client has got: what it counts. */
  #got: number;
  /** Chunks of the run that it has. */
  #has: number;
  /** The chunks of stored messages, when the client got what is beyond them. */
  #stored = 0;
  /** The last chunk that it got of an answer that is not stored. */
  #live: Chunk | null = null;

  /** @param has chunks that the client has already */
  constructor(has: number) {
    this.#got = has;
    this.#has = has;
  }

  /** What the client gets now. */
  next({ chunks, stored, isEnded }: Chunks): readonly Chunk[] {
    const ends = this.#endDropped(chunks);
    const isUrgent = isEnded || stored > this.#stored;
    const more = this.#fitted(chunks.slice(this.#has), chunks.length, isUrgent);
    this.#got += more.length;
    if (more.length > 0) this.#has = chunks.length;
    this.#stored = stored;
    this.#live = this.#has > stored ? (chunks[this.#has - 1] ?? null) : null;
    return [...ends, ...more];
  }

  /** Ends what the client has of an answer that is not the run's any more. */
  #endDropped(chunks: readonly Chunk[]): readonly Chunk[] {
    if (this.#live === null || isSame(this.#live, chunks[this.#has - 1])) return [];
    const text = "The answer broke off here. The model is asked again.";
    const remark: Chunk = { type: "data-note", id: `dropped.${this.#got}`, data: { text } };
    const ends = [...endOf(this.#live), remark];
    this.#has = this.#stored;
    this.#got += ends.length;
    return ends;
  }

  /**
   * As many chunks as the client lacks by its own count. Nothing yet, if the text is too short for that and more of it
   * will come.
   */
  #fitted(more: readonly Chunk[], total: number, isUrgent: boolean): readonly Chunk[] {
    const wanted = Math.max(0, total - this.#got);
    if (more.length <= wanted) return more;
    const merged = mergeDeltas(more, wanted);
    return merged.length <= wanted || isUrgent ? merged : [];
  }
}

/** Joins adjacent pieces of a text, until there are no more chunks than wanted. */
function mergeDeltas(chunks: readonly Chunk[], wanted: number): readonly Chunk[] {
  const merged: Chunk[] = [];
  let surplus = chunks.length - wanted;
  for (const chunk of chunks) {
    const last = merged.at(-1);
    if (surplus > 0 && isDelta(chunk) && last !== undefined && isDelta(last) && last.id === chunk.id) {
      merged[merged.length - 1] = { ...last, delta: last.delta + chunk.delta };
      surplus--;
    } else merged.push(chunk);
  }
  return merged;
}

const isDelta = (chunk: Chunk): chunk is Delta => "delta" in chunk;

/** What ends the text that a chunk leaves open. */
function endOf(chunk: Chunk): readonly Chunk[] {
  if (chunk.type === "text-start" || chunk.type === "text-delta") return [{ type: "text-end", id: chunk.id }];
  if (chunk.type === "reasoning-start" || chunk.type === "reasoning-delta")
    return [{ type: "reasoning-end", id: chunk.id }];
  return [];
}

const isSame = (one: Chunk, other: Chunk | undefined): boolean =>
  JSON.stringify(one) === JSON.stringify(other);
