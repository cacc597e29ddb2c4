/**
 * Owns: the fan-out of one LISTEN connection to everything in this process that waits for a conversation.
 * Not here: the events themselves; receivers read them from the tables.
 */
import type { LivePiece } from "../../db/live.ts";
import type { CommitNotice, Notifications, Unsubscribe } from "../../db/notifications.ts";

export type Signal =
  /** Events up to this number are readable. */
  | { readonly kind: "committed"; readonly lastEvent: number }
  | { readonly kind: "deleted" }
  | { readonly kind: "live"; readonly piece: LivePiece }
  /** Notifications may have been lost: look again. */
  | { readonly kind: "reconnected" };

export type Notice = CommitNotice | { readonly kind: "reconnected" };

export type Hub = {
  /** Signals of one conversation. Receivers must not throw. */
  watch(conversationId: string, receive: (signal: Signal) => void): Unsubscribe;
  /** Commits and deletions of all conversations. */
  watchAll(receive: (notice: Notice) => void): Unsubscribe;
  /** Asks for the live text of a conversation from its beginning; all who watch it get it. */
  askAgain(conversationId: string): void;
};

/** Milliseconds. All who miss text of a conversation within this time are served by one question. */
const ASK_EVERY_MS = 200;

/** @param tellAgain asks the workers; may reject when the database cannot be reached. */
export function createHub(
  notifications: Notifications,
  tellAgain: (conversationId: string) => Promise<void>,
): Hub {
  const asked = new Map<string, { again: boolean }>();
  const watchers = new Map<string, Set<(signal: Signal) => void>>();
  const allWatchers = new Set<(notice: Notice) => void>();

  const tell = (conversationId: string, signal: Signal) => {
    for (const receive of watchers.get(conversationId) ?? []) receive(signal);
  };
  const reconnected = () => {
    for (const receivers of watchers.values())
      for (const receive of receivers) receive({ kind: "reconnected" });
    for (const receive of allWatchers) receive({ kind: "reconnected" });
  };

  notifications.onCommit((notice) => {
    const signal: Signal =
      notice.kind === "deleted" ? { kind: "deleted" } : { kind: "committed", lastEvent: notice.lastEvent };
    tell(notice.conversationId, signal);
    for (const receive of allWatchers) receive(notice);
  });
  notifications.onLive((conversationId, piece) => tell(conversationId, { kind: "live", piece }));
  notifications.onReconnect(reconnected);
  // Receivers that subscribed before the first connection have missed the notifications until then.
  void notifications.ready.then(reconnected, () => undefined);

  const ask = (conversationId: string) => {
    const question = { again: false };
    asked.set(conversationId, question);
    // A question that is lost is asked again when text comes that does not follow, or when the connection is back.
    void tellAgain(conversationId).catch(() => undefined);
    setTimeout(() => {
      asked.delete(conversationId);
      if (question.again) ask(conversationId);
    }, ASK_EVERY_MS).unref();
  };

  return {
    askAgain(conversationId) {
      const question = asked.get(conversationId);
      if (question === undefined) ask(conversationId);
      else question.again = true;
    },
    watch(conversationId, receive) {
      const receivers = watchers.get(conversationId) ?? new Set();
      watchers.set(conversationId, receivers.add(receive));
      return () => {
        receivers.delete(receive);
        if (receivers.size === 0 && watchers.get(conversationId) === receivers)
          watchers.delete(conversationId);
      };
    },
    watchAll(receive) {
      allWatchers.add(receive);
      return () => {
        allWatchers.delete(receive);
      };
    },
  };
}
