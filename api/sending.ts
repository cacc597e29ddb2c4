/**
 * Owns: giving a message to a conversation, once for each id (REQ-BED-002, docs/http.md, General). Postgres is
 * looked at first, for an update's id is forgotten with its run; what two requests at once both ask of the
 * workflow is one update.
 */
import { cleanText } from "../db/json.ts";
import { findMessage, type FoundMessage } from "../db/messages.ts";
import { conversationExists } from "../db/conversations.ts";
import type { Delivery } from "../machine/message.ts";
import { sendMessageUpdate } from "../workflows/contract.ts";
import type { Deps } from "./deps.ts";
import { newId } from "./ids.ts";
import { notFound, Problem } from "./problem.ts";
import { awaitProjection } from "./projection.ts";
import type { NewMessage } from "./schemas/message.ts";

export type SentMessage = {
  readonly messageId: string;
  /** null until delivered. */
  readonly sequence: number | null;
  readonly delivery: Delivery;
  readonly pending?: true;
};

/** Resolves after the commit. Rejects with the Problem of a refusal, `message_id_conflict` or `not_found`. */
export async function sendMessage(
  { db, hub, workflows }: Pick<Deps, "db" | "hub" | "workflows">,
  conversationId: string,
  message: NewMessage,
): Promise<SentMessage> {
  refuseImages(message);
  const text = cleanText(message.text);
  const messageId = message.id ?? newId();
  const look = () => findMessage(db, conversationId, messageId);
  const known = message.id === undefined ? null : await look();
  if (known !== null) return asStored(messageId, text, known);
  if (!(await conversationExists(db, conversationId))) throw notFound();

  const sent = await workflows.update(
    conversationId,
    sendMessageUpdate,
    [{ messageId, text, images: [], delivery: message.delivery ?? "direct" }],
    messageId,
  );
  // The message itself and not its step: what was accepted into a history that is rewritten comes at a later step.
  const stored = await awaitProjection(hub, conversationId, look);
  if (stored !== null) return asStored(messageId, text, stored);
  return { messageId, sequence: sent.sequence, delivery: sent.delivery, pending: true };
}

function asStored(messageId: string, text: string, stored: FoundMessage): SentMessage {
  if (stored.text !== text) {
    throw new Problem("message_id_conflict", "Another message has this id. Send yours under a new one.", {
      messageId,
    });
  }
  return { messageId, sequence: stored.sequence, delivery: stored.delivery };
}

export function refuseImages({ images }: NewMessage): void {
  if (images === undefined || images.length === 0) return;
  throw new Problem("invalid_image", "Pictures are not supported yet. Send the message without them.");
}
