/**
 * Owns: the bytes of images, stored once under their hash, and who may see them.
 * Not here: checking and resizing of what a client sends.
 */
import { and, eq, sql } from "drizzle-orm";
import type { ImageBlock } from "../machine/message.ts";
import type { Database } from "./connect.ts";
import { cleanText } from "./json.ts";
import { imageRefs, images } from "./schema.ts";

export type StoredImage = { readonly mediaType: string; readonly bytes: Uint8Array };

/** Stores the bytes that `image` refers to; storing them again only renews their time. */
export async function putImage(db: Database, image: ImageBlock, bytes: Uint8Array): Promise<void> {
  const { hash, mediaType, width, height } = image;
  await db.orm
    .insert(images)
    .values({ hash, mediaType, width, height, bytes })
    .onConflictDoUpdate({ target: images.hash, set: { createdAt: sql`now()` } });
}

/** The bytes, if a message of this conversation refers to them or one that was queued there; else null. */
export async function getImage(
  db: Database,
  conversationId: string,
  hash: string,
): Promise<StoredImage | null> {
  const [row] = await db.orm
    .select({ mediaType: images.mediaType, bytes: images.bytes })
    .from(images)
    .innerJoin(imageRefs, eq(imageRefs.hash, images.hash))
    .where(and(eq(imageRefs.conversationId, cleanText(conversationId)), eq(images.hash, cleanText(hash))));
  return row ?? null;
}

/**
 * Removes bytes that no conversation refers to; those put within the last hour stay, for the commit that will
 * refer to them may be on its way. Returns how many.
 */
export async function deleteUnreferencedImages(db: Database): Promise<number> {
  const rows = await db.sql`
    delete from images i where i.created_at < now() - interval '1 hour'
      and not exists (select from image_refs r where r.hash = i.hash)
    returning i.hash`;
  return rows.length;
}
