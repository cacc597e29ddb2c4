/**
 * Owns: the bytes of images, stored once under their hash, and who may see them.
 * Not here: checking and resizing of what a client sends.
 */
import type { ImageBlock } from "../machine/message.ts";
import type { Database } from "./connect.ts";

export type StoredImage = { readonly mediaType: string; readonly bytes: Uint8Array };

/** Stores the bytes that `image` refers to; storing them again changes nothing. */
export async function putImage(db: Database, image: ImageBlock, bytes: Uint8Array): Promise<void> {
  throw new Error("todo");
}

/** The bytes, if a message or a queued message of this conversation refers to them; else null. */
export async function getImage(db: Database, conversationId: string, hash: string): Promise<StoredImage | null> {
  throw new Error("todo");
}

/** The bytes under a hash, for building a request from messages that were read already; null if missing. */
export async function readImage(db: Database, hash: string): Promise<StoredImage | null> {
  throw new Error("todo");
}
