/**
 * Owns: what travels between processes through NOTIFY: "this conversation has a new step" and live text.
 * Not here: the facts themselves, which are read from the tables; a lost notification loses nothing durable.
 */
import type { Database } from "./connect.ts";

export type CommitNotice =
  | {
      readonly kind: "committed";
      readonly conversationId: string;
      readonly parentId: string | null;
      readonly step: number;
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
  /** The connection was lost and is back: what was said in between is lost, so catch up from the tables. */
  onReconnect(callback: () => void): Unsubscribe;
  /** Resolves when both channels are listened to for the first time; waits as long as the database is down. */
  readonly ready: Promise<void>;
  close(): Promise<void>;
};

/** Listens on a connection of its own, which reconnects by itself. */
export function listen(url: string): Notifications {
  throw new Error("todo");
}

/**
 * Tells all listeners at once. Text that does not fit into one notification (7,900 bytes) goes out as several.
 * Await one call before the next: only then do they arrive in order.
 */
export async function publishLive(db: Database, conversationId: string, event: LiveEvent): Promise<void> {
  throw new Error("todo");
}
