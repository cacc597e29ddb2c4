/**
 * Owns: what this worker knows of models, kept up to date: from the start what is built in and the person's file, then
 * what was stored last, then what the provider says, which is stored for the others.
 */
import type { Database } from "../db/connect.ts";
import { readProviderModels, storeProviderModels } from "../db/models.ts";
import type { ProviderClient } from "../llm/client.ts";
import { readFacts } from "../llm/model-facts.ts";
import { type ModelFacts, Models } from "../llm/models.ts";
import { fetchModels } from "../llm/provider-models.ts";

const FRESH_MS = 24 * 60 * 60 * 1000;
/** When the provider or the database could not be reached. */
const AGAIN_MS = 10 * 60 * 1000;
const FETCH_LIMIT_MS = 30_000;

export type KnownModelsOptions = {
  readonly db: Database;
  readonly client: ProviderClient;
  readonly file: readonly ModelFacts[];
  readonly scripted: boolean;
  /** Told one sentence when the provider's list cannot be had. */
  readonly warn: (sentence: string) => void;
};

export class KnownModels {
  readonly #options: KnownModelsOptions;
  readonly #ended = new AbortController();
  #current: Models;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: KnownModelsOptions) {
    this.#options = options;
    this.#current = this.#with(null);
  }

  get current(): Models {
    return this.#current;
  }

  /** Learns in the background what there is to learn, now and every day. The scripted model has nothing to tell. */
  start(): void {
    if (!this.#options.scripted) void this.#keepFresh();
  }

  stop(): void {
    this.#ended.abort();
    clearTimeout(this.#timer);
  }

  async #keepFresh(): Promise<void> {
    const learned = await this.#learn();
    if (this.#ended.signal.aborted) return;
    this.#timer = setTimeout(() => void this.#keepFresh(), learned ? FRESH_MS : AGAIN_MS).unref();
  }

  /** Whether the provider's own list is known now. Never rejects. */
  async #learn(): Promise<boolean> {
    const { db, client, warn } = this.#options;
    const signal = AbortSignal.any([this.#ended.signal, AbortSignal.timeout(FETCH_LIMIT_MS)]);
    try {
      const stored = readFacts(await readProviderModels(db));
      if (stored.length > 0) this.#current = this.#with(stored);
      const provided = await fetchModels(client, signal);
      if (provided.length === 0) return false;
      this.#current = this.#with(provided);
      await storeProviderModels(db, provided);
      return true;
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      if (!this.#ended.signal.aborted) {
        warn(`The provider's list of models could not be had; what is known is used. (${reason})`);
      }
      return false;
    }
  }

  #with(provided: readonly ModelFacts[] | null): Models {
    const { file, scripted } = this.#options;
    return new Models({ provided, file, scripted });
  }
}
