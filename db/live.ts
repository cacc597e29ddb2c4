/**
 * Owns: live text on its way from a worker to the APIs by NOTIFY. It is never stored. Each piece says where it belongs,
 * so that a receiver sees a gap, and can ask the worker to tell it again (orders.ts).
 */
import { LIVE } from "./channels.ts";
import type { Database } from "./connect.ts";

/** Offsets count UTF-16 code units from the beginning of the block, or of the stream. */
export type LiveEvent =
  | {
      readonly name: "text.delta" | "thinking.delta";
      readonly data: {
        readonly requestId: string;
        readonly index: number;
        readonly offset: number;
        readonly text: string;
      };
    }
  | {
      readonly name: "tool.output";
      readonly data: {
        readonly toolCallId: string;
        readonly stream: "stdout" | "stderr";
        readonly offset: number;
        readonly text: string;
      };
    };

export type LivePiece = {
  readonly event: LiveEvent;
  /** Where the piece of this text ended that was published before. Between it and the offset nothing was published. */
  readonly after: number;
  /** It may have been published before. */
  readonly again: boolean;
};

/** Bytes. Postgres refuses payloads of 8,000 bytes. */
const PAYLOAD_LIMIT = 7_900;

/**
 * Notifies all listeners at once and stores nothing. Text that does not fit into one notification goes out as several.
 * Await one call before the next: only then do they arrive in order.
 */
export async function publishLive(db: Database, conversationId: string, piece: LivePiece): Promise<void> {
  // One statement each: Postgres drops repeated payloads within a transaction, and pieces may be alike.
  for (const payload of payloadsOf(conversationId, piece)) await db.sql.notify(LIVE, payload);
}

type Payload = LiveEvent & { readonly c: string; readonly after: number; readonly again?: true };

export function parseLive(payload: string): { readonly conversationId: string; readonly piece: LivePiece } {
  const { c, after, again = false, ...event } = JSON.parse(payload) as Payload;
  return { conversationId: c, piece: { event, after, again } };
}

function payloadsOf(conversationId: string, piece: LivePiece): string[] {
  const { event, after, again } = piece;
  const payload = JSON.stringify({ c: conversationId, after, ...(again ? { again } : {}), ...event });
  const { text, offset } = event.data;
  if (Buffer.byteLength(payload) <= PAYLOAD_LIMIT || text.length < 2) return [payload];
  const middle = text.length >> 1;
  const torn = text.charCodeAt(middle - 1) >> 10 === HIGH_SURROGATE;
  const cut = torn ? middle + 1 : middle;
  return [
    ...payloadsOf(conversationId, { ...piece, event: withText(event, offset, text.slice(0, cut)) }),
    ...payloadsOf(conversationId, {
      again,
      after: offset + cut,
      event: withText(event, offset + cut, text.slice(cut)),
    }),
  ];
}

/** The upper six bits of U+D800 to U+DBFF. */
const HIGH_SURROGATE = 0xd800 >> 10;

/** The event with another text at another place. */
export function withText(event: LiveEvent, offset: number, text: string): LiveEvent {
  return event.name === "tool.output"
    ? { name: event.name, data: { ...event.data, offset, text } }
    : { name: event.name, data: { ...event.data, offset, text } };
}
