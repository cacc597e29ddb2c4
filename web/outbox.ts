/**
 * Owns: messages on their way to the server. A message that got no answer is sent again under its id, also after a
 * reload, until the server has said what became of it, or the person takes it back. A refused one comes back to the
 * person.
 */
import { Refused, type Calls } from "../client/index.ts";
import {
  keepOutgoing,
  forgetOutgoing,
  readImages,
  readOutgoing,
  readText,
  writeImages,
  writeText,
  type DraftImage,
  type Outgoing,
} from "./drafts.ts";

/** A message on its way; a refused one has the reason as its `problem`. */
export type Sending = Outgoing;

type Box = {
  messages: readonly Sending[];
  /** Resolves when the last one was answered: they arrive in the order in which they were written. */
  turn: Promise<void>;
};

const boxes = new Map<string, Box>();
/** By the message's id: ends the sending of one that the person takes back. */
const endings = new Map<string, AbortController>();
const listeners = new Set<() => void>();
const NONE: readonly Sending[] = [];

export const sendingOf = (conversationId: string): readonly Sending[] =>
  boxes.get(conversationId)?.messages ?? NONE;

export function subscribeToOutbox(listener: () => void): () => void {
  listeners.add(listener);
  return () => void listeners.delete(listener);
}

function boxOf(conversationId: string): Box {
  const box = boxes.get(conversationId) ?? { messages: NONE, turn: Promise.resolve() };
  boxes.set(conversationId, box);
  return box;
}

function put(conversationId: string, message: Sending): void {
  const box = boxOf(conversationId);
  const isKnown = box.messages.some(({ id }) => id === message.id);
  box.messages = isKnown
    ? box.messages.map((other) => (other.id === message.id ? message : other))
    : [...box.messages, message];
  keepOutgoing(conversationId, message);
  for (const listener of listeners) listener();
}

/** Takes a message out: it was answered, or the person takes it back. */
export function drop(conversationId: string, messageId: string): void {
  const box = boxOf(conversationId);
  box.messages = box.messages.filter(({ id }) => id !== messageId);
  endings.get(messageId)?.abort();
  forgetOutgoing(conversationId, messageId);
  for (const listener of listeners) listener();
}

/** Goes on with what an earlier page has left. */
export async function resumeOutbox(calls: Calls, conversationId: string): Promise<void> {
  if (boxes.has(conversationId)) return;
  boxOf(conversationId);
  for (const message of await readOutgoing(conversationId)) {
    if (message.problem === null) void send(calls, conversationId, message);
    else put(conversationId, message);
  }
}

/** Resolves when the server has answered, or has refused it, or when the person has taken it back. */
export function send(
  calls: Calls,
  conversationId: string,
  message: Omit<Outgoing, "problem">,
): Promise<void> {
  put(conversationId, { ...message, problem: null });
  const box = boxOf(conversationId);
  box.turn = box.turn.then(() => deliver(calls, conversationId, message));
  return box.turn;
}

/** Resolves when what is on its way to the server has arrived, at once if nothing is, and at the latest after this time. */
export function arrived(conversationId: string, withinMs: number): Promise<void> {
  const late = new Promise<void>((resolve) => setTimeout(resolve, withinMs));
  return Promise.race([boxes.get(conversationId)?.turn, late]);
}

async function deliver(
  calls: Calls,
  conversationId: string,
  message: Omit<Outgoing, "problem">,
): Promise<void> {
  const { id, text, delivery } = message;
  const images = await Promise.all(message.images.map(toWire));
  const json = { id, text, delivery, ...(images.length === 0 ? {} : { images }) };
  const isWanted = () => sendingOf(conversationId).some((sending) => sending.id === id);
  const ending = new AbortController();
  endings.set(id, ending);
  while (isWanted()) {
    try {
      await calls.persist(
        (routes) => routes.conversations[":id"].messages.$post({ param: { id: conversationId }, json }),
        ending.signal,
      );
      drop(conversationId, id);
    } catch (error) {
      // Without an answer it is sent again. With 503 the server says that it cannot tell.
      if (!isWanted() || !(error instanceof Refused) || error.problem.status === 503) continue;
      put(conversationId, { ...message, problem: error.problem.detail });
      break;
    }
  }
  endings.delete(id);
}

/**
 * What was written in a conversation that takes no more messages, and what it has refused, becomes the draft of the one
 * that goes on from it.
 */
export async function takeAlong(from: string, to: string): Promise<void> {
  const refused = sendingOf(from).filter(({ problem }) => problem !== null);
  const texts = [...refused.map(({ text }) => text), readText(from)].filter((text) => text.trim() !== "");
  const images = [...refused.flatMap((message) => message.images), ...(await readImages(from))];
  if (texts.length > 0) writeText(to, texts.join("\n\n"));
  if (images.length > 0) writeImages(to, images);
  writeText(from, "");
  writeImages(from, []);
  for (const { id } of refused) drop(from, id);
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
