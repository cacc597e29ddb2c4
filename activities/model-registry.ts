/**
 * Owns: what this worker knows of models, kept up to date. It starts with the built-in models and the person's file.
 * Then it reads the list that was stored last, and fetches the provider's list, which it stores for the other workers.
 */
import type { Database } from "../db/connect.ts";
import { readProviderModels, storeProviderModels } from "../db/models.ts";
import type { ProviderClient } from "../llm/client.ts";
import { withoutKeys } from "../llm/errors.ts";
import { readFacts } from "../llm/model-facts.ts";
import { type ModelFacts, Models } from "../llm/models.ts";
import { fetchModels } from "../llm/provider-models.ts";

const FRESH_MS = 24 * 60 * 60 * 1000;
/** The pause after the provider could not be reached; doubled each time, up to `LONGEST_AGAIN_MS`. */
const AGAIN_MS = 5_000;
const LONGEST_AGAIN_MS = 10 * 60 * 1000;
const FETCH_LIMIT_MS = 30_000;
/** How long a start waits for a list of models: conversations are counted by it. */
const START_TIMEOUT_MS = 2_000;

export type ModelRegistryOptions = {
  readonly db: Database;
  readonly client: ProviderClient;
  readonly file: readonly ModelFacts[];
  readonly scripted: boolean;
  /** Called with one sentence when a list cannot be fetched, read or stored. */
  readonly warn: (sentence: string) => void;
};

export class ModelRegistry {
  readonly #options: ModelRegistryOptions;
  readonly #ended = new AbortController();
  #current: Models;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: ModelRegistryOptions) {
    this.#options = options;
    this.#current = this.#with(null);
  }

  get current(): Models {
    return this.#current;
  }

  /**
   * Reads the stored list and fetches the provider's, now and every day. Resolves as soon as a list is known or cannot
   * be had, at the latest after two seconds. The scripted model needs no list.
   */
  async start(): Promise<void> {
    if (this.#options.scripted) return;
    const isKnown = this.#recall();
    const asked = this.#keepFresh(AGAIN_MS, isKnown);
    let timer: NodeJS.Timeout | undefined;
    const timeout = new Promise<void>((resolve) => (timer = setTimeout(resolve, START_TIMEOUT_MS)));
    await Promise.race([isKnown.then((known) => (known ? undefined : asked)), timeout]);
    clearTimeout(timer);
  }

  stop(): void {
    this.#ended.abort();
    clearTimeout(this.#timer);
  }

  async #keepFresh(again: number, recalled: Promise<unknown>): Promise<void> {
    // The fetched list is newer than the stored one, so it is taken last.
    const [learned] = await Promise.all([this.#fetch(), recalled]);
    if (learned !== null) this.#current = this.#with(learned);
    if (this.#ended.signal.aborted) return;
    const next = (): void =>
      void this.#keepFresh(
        learned === null ? Math.min(again * 2, LONGEST_AGAIN_MS) : AGAIN_MS,
        Promise.resolve(),
      );
    this.#timer = setTimeout(next, learned === null ? again : FRESH_MS).unref();
    if (learned !== null) await this.#store(learned);
  }

  /** Returns whether there is a stored list. Never rejects. */
  async #recall(): Promise<boolean> {
    try {
      const stored = readFacts(await readProviderModels(this.#options.db));
      if (stored.length > 0) this.#current = this.#with(stored);
      return stored.length > 0;
    } catch (error) {
      this.#warn("The stored list of models could not be read", error);
      return false;
    }
  }

  /** null: the list cannot be fetched now. Never rejects. */
  async #fetch(): Promise<readonly ModelFacts[] | null> {
    // Not AbortSignal.timeout: AbortSignal.any does not keep its timer alive (nodejs/node#54614).
    const limit = new AbortController();
    const timer = setTimeout(() => limit.abort(), FETCH_LIMIT_MS);
    try {
      const signal = AbortSignal.any([this.#ended.signal, limit.signal]);
      const provided = await fetchModels(this.#options.client, signal);
      return provided.length === 0 ? null : provided;
    } catch (error) {
      this.#warn("The provider's list of models could not be had; what is known is used", error);
      return null;
    } finally {
      clearTimeout(timer);
    }
  }

  async #store(list: readonly ModelFacts[]): Promise<void> {
    try {
      await storeProviderModels(this.#options.db, list);
    } catch (error) {
      this.#warn("The provider's list of models could not be stored", error);
    }
  }

  #warn(what: string, error: unknown): void {
    if (this.#ended.signal.aborted) return;
    const reason = withoutKeys(
      error instanceof Error ? error.message : String(error),
      this.#options.client.apiKey,
    );
    this.#options.warn(`${what}. (${reason.split("\n")[0]?.slice(0, 200) ?? ""})`);
  }

  #with(provided: readonly ModelFacts[] | null): Models {
    const { file, scripted } = this.#options;
    return new Models({ provided, file, scripted });
  }
}
