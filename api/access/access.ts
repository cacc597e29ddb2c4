/**
 * Owns: who calls. A token is looked up among the digests of the owner's and of the file's tokens; whoever brings none
 * is anonymous. It also counts requests: of each token, of all anonymous callers together, and wrong tokens by address.
 * Not here: which role a route needs (roles.ts), the file (tokens-file.ts), requests that no token is asked for
 * (../guard.ts).
 */
import { timingSafeEqual } from "node:crypto";
import { LRUCache } from "lru-cache";
import { RateLimiterMemory, RateLimiterRes } from "rate-limiter-flexible";
import { ConfigError, type Config } from "../../config.ts";
import { digestOfToken, type Role, type TokenEntry } from "../../protocol/access.ts";
import { Problem } from "../problem.ts";
import { isWritable, readTokensFile, watchTokensFile } from "./tokens-file.ts";

export type Caller = {
  /** Of the token; null: there is none. */
  readonly name: string | null;
  readonly role: Role;
  /** Aborted when the token was removed or has expired: what it has opened ends with it. */
  readonly revoked: AbortSignal;
};

export type Access = {
  /**
   * Whose request this is, which it counts.
   *
   * @param token null: the request has none
   * @param address of the other end of the connection
   * @throws Problem `unauthorized`, `rate_limited`
   */
  admit(token: string | null, address: string): Promise<Caller>;
};

/** The name of API_TOKEN, and of the token that `npm start` makes. */
const OWNER = "owner";

/** Requests a minute: of a token whose entry says nothing. */
const PER_MINUTE = 600;
/** Of the owner's token, which a whole team may share, and of all callers without a token. */
const PER_MINUTE_SHARED = 60_000;
/** Wrong tokens a minute from one address. */
const WRONG_PER_MINUTE = 30;
const WINDOW_S = 60;
/** Addresses with a token that was accepted there, and milliseconds for which it is remembered. */
const PROVEN = { max: 10_000, ttl: 3_600_000 };
/** Milliseconds. A timer of Node reaches no further than 24 days. */
const LONGEST_TIMER = 86_400_000;

type Known = {
  readonly entry: TokenEntry;
  readonly digest: Uint8Array;
  readonly caller: Caller;
  readonly limit: RateLimiterMemory;
  readonly revoke: AbortController;
};

export type AccessOptions = Pick<Config, "ownerTokenDigest" | "apiTokensFile" | "anonymousRole"> & {
  /** Receives a sentence for the log. */
  readonly say: (line: string) => void;
  /** Ends the watching of the file. */
  readonly closing: AbortSignal;
};

/** @throws ConfigError when the file of tokens cannot be used */
export function createAccess(options: AccessOptions): Access {
  const { ownerTokenDigest, apiTokensFile: file, anonymousRole, say, closing } = options;
  const owner: readonly TokenEntry[] =
    ownerTokenDigest === null
      ? []
      : [{ name: OWNER, role: "admin", sha256: ownerTokenDigest, requestsPerMinute: PER_MINUTE_SHARED }];
  const tokens = new Tokens(closing);
  tokens.set([...owner, ...(file === null ? [] : firstTokens(file, say))]);
  if (file !== null) {
    watchTokensFile(file, {
      onTokens: (entries) => tokens.set([...owner, ...entries]),
      onProblem: (sentence) => say(`The tokens stay as they were. API_TOKENS_FILE: ${sentence}`),
      signal: closing,
    });
  }

  const anonymous =
    anonymousRole === null
      ? null
      : { name: null, role: anonymousRole, revoked: new AbortController().signal };
  const anonymousLimit = perMinute(PER_MINUTE_SHARED);
  const wrong = perMinute(WRONG_PER_MINUTE);
  // Where a token was accepted, it stays so while somebody else tries others: all may come through one proxy.
  const proven = new LRUCache<string, true>(PROVEN);

  return {
    async admit(token, address) {
      if (token === null) {
        if (anonymous === null) throw unauthorized();
        await count(anonymousLimit, "", "Requests without a token");
        return anonymous;
      }
      const found = tokens.find(token);
      const place = `${address} ${found?.entry.sha256 ?? ""}`;
      if (found === null || !proven.has(place)) {
        const tried = await wrong.get(address);
        if (tried !== null && tried.consumedPoints >= WRONG_PER_MINUTE)
          throw rateLimited("Wrong tokens from this address", tried.msBeforeNext);
      }
      if (found === null) {
        await wrong.penalty(address);
        throw unauthorized();
      }
      proven.set(place, true);
      await count(found.limit, "", `Requests with the token ${found.entry.name}`);
      return found.caller;
    },
  };
}

function firstTokens(file: string, say: (line: string) => void): readonly TokenEntry[] {
  try {
    const entries = readTokensFile(file);
    if (isWritable(file))
      say(
        `Warning: programs of this user, an agent's commands among them, can write a token into ${file}. Give it to another user.`,
      );
    return entries;
  } catch (error) {
    throw new ConfigError([`API_TOKENS_FILE: ${(error as Error).message}`]);
  }
}

/** The tokens that are good now. */
class Tokens {
  #known: readonly Known[] = [];
  #timer: NodeJS.Timeout | undefined;

  constructor(closing: AbortSignal) {
    closing.addEventListener("abort", () => clearTimeout(this.#timer));
  }

  /** From now on these, and no others. A token that stays keeps its count and what it has opened. */
  set(entries: readonly TokenEntry[]): void {
    const before = this.#known;
    this.#known = entries.map((entry) => {
      const same = before.find((known) => JSON.stringify(known.entry) === JSON.stringify(entry));
      return same ?? newToken(entry);
    });
    for (const known of before) if (!this.#known.includes(known)) known.revoke.abort();
    this.#dropExpired();
  }

  /** All are compared, and each in the same time, so that the time tells nothing of a wrong token. */
  find(token: string): Known | null {
    const digest = Buffer.from(digestOfToken(token), "hex");
    let found: Known | null = null;
    for (const known of this.#known) if (timingSafeEqual(known.digest, digest)) found = known;
    return found !== null && expiryOf(found) > Date.now() ? found : null;
  }

  #dropExpired(): void {
    clearTimeout(this.#timer);
    const now = Date.now();
    for (const known of this.#known) if (expiryOf(known) <= now) known.revoke.abort();
    const next = Math.min(...this.#known.map(expiryOf).filter((at) => at > now));
    if (next !== Infinity)
      this.#timer = setTimeout(() => this.#dropExpired(), Math.min(next - now, LONGEST_TIMER)).unref();
  }
}

function newToken(entry: TokenEntry): Known {
  const revoke = new AbortController();
  return {
    entry,
    digest: Buffer.from(entry.sha256, "hex"),
    caller: { name: entry.name, role: entry.role, revoked: revoke.signal },
    limit: perMinute(entry.requestsPerMinute ?? PER_MINUTE),
    revoke,
  };
}

/** Milliseconds since the epoch. */
const expiryOf = ({ entry: { expires } }: Known): number =>
  expires === undefined ? Infinity : Date.parse(expires);

const perMinute = (points: number): RateLimiterMemory =>
  new RateLimiterMemory({ points, duration: WINDOW_S });

async function count(limit: RateLimiterMemory, key: string, what: string): Promise<void> {
  try {
    await limit.consume(key);
  } catch (error) {
    if (!(error instanceof RateLimiterRes)) throw error;
    throw rateLimited(what, error.msBeforeNext);
  }
}

function rateLimited(what: string, waitMs: number): Problem {
  const seconds = Math.max(1, Math.ceil(waitMs / 1_000));
  return new Problem("rate_limited", `${what} are too many. Nothing was done. Try again in ${seconds} s.`, {
    retryAfter: seconds,
  });
}

/** Who decides, as a workflow takes it. Only the token says it, never the request. */
export const byOf = ({ name }: Caller): { readonly by?: string } => (name === null ? {} : { by: name });

export function unauthorized(): Problem {
  return new Problem("unauthorized", "Send the API token in the header Authorization: Bearer.");
}
