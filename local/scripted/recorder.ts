/**
 * Owns: the record of every request that arrived, and promises for later events. Nothing polls: arrivals and ends
 * settle the promises.
 */
import type { IncomingHttpHeaders } from "node:http";
import type { Json, MessagesRequest, Refusal } from "./messages.ts";
import type { CacheUse } from "./usage.ts";
import type { Endpoint } from "./validate.ts";

/** How an exchange ended. `cut`: by a script, or because the server ended. */
export type End = "answered" | "client_closed" | "cut";

export class RecordedRequest {
  /** The API's `request_id`. */
  readonly id: string;
  readonly endpoint: Endpoint;
  /** The name of the script that the request belongs to; null for none. */
  readonly key: string | null;
  /** 1, 2, 3, … among the requests of this endpoint and key. */
  readonly n: number;
  /** Milliseconds of `performance.now()`, when the headers were read. */
  readonly arrivedAt: number;
  readonly headers: IncomingHttpHeaders;
  /** The body as sent, valid or not. */
  readonly json: Json;
  /** Why the server refused it; null if it did not. */
  readonly refusal: Refusal | null;
  /** Use of the prompt cache; null until the request is answered, and for an error. */
  cacheUse: CacheUse | null = null;
  /** Resolves when the response is over or the connection is closed, whichever comes first. */
  readonly ended: Promise<void>;
  #resolveEnded: () => void = () => undefined;
  #end: End | null = null;
  #endedAt: number | null = null;

  constructor(
    facts: Pick<
      RecordedRequest,
      "id" | "endpoint" | "key" | "n" | "arrivedAt" | "headers" | "json" | "refusal"
    >,
  ) {
    this.id = facts.id;
    this.endpoint = facts.endpoint;
    this.key = facts.key;
    this.n = facts.n;
    this.arrivedAt = facts.arrivedAt;
    this.headers = facts.headers;
    this.json = facts.json;
    this.refusal = facts.refusal;
    this.ended = new Promise((resolve) => (this.#resolveEnded = resolve));
  }

  /** The body of a valid request; throws for a refused one. */
  get body(): MessagesRequest {
    if (this.refusal !== null) throw new Error(`The request was refused: ${this.refusal.message}`);
    return this.json as unknown as MessagesRequest;
  }

  /** null while it is under way. */
  get end(): End | null {
    return this.#end;
  }

  /** Milliseconds of `performance.now()`; null while it is under way. */
  get endedAt(): number | null {
    return this.#endedAt;
  }

  /** The client closed the connection before the response was over. */
  get closedByClient(): boolean {
    return this.#end === "client_closed";
  }

  finish(end: End): void {
    this.#end = end;
    this.#endedAt = performance.now();
    this.#resolveEnded();
  }
}

type Waiter = {
  readonly predicate: (request: RecordedRequest) => boolean;
  readonly resolve: (request: RecordedRequest) => void;
  readonly reject: (error: Error) => void;
};

export class Recorder {
  readonly requests: RecordedRequest[] = [];
  readonly #counts = new Map<string, number>();
  readonly #keep: number;
  #waiters: Waiter[] = [];
  #closed = false;

  /** @param keep how many requests are remembered, the latest ones */
  constructor(keep: number) {
    this.#keep = keep;
  }

  /** Counts one more request of an endpoint and key. */
  count(endpoint: Endpoint, key: string | null): number {
    const place = JSON.stringify([endpoint, key]);
    const n = (this.#counts.get(place) ?? 0) + 1;
    this.#counts.set(place, n);
    return n;
  }

  add(request: RecordedRequest): void {
    this.requests.push(request);
    this.#settle();
    if (this.requests.length > this.#keep) this.requests.shift();
    void request.ended.then(() => this.#settle());
  }

  /**
   * The first request, past or future, for which the predicate holds; it is evaluated when a request arrives and when
   * one ends. Rejects when the server ends first.
   */
  waitFor(predicate: (request: RecordedRequest) => boolean): Promise<RecordedRequest> {
    const promise = new Promise<RecordedRequest>((resolve, reject) => {
      this.#waiters.push({ predicate, resolve, reject });
    });
    // A test that fails elsewhere never awaits this promise.
    promise.catch(() => undefined);
    this.#settle();
    return promise;
  }

  close(): void {
    this.#closed = true;
    this.#settle();
  }

  #settle(): void {
    this.#waiters = this.#waiters.filter(({ predicate, resolve, reject }) => {
      const found = this.requests.find(predicate);
      if (found !== undefined) resolve(found);
      else if (this.#closed)
        reject(new Error(`The scripted server ended before the request came. ${this.#summary()}`));
      return found === undefined && !this.#closed;
    });
  }

  #summary(): string {
    const seen = this.requests.map(
      ({ key, n, refusal }) =>
        `${key ?? "no script"} #${n}${refusal === null ? "" : ` (${refusal.message})`}`,
    );
    return seen.length === 0 ? "None came at all." : `These came: ${seen.join(", ")}.`;
  }
}
