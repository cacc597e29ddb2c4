/**
 * Owns: checking the inputs of signals and updates. Operators may type them by hand at a CLI, and an error that is
 * thrown in a workflow blocks the conversation, so the checks are plain guards. Each function returns the input with
 * its defaults, or null.
 */
import type { RowVersion } from "../protocol/commit.ts";
import type { CancelledBy, Decision, QueueOnCancel } from "../machine/conversation.ts";
import type { Delivery, ImageBlock } from "../machine/message.ts";
import { jsonBytes } from "../machine/size.ts";
import {
  CLIENT_ID,
  IMAGE_HASH,
  MAX_MESSAGE_IMAGES,
  MAX_MESSAGE_JSON_BYTES,
  PERSON_NAME,
} from "../protocol/formats.ts";
import { isUnauthenticated } from "../protocol/unauthenticated.ts";
import type { SendMessageInput } from "../protocol/workflow.ts";

/** A signal may leave out `messageId`. */
export function readMessage(
  input: unknown,
): (Omit<SendMessageInput, "messageId"> & { messageId: string | null }) | null {
  const { text, messageId = null, images = [], delivery = "direct" } = fields(input);
  if (
    typeof text !== "string" ||
    jsonBytes(text) > MAX_MESSAGE_JSON_BYTES ||
    !isImages(images) ||
    !isDelivery(delivery)
  )
    return null;
  if (messageId !== null && !isId(messageId)) return null;
  return text.trim() === "" && images.length === 0 ? null : { text, messageId, images, delivery };
}

export function readMessageId(input: unknown): string | null {
  const { messageId } = fields(input);
  return isId(messageId) ? messageId : null;
}

/** An input without fields means the defaults: a person's cancel. */
export function readCancel(
  input: unknown,
): { readonly queue: QueueOnCancel; readonly by: CancelledBy } | null {
  if (!isGiven(input)) return null;
  const { queue = "run", by = "user" } = fields(input);
  return isQueueOnCancel(queue) && isCanceller(by) ? { queue, by } : null;
}

/** Without `toolCallId` the decision is on the pending call; without `by` nobody is named. */
export function readDecision(
  input: unknown,
): { readonly decision: Decision; readonly toolCallId: string | null; readonly by?: string } | null {
  const { decision, toolCallId = null, by } = fields(input);
  if (decision !== "approve" && decision !== "deny") return null;
  if (toolCallId !== null && typeof toolCallId !== "string") return null;
  if (by === undefined) return { decision, toolCallId };
  return typeof by === "string" && PERSON_NAME.test(by) ? { decision, toolCallId, by } : null;
}

/** Without `archived` the input archives; `archived: false` un-archives. */
export function readArchive(input: unknown): { readonly archived: boolean } | null {
  if (!isGiven(input)) return null;
  const { archived = true } = fields(input);
  return typeof archived === "boolean" ? { archived } : null;
}

/**
 * The input is an object, and comes from one of our processes if payloads are encrypted. Every signal and every update
 * that changes anything has an input, because only an input can be authenticated.
 */
export function isGiven(input: unknown): boolean {
  return typeof input === "object" && input !== null && !isUnauthenticated(input);
}

/**
 * The input of a command that cannot be undone must name the command, so that a copy of another input cannot ask for it.
 */
export function names(input: unknown, order: "remove" | "triggerContinuation" | "releaseQueue"): boolean {
  return isGiven(input) && fields(input)[order] === true;
}

type Restart = {
  readonly policy: "idle" | "resume";
  /** undefined: the input does not contain it. */
  readonly row: RowVersion | null | undefined;
  readonly restarts: number;
};

export function readRestart(input: unknown): Restart | null {
  const { policy, row, restarts } = fields(input);
  if (policy !== "idle" && policy !== "resume") return null;
  return {
    policy,
    row: row === null ? null : readRow(input),
    restarts: typeof restarts === "number" ? restarts : 0,
  };
}

/** A rename that Postgres has. */
export function readRename(input: unknown): { readonly title: string; readonly event: number } | null {
  const { title, event } = fields(input);
  return typeof title === "string" && typeof event === "number" ? { title, event } : null;
}

/** The version of the row that the caller has read; undefined: it has read none. */
export function readRow(input: unknown): RowVersion | undefined {
  const { revision, revisionId } = fields(fields(input)["row"]);
  return typeof revision === "number" && typeof revisionId === "string"
    ? { revision, revisionId }
    : undefined;
}

const fields = (input: unknown): { readonly [name: string]: unknown } =>
  typeof input === "object" && input !== null ? { ...input } : {};

const isId = (value: unknown): value is string => typeof value === "string" && CLIENT_ID.test(value);

const isDelivery = (value: unknown): value is Delivery =>
  value === "direct" || value === "steer" || value === "followUp";

const isQueueOnCancel = (value: unknown): value is QueueOnCancel =>
  value === "run" || value === "hold" || value === "clear";

const isCanceller = (value: unknown): value is CancelledBy =>
  value === "user" || value === "parent" || value === "timeout";

const isImages = (value: unknown): value is readonly ImageBlock[] =>
  Array.isArray(value) && value.length <= MAX_MESSAGE_IMAGES && value.every(isImage);

function isImage(value: unknown): boolean {
  const { type, hash, mediaType, width, height, ...more } = fields(value);
  if (type !== "image" || Object.keys(more).length > 0) return false;
  if (typeof hash !== "string" || !IMAGE_HASH.test(hash)) return false;
  if (typeof mediaType !== "string" || mediaType.length > 100) return false;
  return typeof width === "number" && typeof height === "number";
}
