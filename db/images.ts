/**
 * Owns: the bytes of images, stored once under their hash, and which conversation may read them.
 * Not here: checking and scaling them (images/).
 */
import { and, eq, inArray, sql } from "drizzle-orm";
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

/** The bytes, if a message of this conversation refers to them, stored or once queued; else null. */
export async function getImage(
  db: Database,
  conversationId: string,
  hash: string,
): Promise<StoredImage | null> {
  return (await getImages(db, conversationId, [hash])).get(hash) ?? null;
}

/** The same for several images. Images that do not exist, or are not this conversation's, are left out. */
export async function getImages(
  db: Database,
  conversationId: string,
  hashes: readonly string[],
): Promise<ReadonlyMap<string, StoredImage>> {
  if (hashes.length === 0) return new Map();
  const rows = await db.orm
    .select({ hash: images.hash, mediaType: images.mediaType, bytes: images.bytes })
    .from(images)
    .innerJoin(imageRefs, eq(imageRefs.hash, images.hash))
    .where(of(conversationId, hashes));
  return new Map(rows.map(({ hash, ...image }) => [hash, image]));
}

/** The size of each image in bytes, by its hash. */
export async function imageSizes(
  db: Database,
  conversationId: string,
  hashes: readonly string[],
): Promise<ReadonlyMap<string, number>> {
  if (hashes.length === 0) return new Map();
  const size = sql<number>`octet_length(${images.bytes})`;
  const rows = await db.orm
    .select({ hash: images.hash, size })
    .from(images)
    .innerJoin(imageRefs, eq(imageRefs.hash, images.hash))
    .where(of(conversationId, hashes));
  return new Map(rows.map((row) => [row.hash, row.size]));
}

const of = (conversationId: string, hashes: readonly string[]) =>
  and(eq(imageRefs.conversationId, cleanText(conversationId)), inArray(images.hash, hashes.map(cleanText)));

/**
 * Removes images that no conversation refers to. Images that were stored within the last hour stay, because the commit
 * that will refer to them may be on its way. Returns how many were removed.
 */
export async function deleteUnreferencedImages(db: Database): Promise<number> {
  const rows = await db.sql`
    delete from images i where i.created_at < now() - interval '1 hour'
      and not exists (select from image_refs r where r.hash = i.hash)
    returning i.hash`;
  return rows.length;
}
