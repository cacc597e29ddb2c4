/**
 * Owns: messages on their way to the server. A message that got no answer is sent again under its id, also after a
 * reload, until the server has said what became of it. A refused one comes back to the person.
 */
import { Refused, type Calls } from "../client/index.ts";
import { readOutgoing, writeOutgoing, type DraftImage, type Outgoing } from "./drafts.ts";

export type Sending = Outgoing & {
  /** A sentence; null: it is on its way. */
  readonly problem: string | null;
};

type Box = { messages: readonly Sending[]; isRead: boolean };

const boxes = new Map<string, Box>();
const listeners = new Set<() => void>();
const NONE: readonly Sending[] = [];

export const sendingOf = (conversationId: string): readonly Sending[] =>
  boxes.get(conversationId)?.messages ?? NONE;

export function subscribeToOutbox(listener: () => void): () => void {
  listeners.add(listener);
  return () => void listeners.delete(listener);
}

function update(conversationId: string, change: (messages: readonly Sending[]) => readonly Sending[]): void {
  const box = boxes.get(conversationId) ?? { messages: NONE, isRead: true };
  boxes.set(conversationId, box);
  box.messages = change(box.messages);
  writeOutgoing(
    conversationId,
    box.messages.map(({ problem: _, ...message }) => message),
  );
  for (const listener of listeners) listener();
}

/** Goes on with what an earlier page has left. */
export async function resumeOutbox(calls: Calls, conversationId: string): Promise<void> {
  if (boxes.has(conversationId)) return;
  boxes.set(conversationId, { messages: NONE, isRead: true });
  for (const message of await readOutgoing(conversationId)) void send(calls, conversationId, message);
}

/** Resolves when the server has answered, or has refused it. */
export async function send(calls: Calls, conversationId: string, message: Outgoing): Promise<void> {
  update(conversationId, (messages) => [
    ...messages.filter(({ id }) => id !== message.id),
    { ...message, problem: null },
  ]);
  const { id, text, delivery } = message;
  const images = await Promise.all(message.images.map(toWire));
  const json = { id, text, delivery, ...(images.length === 0 ? {} : { images }) };
  try {
    await calls.persist((routes) =>
      routes.conversations[":id"].messages.$post({ param: { id: conversationId }, json }),
    );
    drop(conversationId, id);
  } catch (error) {
    const problem =
      error instanceof Refused
        ? error.problem.detail
        : "The server cannot be reached. Send it again when it can.";
    update(conversationId, (messages) =>
      messages.map((sending) => (sending.id === id ? { ...sending, problem } : sending)),
    );
  }
}

/** Takes a message out: it was answered, or the person takes it back. */
export function drop(conversationId: string, messageId: string): void {
  update(conversationId, (messages) => messages.filter(({ id }) => id !== messageId));
}

/** An image as the server takes it. */
export async function toWire({ mediaType, blob }: DraftImage): Promise<{ mediaType: string; data: string }> {
  const bytes = new Uint8Array(await blob.arrayBuffer());
  let binary = "";
  // A call takes a limited number of arguments.
  for (let at = 0; at < bytes.length; at += 0x8000)
    binary += String.fromCharCode(...bytes.subarray(at, at + 0x8000));
  return { mediaType, data: btoa(binary) };
}
