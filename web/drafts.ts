/**
 * Owns: what a person has written and not yet sent, and what was sent and not yet answered. Both survive a reload: texts
 * in the browser's local storage, images in its database.
 */
import { del, get, set, update } from "idb-keyval";

export type DraftImage = { readonly mediaType: string; readonly blob: Blob; readonly name: string };

export type Delivery = "steer" | "followUp";

/** A message on its way. Its id makes it safe to send it again. */
export type Outgoing = {
  readonly id: string;
  readonly text: string;
  readonly images: readonly DraftImage[];
  readonly delivery: Delivery;
  /** Why the server has refused it, as a sentence; null: it has not answered. */
  readonly problem: string | null;
};

const textKey = (id: string): string => `bedrock.draft.${id}`;

export const readText = (id: string): string => localStorage.getItem(textKey(id)) ?? "";

export function writeText(id: string, text: string): void {
  if (text === "") localStorage.removeItem(textKey(id));
  else localStorage.setItem(textKey(id), text);
}

const imagesKey = (id: string): string => `draft-images.${id}`;

export const readImages = async (id: string): Promise<readonly DraftImage[]> =>
  (await get<readonly DraftImage[]>(imagesKey(id)).catch(() => undefined)) ?? [];

export function writeImages(id: string, images: readonly DraftImage[]): void {
  // Without a database, in some private windows, images do not survive a reload.
  void (images.length === 0 ? del(imagesKey(id)) : set(imagesKey(id), images)).catch(() => undefined);
}

const outgoingKey = (id: string): string => `outgoing.${id}`;

export const readOutgoing = async (id: string): Promise<readonly Outgoing[]> =>
  (await get<readonly Outgoing[]>(outgoingKey(id)).catch(() => undefined)) ?? [];

/** Other tabs have messages of the same conversation on their way: each changes its own only. */
const changeOutgoing = (id: string, change: (messages: readonly Outgoing[]) => readonly Outgoing[]): void =>
  void update<readonly Outgoing[]>(outgoingKey(id), (messages = []) => change(messages)).catch(
    () => undefined,
  );

export const keepOutgoing = (id: string, message: Outgoing): void =>
  changeOutgoing(id, (messages) => [...messages.filter((other) => other.id !== message.id), message]);

export const forgetOutgoing = (id: string, messageId: string): void =>
  changeOutgoing(id, (messages) => messages.filter((other) => other.id !== messageId));
