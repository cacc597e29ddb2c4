/**
 * Owns: how many tokens a request has (an estimate: four bytes of JSON a token), and how many of them come from the
 * prompt cache. The cache is modelled as the API documents it. A prefix of tools, system and messages that ends at a
 * breakpoint is kept for the breakpoint's time to live, per model. A request reads the longest prefix that is in the
 * cache, looking back at most 20 blocks from each of its breakpoints.
 * Not here: how the counts are reported (steps.ts).
 */
import { createHash } from "node:crypto";
import { readImageHeader } from "./images.ts";
import type { BlockParam, CacheControl, MessagesRequest, Usage } from "./messages.ts";

const BYTES_PER_TOKEN = 4;
const PIXELS_PER_TOKEN = 750;
const LOOK_BACK_BLOCKS = 20;
const LIFETIME_MS = 300_000;
const LONG_LIFETIME_MS = 3_600_000;
/** From this many prefixes on, expired ones are removed. */
const MANY_ENTRIES = 10_000;
/** The shortest prefix that is cached, in tokens. */
export const MIN_CACHED_TOKENS = 1024;

export const estimateTokens = (text: string): number => Math.ceil(Buffer.byteLength(text) / BYTES_PER_TOKEN);

/** Tokens of tools, system prompt and messages together. */
export function countTokens(request: MessagesRequest): number {
  return promptParts(request).reduce((sum, part) => sum + part.tokens, 0);
}

type Part = { readonly json: string; readonly tokens: number; readonly breakpoint: CacheControl | null };

/** The request in cache order, one part a tool or block. */
function promptParts(request: MessagesRequest): Part[] {
  const system = typeof request.system === "string" ? [textBlock(request.system)] : (request.system ?? []);
  const parts = [
    ...(request.tools ?? []).map((tool) => part("tool", tool)),
    ...system.map((block) => part("system", block)),
    ...request.messages.flatMap(({ role, content }) =>
      (typeof content === "string" ? [textBlock(content)] : content).map((block) => part(role, block)),
    ),
  ];
  const last = parts.at(-1);
  if (request.cache_control && last !== undefined)
    parts[parts.length - 1] = { ...last, breakpoint: last.breakpoint ?? request.cache_control };
  return parts;
}

const textBlock = (text: string): BlockParam => ({ type: "text", text });

function part(place: string, value: { readonly cache_control?: CacheControl | null } | BlockParam): Part {
  let pixels = 0;
  let breakpoint = ("cache_control" in value ? value.cache_control : null) ?? null;
  const json = JSON.stringify(value, (key, inner: unknown) => {
    if (key === "cache_control") {
      // A breakpoint inside a tool result ends the prefix at the result.
      breakpoint ??= inner as CacheControl | null;
      return undefined;
    }
    if (!isBase64Source(inner)) return inner;
    const header = readImageHeader(Buffer.from(inner.data, "base64"));
    pixels += header === null ? 0 : header.width * header.height;
    return createHash("sha256").update(inner.data).digest("hex");
  });
  const tokens = estimateTokens(json) + Math.ceil(pixels / PIXELS_PER_TOKEN);
  return { json: `${place}\n${json}`, tokens, breakpoint };
}

function isBase64Source(value: unknown): value is { data: string } {
  return typeof value === "object" && value !== null && "media_type" in value && "data" in value;
}

/** Tokens that a request read from the cache, and that it could have read with the best choice of breakpoints. */
export type CacheUse = { readonly read: number; readonly possible: number };

/** The share that these requests read of all that they could have read from the cache; 1 if there was nothing. */
export function hitRatio(uses: readonly CacheUse[]): number {
  const sum = (of: (use: CacheUse) => number): number => uses.reduce((total, use) => total + of(use), 0);
  const possible = sum((use) => use.possible);
  return possible === 0 ? 1 : sum((use) => use.read) / possible;
}

type Entry = { readonly expiresAt: number; readonly lifetime: number };

/** One for each server. Times are milliseconds of a monotonic clock. */
export class PromptCache {
  readonly #entries = new Map<string, Entry>();
  /** Every prefix of every request, breakpoint or not, and until when it could have been in the cache. */
  readonly #seen = new Map<string, number>();
  readonly #now: () => number;

  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /** The input side of the usage of a request, which is in the cache afterwards; `output_tokens` is 0. */
  read(request: MessagesRequest): { readonly usage: Usage; readonly use: CacheUse } {
    const prefixes = this.#prefixes(request);
    const possible = this.#longestSeen(prefixes);
    const breakpoints = [...prefixes.entries()].filter(([, { breakpoint }]) => breakpoint !== null);
    const hit = this.#longestHit(prefixes, breakpoints);
    let cached = 0;
    for (const [, prefix] of breakpoints) {
      if (prefix.tokens < MIN_CACHED_TOKENS) continue;
      cached = prefix.tokens;
      this.#keep(prefix.hash, prefix.breakpoint?.ttl === "1h" ? LONG_LIFETIME_MS : LIFETIME_MS);
    }
    const read = Math.min(hit, cached);
    const usage = {
      input_tokens: (prefixes.at(-1)?.tokens ?? 0) - cached,
      cache_creation_input_tokens: cached - read,
      cache_read_input_tokens: read,
      output_tokens: 0,
    };
    return { usage, use: { read, possible } };
  }

  /** Tokens of the longest prefix that an earlier request had, too. Afterwards the request's own prefixes are known. */
  #longestSeen(prefixes: readonly { hash: string; tokens: number }[]): number {
    const now = this.#now();
    const seen = prefixes.filter(({ hash }) => (this.#seen.get(hash) ?? 0) > now).at(-1)?.tokens ?? 0;
    if (this.#seen.size > MANY_ENTRIES)
      for (const [old, expiresAt] of this.#seen) if (expiresAt <= now) this.#seen.delete(old);
    for (const { hash } of prefixes) this.#seen.set(hash, now + LIFETIME_MS);
    return seen < MIN_CACHED_TOKENS ? 0 : seen;
  }

  #prefixes(request: MessagesRequest): { hash: string; tokens: number; breakpoint: CacheControl | null }[] {
    let hash = request.model;
    let tokens = 0;
    return promptParts(request).map((part) => {
      hash = createHash("sha256").update(hash).update(part.json).digest("hex");
      tokens += part.tokens;
      return { hash, tokens, breakpoint: part.breakpoint };
    });
  }

  /** Tokens of the longest prefix that is in the cache; a hit renews its lifetime. */
  #longestHit(
    prefixes: readonly { hash: string; tokens: number }[],
    breakpoints: readonly (readonly [number, unknown])[],
  ): number {
    for (const [end] of breakpoints.toReversed()) {
      for (let i = end; i >= 0 && i > end - LOOK_BACK_BLOCKS; i -= 1) {
        const prefix = prefixes[i];
        const entry = prefix && this.#entries.get(prefix.hash);
        if (prefix === undefined || entry === undefined || entry.expiresAt <= this.#now()) continue;
        this.#keep(prefix.hash, entry.lifetime);
        return prefix.tokens;
      }
    }
    return 0;
  }

  #keep(hash: string, lifetime: number): void {
    if (this.#entries.size > MANY_ENTRIES)
      for (const [old, { expiresAt }] of this.#entries)
        if (expiresAt <= this.#now()) this.#entries.delete(old);
    this.#entries.set(hash, { expiresAt: this.#now() + lifetime, lifetime });
  }
}
