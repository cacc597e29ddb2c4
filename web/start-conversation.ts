/** Owns: making a conversation, and its first message, once, however often the request has to be sent. */
import { newId, Refused, type Calls, type Routes } from "../client/index.ts";
import type { DraftImage } from "./drafts.ts";
import { send, toWire } from "./outbox.ts";

type Body = Parameters<Routes["conversations"]["$post"]>[0]["json"];
export type First = { readonly text: string; readonly images: readonly DraftImage[] };

/**
 * Resolves with its id.
 *
 * @param first null, or nothing in it: it begins without a message
 * @throws Refused, Unreachable
 */
export async function startConversation(
  calls: Calls,
  body: Omit<Body, "id" | "message">,
  first: First | null = null,
): Promise<string> {
  const id = newId();
  const isEmpty = first === null || (first.text.trim() === "" && first.images.length === 0);
  const message = isEmpty ? null : { ...first, id: newId() };
  const images = await Promise.all((message?.images ?? []).map(toWire));
  const sent =
    message === null
      ? {}
      : { message: { id: message.id, text: message.text, ...(images.length === 0 ? {} : { images }) } };
  try {
    await calls.persist((routes) => routes.conversations.$post({ json: { ...body, ...sent, id } }));
  } catch (error) {
    if (!(error instanceof Refused && error.problem.code === "already_exists")) throw error;
    // An earlier try got through, but its answer did not. Its message may still be on this side.
    if (message !== null) void send(calls, id, { ...message, delivery: "steer" });
  }
  return id;
}
