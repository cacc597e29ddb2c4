/**
 * Owns: short orders to all other processes by NOTIFY. Nothing durable depends on them: workers stop a tool sooner than
 * by Temporal, or tell live text again; an API changes what one of its streams carries.
 */
import type { ToolToStop } from "../protocol/activities.ts";
import { ORDERS } from "./channels.ts";
import type { Database } from "./connect.ts";
import { listenTo, type Listening } from "./listener.ts";

export type Order =
  | { readonly kind: "stop_tools"; readonly tools: readonly ToolToStop[] }
  /** Publish the live text of this conversation from its beginning: somebody has missed it. */
  | { readonly kind: "tell_again"; readonly conversationId: string }
  | StreamOrder;

/** A conversation to open in a stream; without a cursor it begins with a snapshot. */
export type Opening = { readonly id: string; readonly cursor: string | null };
export type StreamChange = { readonly open: readonly Opening[]; readonly close: readonly string[] };
/** To the API that has the stream, and its answer. */
export type StreamOrder =
  | ({ readonly kind: "change_stream"; readonly nonce: string; readonly streamId: string } & StreamChange)
  | { readonly kind: "stream_changed"; readonly nonce: string };

/** Rejects when the database cannot be reached. */
export async function sendOrder(db: Database, order: Order): Promise<void> {
  await db.sql.notify(ORDERS, JSON.stringify(order));
}

// Only `sendOrder` writes to this channel.
export const parseOrder = (payload: string): Order => JSON.parse(payload) as Order;

/** @param onReconnect orders may have been lost. Both callbacks must not throw. */
export function listenForOrders(
  url: string,
  onOrder: (order: Order) => void,
  onReconnect: () => void,
): Listening {
  return listenTo(
    url,
    "bedrock worker listen",
    { [ORDERS]: (payload) => onOrder(parseOrder(payload)) },
    onReconnect,
  );
}
