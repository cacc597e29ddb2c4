/**
 * Owns: what an API hears through NOTIFY: "this conversation has a new revision", live text, and orders.
 * Not here: the facts themselves, which are read from the tables; a lost notification loses nothing durable.
 */
import { COMMITS, LIVE, ORDERS } from "./channels.ts";
import { listenTo, type Listening } from "./listener.ts";
import { type LivePiece, parseLive } from "./live.ts";
import { type Order, parseOrder } from "./orders.ts";

export type CommitNotice =
  | {
      readonly kind: "committed";
      readonly conversationId: string;
      readonly parentId: string | null;
      readonly revision: number;
      readonly lastEvent: number;
    }
  | { readonly kind: "deleted"; readonly conversationId: string; readonly parentId: string | null };

/** Removes the callback. */
export type Unsubscribe = () => void;

export type Notifications = Listening & {
  readonly onCommit: (callback: (notice: CommitNotice) => void) => Unsubscribe;
  readonly onLive: (callback: (conversationId: string, piece: LivePiece) => void) => Unsubscribe;
  readonly onOrder: (callback: (order: Order) => void) => Unsubscribe;
  /** The connection was lost and is back. Notifications in between are lost, so catch up from the tables. */
  readonly onReconnect: (callback: () => void) => Unsubscribe;
};

/** Listens on a connection of its own, which reconnects by itself. Callbacks must not throw. */
export function listen(url: string): Notifications {
  const commits = new Set<(notice: CommitNotice) => void>();
  const lives = new Set<(conversationId: string, piece: LivePiece) => void>();
  const orders = new Set<(order: Order) => void>();
  const reconnects = new Set<() => void>();
  const { ready, close } = listenTo(
    url,
    "bedrock listen",
    {
      [COMMITS]: (payload) => {
        const notice = parseCommit(payload);
        for (const callback of commits) callback(notice);
      },
      [LIVE]: (payload) => {
        const { conversationId, piece } = parseLive(payload);
        for (const callback of lives) callback(conversationId, piece);
      },
      [ORDERS]: (payload) => {
        const order = parseOrder(payload);
        for (const callback of orders) callback(order);
      },
    },
    () => {
      for (const callback of reconnects) callback();
    },
  );
  return {
    onCommit: (callback) => add(commits, callback),
    onLive: (callback) => add(lives, callback),
    onOrder: (callback) => add(orders, callback),
    onReconnect: (callback) => add(reconnects, callback),
    ready,
    close,
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
