/**
 * Owns: the pictures of a request, from Postgres, those of the last requests from memory: each round sends all of them
 * again. They never change, so nothing in memory gets old.
 */
import type { Database } from "../db/connect.ts";
import { getImages, imageSizes } from "../db/images.ts";
import { picturesIn, withinLimits } from "../llm/pictures.ts";
import type { Images, LoadedImage } from "../llm/turns.ts";
import type { Message } from "../machine/message.ts";

/** Characters of base64 that are kept; the least recently used picture is forgotten first. */
const REMEMBERED = 64 * 1024 * 1024;

export class Pictures {
  readonly #db: Database;
  readonly #loaded = new Map<string, LoadedImage>();
  #characters = 0;

  constructor(db: Database) {
    this.#db = db;
  }

  /** What of the messages is to be sent, and the pictures in it. */
  async choose(
    conversationId: string,
    messages: readonly Message[],
    maxImages: number,
  ): Promise<{ readonly messages: readonly Message[]; readonly images: Images }> {
    const all = new Set(picturesIn(messages));
    if (all.size === 0) return { messages, images: new Map() };
    const sizes = await imageSizes(this.#db, conversationId, [...all]);
    const sent = withinLimits(messages, sizes, maxImages);
    return { messages: sent, images: await this.#load(conversationId, new Set(picturesIn(sent))) };
  }

  async #load(conversationId: string, hashes: ReadonlySet<string>): Promise<Images> {
    const images = new Map<string, LoadedImage>();
    for (const hash of hashes) {
      const loaded = this.#loaded.get(hash);
      if (loaded !== undefined) images.set(hash, loaded);
    }
    const missing = [...hashes].filter((hash) => !images.has(hash));
    for (const [hash, { mediaType, bytes }] of await getImages(this.#db, conversationId, missing)) {
      images.set(hash, { mediaType, data: Buffer.from(bytes).toString("base64") });
    }
    this.#remember(images);
    return images;
  }

  #remember(images: Images): void {
    for (const [hash, image] of images) {
      if (!this.#loaded.delete(hash)) this.#characters += image.data.length;
      this.#loaded.set(hash, image);
    }
    for (const [hash, { data }] of this.#loaded) {
      if (this.#characters <= REMEMBERED) return;
      this.#loaded.delete(hash);
      this.#characters -= data.length;
    }
  }
}
