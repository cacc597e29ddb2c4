/**
 * Owns: giving a message to a conversation, once for each id (REQ-BED-002, docs/http.md, General). It reads Postgres
 * first. If two requests with one id race, the workflow takes one of them, because it remembers the ids that it took.
 * The update's own id must not be the message's: a rejection recorded under it would be answered for ever.
 */
import type { Database } from "../db/connect.ts";
import { versionOf } from "../db/conversations.ts";
import { isUnavailable } from "../db/errors.ts";
import { cleanText } from "../db/json.ts";
import { findMessage, isTaken, type FoundMessage } from "../db/messages.ts";
import type { PreparedImage } from "../images/prepare.ts";
import type { Delivery, ImageBlock } from "../machine/message.ts";
import { sendMessageUpdate } from "../protocol/workflow.ts";
import type { Deps } from "./deps.ts";
import { newId } from "./ids.ts";
import { storeImages } from "./images.ts";
import { notFound, Problem } from "./problem.ts";
import { awaitProjection } from "./projection.ts";
import { refuseOverLimit } from "./spending.ts";
import type { NewMessage } from "./schemas/message.ts";

export type SentMessage = {
  readonly messageId: string;
  /** null until delivered. */
  readonly sequence: number | null;
  readonly delivery: Delivery;
  readonly pending?: true;
};

/**
 * Resolves after the commit. Rejects with the Problem of a rejection, of a limit that is reached, `message_id_conflict`
 * or `not_found`.
 *
 * @param prepareImages prepares the message's images; called when the message may be taken.
 */
export async function sendMessage(
  deps: Pick<Deps, "db" | "hub" | "workflows" | "models" | "spendingLimits" | "spans">,
  conversationId: string,
  message: NewMessage,
  prepareImages: () => Promise<readonly PreparedImage[]>,
): Promise<SentMessage> {
  const { db, hub, workflows, spans } = deps;
  const text = cleanText(message.text);
  const messageId = message.id ?? newId();
  const look = () => findMessage(db, conversationId, messageId);
  if (message.id !== undefined && (await isTaken(db, conversationId, messageId))) {
    const known = await look();
    // The id belongs to something other than a user's message.
    if (known === null) throw conflict(messageId);
    // Images are decoded only if the message may be the same.
    const images = known.text === text ? blocksOf(await prepareImages()) : [];
    return asStored(messageId, { text, images }, known);
  }
  const row = await versionOf(db, conversationId);
  if (row === null) throw notFound();
  await refuseOverLimit(deps, { kind: "conversation", id: conversationId });

  const prepared = await prepareImages();
  await storeImages(db, prepared);
  const delivery = message.delivery ?? "direct";
  const submit = { messageId, text, images: blocksOf(prepared), delivery };
  // Of a steer nobody knows here in which turn it will be.
  const cycleId = delivery === "steer" ? null : messageId;
  const span = spans.open("message", { conversationId, cycleId, operationId: messageId });
  const sending = workflows.update(conversationId, sendMessageUpdate, [{ ...submit, row }]);
  sending.then(
    () => span.end("accepted"),
    () => span.end("refused"),
  );
  const sent = await sending;
  // Waits for the message itself, not for its revision: after a divergence an accepted message gets a later revision.
  const stored = await awaitProjection(hub, conversationId, look);
  if (stored !== null) return asStored(messageId, submit, stored);
  if (sent.sequence === null && (await wasWithdrawn(db, conversationId, sent.revision, look))) {
    throw conflict(messageId, "The message of this id was withdrawn. Send yours under a new one.");
  }
  return { messageId, sequence: sent.sequence, delivery: sent.delivery, pending: true };
}

const blocksOf = (images: readonly PreparedImage[]): ImageBlock[] => images.map(({ block }) => block);

type Content = Pick<FoundMessage, "text" | "images">;

function asStored(messageId: string, sent: Content, stored: FoundMessage): SentMessage {
  const hashes = ({ images }: Content): string => images.map(({ hash }) => hash).join();
  if (stored.text !== sent.text || hashes(stored) !== hashes(sent)) throw conflict(messageId);
  return { messageId, sequence: stored.sequence, delivery: stored.delivery };
}

const conflict = (
  messageId: string,
  detail = "Another message has this id. Send yours under a new one.",
): Problem => new Problem("message_id_conflict", detail, { messageId });

/** True if the row has the revision that queued the message, but not the message: a client has withdrawn it. */
async function wasWithdrawn(
  db: Database,
  conversationId: string,
  revision: number,
  look: () => Promise<FoundMessage | null>,
): Promise<boolean> {
  try {
    const at = await versionOf(db, conversationId);
    return at !== null && at.revision >= revision && (await look()) === null;
  } catch (error) {
    if (isUnavailable(error)) return false;
    throw error;
  }
}
