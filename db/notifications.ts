/**
 * Owns: what travels between processes through NOTIFY: "this conversation has a new revision" and live text.
 * Not here: the facts themselves, which are read from the tables; a lost notification loses nothing durable.
 */
import { COMMITS, LIVE } from "./channels.ts";
import { type Database, openClient } from "./connect.ts";

export type CommitNotice =
  | {
      readonly kind: "committed";
      readonly conversationId: string;
      readonly parentId: string | null;
      readonly revision: number;
      readonly lastEvent: number;
    }
  | { readonly kind: "deleted"; readonly conversationId: string; readonly parentId: string | null };

/** Live only, never stored (docs/http.md, Events). */
export type LiveEvent =
  | {
      readonly name: "text.delta" | "thinking.delta";
      readonly data: { readonly requestId: string; readonly index: number; readonly text: string };
    }
  | {
      readonly name: "tool.output";
      readonly data: {
        readonly toolCallId: string;
        readonly stream: "stdout" | "stderr";
        readonly text: string;
      };
    };

/** Removes the callback. */
export type Unsubscribe = () => void;

export type Notifications = {
  onCommit(callback: (notice: CommitNotice) => void): Unsubscribe;
  onLive(callback: (conversationId: string, event: LiveEvent) => void): Unsubscribe;
  /** The connection was lost and is back. Notifications in between are lost, so catch up from the tables. */
  onReconnect(callback: () => void): Unsubscribe;
  /** Resolves when both channels are listened to for the first time; waits as long as the database is down. */
  readonly ready: Promise<void>;
  close(): Promise<void>;
};

/** Listens on a connection of its own, which reconnects by itself. Callbacks must not throw. */
export function listen(url: string): Notifications {
  const client = openClient(url, "bedrock listen");
  const commits = new Set<(notice: CommitNotice) => void>();
  const lives = new Set<(conversationId: string, event: LiveEvent) => void>();
  const reconnects = new Set<() => void>();

  const subscribe = (channel: string, onPayload: (payload: string) => void) =>
    new Promise<void>((resolve) => {
      let connections = 0;
      const onListening = () => {
        connections += 1;
        resolve();
        // Each channel comes back by itself, so a callback may run twice. A second catch-up is harmless.
        if (connections > 1) for (const callback of reconnects) callback();
      };
      // If the first attempt fails, this promise rejects, but the driver repeats the attempt until it succeeds.
      client.listen(channel, onPayload, onListening).catch(() => undefined);
    });

  const ready = Promise.all([
    subscribe(COMMITS, (payload) => {
      const notice = parseCommit(payload);
      for (const callback of commits) callback(notice);
    }),
    subscribe(LIVE, (payload) => {
      const { c, ...event } = JSON.parse(payload) as LiveEvent & { c: string };
      for (const callback of lives) callback(c, event);
    }),
  ]);

  return {
    onCommit: (callback) => add(commits, callback),
    onLive: (callback) => add(lives, callback),
    onReconnect: (callback) => add(reconnects, callback),
    ready: ready.then(() => undefined),
    close: () => client.end({ timeout: 1 }),
  };
}

function add<T>(set: Set<T>, item: T): Unsubscribe {
  set.add(item);
  return () => {
    set.delete(item);
  };
}

/** The payload that commit_revisions, setTitle and deleteConversation write. */
type CommitPayload = { c: string; parent: string | null } & ({ s: number; e: number } | { deleted: true });

function parseCommit(payload: string): CommitNotice {
  const parsed = JSON.parse(payload) as CommitPayload;
  const ids = { conversationId: parsed.c, parentId: parsed.parent };
  return "deleted" in parsed
    ? { kind: "deleted", ...ids }
    : { kind: "committed", ...ids, revision: parsed.s, lastEvent: parsed.e };
}

/** Bytes. Postgres refuses payloads of 8,000 bytes. */
const PAYLOAD_LIMIT = 7_900;

/**
 * Notifies all listeners at once and stores nothing. Text that does not fit into one notification goes out as several.
 * Await one call before the next: only then do they arrive in order.
 */
export async function publishLive(db: Database, conversationId: string, event: LiveEvent): Promise<void> {
  // One statement each: Postgres drops repeated payloads within a transaction, and pieces may be alike.
  for (const payload of payloadsOf(conversationId, event)) await db.sql.notify(LIVE, payload);
}

function payloadsOf(conversationId: string, event: LiveEvent): string[] {
  const payload = JSON.stringify({ c: conversationId, ...event });
  const { text } = event.data;
  if (Buffer.byteLength(payload) <= PAYLOAD_LIMIT || text.length < 2) return [payload];
  const middle = text.length >> 1;
  const torn = text.charCodeAt(middle - 1) >> 10 === HIGH_SURROGATE;
  const cut = torn ? middle + 1 : middle;
  return [text.slice(0, cut), text.slice(cut)].flatMap((piece) =>
    payloadsOf(conversationId, withText(event, piece)),
  );
}

/** The upper six bits of U+D800 to U+DBFF. */
const HIGH_SURROGATE = 0xd800 >> 10;

function withText(event: LiveEvent, text: string): LiveEvent {
  return event.name === "tool.output"
    ? { name: event.name, data: { ...event.data, text } }
    : { name: event.name, data: { ...event.data, text } };
}
