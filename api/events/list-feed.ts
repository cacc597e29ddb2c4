/**
 * Owns: the fields that a list of conversations shows, as they change, for all clients of this process (docs/http.md,
 * "Events"). One reader serves all. If a conversation changes quickly, it sends only the values at the time of each
 * read. A client that comes back with a cursor gets what it has missed.
 */
import { isUnavailable } from "../../db/errors.ts";
import { listChanges, listCursor, listed, type Listed } from "../../db/list-changes.ts";
import type { Unsubscribe } from "../../db/notifications.ts";
import type { ConversationView } from "../../db/views.ts";
import type { Deps } from "../deps.ts";
import type { Notice } from "./hub.ts";

export type ListEvent = {
  readonly name: "conversation.changed" | "state.changed" | "conversation.deleted" | "synced" | "resync";
  readonly data: object;
  /** With it, a client that comes back gets what came later. */
  readonly cursor: string;
};

/** Receives events in order; must not throw. */
type Receive = (event: ListEvent) => void;

/** Conversations whose last facts are remembered; a forgotten one is sent in full again. */
const REMEMBERED = 10_000;
/** Milliseconds. */
const RETRY_MS = 500;
const ADVANCE_MS = 5_000;

type Facts = { readonly facts: string; readonly state: string };

export class ListFeed {
  readonly #deps: Pick<Deps, "db" | "hub" | "report">;
  readonly #clients = new Set<Receive>();
  readonly #told = new Map<string, Facts>();
  readonly #changed = new Set<string>();
  /** Everything that was committed before it has been sent. */
  #cursor = "";
  #unwatch: Unsubscribe | null = null;
  #isReading = false;
  #mustAdvance = false;
  #advancing: NodeJS.Timeout | null = null;

  constructor(deps: Pick<Deps, "db" | "hub" | "report">) {
    this.#deps = deps;
  }

  /**
   * Adds a client. What it has missed comes first, then `synced`, then changes as they come. Without a cursor it reads
   * the list itself after `synced`; with one that is not known any more, after `resync`.
   *
   * @returns a function that removes the client.
   */
  async open(cursor: string | null, receive: Receive): Promise<Unsubscribe> {
    // Facts that come while the earlier ones are read must follow them.
    const waiting: ListEvent[] = [];
    let isReady = false;
    const client: Receive = (event) => {
      if (isReady) receive(event);
      else waiting.push(event);
    };
    this.#clients.add(client);
    this.#unwatch ??= this.#deps.hub.watchAll((notice) => this.#receive(notice));
    try {
      const missed = cursor === null ? null : await listChanges(this.#deps.db, cursor);
      const now = missed?.cursor ?? (await listCursor(this.#deps.db));
      if (this.#cursor === "") this.#cursor = now;
      if (cursor !== null && missed === null) receive({ name: "resync", data: {}, cursor: now });
      for (const id of missed?.removed ?? []) receive(deletion(id, now));
      for (const found of missed?.changed ?? [])
        for (const event of eventsOf(found, null, now)) receive(event);
      receive({ name: "synced", data: { lastEvent: null }, cursor: now });
      isReady = true;
      for (const event of waiting) receive(event);
    } catch (error) {
      this.#remove(client);
      throw error;
    }
    return () => this.#remove(client);
  }

  #remove(client: Receive): void {
    this.#clients.delete(client);
    if (this.#clients.size > 0) return;
    this.#unwatch?.();
    this.#unwatch = null;
    this.#changed.clear();
    this.#told.clear();
    this.#cursor = "";
  }

  #receive(notice: Notice): void {
    if (notice.kind === "reconnected") this.#mustAdvance = true;
    else if (notice.parentId !== null) return;
    else if (notice.kind === "deleted") {
      this.#changed.delete(notice.conversationId);
      this.#told.delete(notice.conversationId);
      this.#send(deletion(notice.conversationId, this.#cursor));
    } else this.#changed.add(notice.conversationId);
    this.#advancing ??= setTimeout(() => {
      this.#advancing = null;
      this.#mustAdvance = true;
      void this.#read();
    }, ADVANCE_MS).unref();
    void this.#read();
  }

  async #read(): Promise<void> {
    if (this.#isReading) return;
    this.#isReading = true;
    while (this.#clients.size > 0 && (this.#mustAdvance || this.#changed.size > 0)) {
      try {
        if (this.#mustAdvance) await this.#advance();
        for (const id of this.#changed) {
          this.#changed.delete(id);
          const found = await listed(this.#deps.db, id);
          if (found !== null) this.#tell(found);
        }
      } catch (error) {
        if (!isUnavailable(error)) this.#deps.report("list feed", error);
        await new Promise((resolve) => setTimeout(resolve, RETRY_MS).unref());
        this.#mustAdvance = true;
      }
    }
    this.#isReading = false;
  }

  /** Reads what was committed since the cursor, whatever notifications said, and moves the cursor. */
  async #advance(): Promise<void> {
    this.#mustAdvance = false;
    if (this.#cursor === "") return;
    const changes = await listChanges(this.#deps.db, this.#cursor);
    this.#cursor = changes?.cursor ?? (await listCursor(this.#deps.db));
    if (changes === null) {
      this.#told.clear();
      this.#send({ name: "resync", data: {}, cursor: this.#cursor });
      return;
    }
    const there = new Set(changes.changed.map(({ view }) => view.id));
    for (const id of changes.removed)
      if (this.#told.delete(id) || !there.has(id)) this.#send(deletion(id, this.#cursor));
    for (const found of changes.changed) this.#tell(found);
  }

  #tell(found: Listed): void {
    const { view } = found;
    for (const event of eventsOf(found, this.#told.get(view.id) ?? null, this.#cursor)) this.#send(event);
    this.#told.delete(view.id);
    this.#told.set(view.id, factsOf(view));
    const [oldest] = this.#told.keys();
    if (this.#told.size > REMEMBERED && oldest !== undefined) this.#told.delete(oldest);
  }

  #send(event: ListEvent): void {
    for (const receive of this.#clients) receive(event);
  }
}

const deletion = (id: string, cursor: string): ListEvent => ({
  name: "conversation.deleted",
  data: { id },
  cursor,
});

/** @param last as the client knows it */
function eventsOf({ view, cycleId }: Listed, last: Facts | null, cursor: string): readonly ListEvent[] {
  const now = factsOf(view);
  const { id, state } = view;
  const events: ListEvent[] = [];
  if (last?.facts !== now.facts) {
    const data = { ...shownOf(view), updatedAt: view.updatedAt };
    events.push({ name: "conversation.changed", data, cursor });
  }
  if (last?.state !== now.state) events.push({ name: "state.changed", data: { id, state, cycleId }, cursor });
  return events;
}

const factsOf = (view: ConversationView): Facts => ({
  facts: JSON.stringify(shownOf(view)),
  state: JSON.stringify(view.state),
});

function shownOf(view: ConversationView) {
  const { id, slug, title, cwd, host, model, scripted, mode, archived, continuedFrom, createdAt } = view;
  return { id, slug, title, cwd, host, model, scripted, mode, archived, continuedFrom, createdAt };
}
