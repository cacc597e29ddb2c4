/**
 * Owns: the images of a request. They come from Postgres, or from a cache of the last requests, because each round
 * sends all of them again. Images never change, so the cache does not get out of date.
 */
import { LRUCache } from "lru-cache";
import type { Database } from "../db/connect.ts";
import { getImages, imageSizes } from "../db/images.ts";
import { imagesIn, withinLimits } from "../llm/images.ts";
import type { Images, LoadedImage } from "../llm/turns.ts";
import type { Message } from "../machine/message.ts";

/** Characters of base64 in the cache. */
const REMEMBERED_CHARACTERS = 64 * 1024 * 1024;

type Known = { readonly image: LoadedImage; readonly bytes: number };

export class RequestImages {
  readonly #db: Database;
  readonly #known = new LRUCache<string, Known>({
    maxSize: REMEMBERED_CHARACTERS,
    sizeCalculation: ({ image }) => image.data.length,
  });

  constructor(db: Database) {
    this.#db = db;
  }

  /** The messages to send, where the oldest images may be left out, and the images in them. */
  async choose(
    conversationId: string,
    messages: readonly Message[],
    maxImages: number,
  ): Promise<{ readonly messages: readonly Message[]; readonly images: Images }> {
    const sizes = await this.#sizes(conversationId, new Set(imagesIn(messages)));
    const sent = withinLimits(messages, sizes, maxImages);
    return { messages: sent, images: await this.#load(conversationId, new Set(imagesIn(sent))) };
  }

  async #sizes(conversationId: string, hashes: ReadonlySet<string>): Promise<ReadonlyMap<string, number>> {
    const unknown = [...hashes].filter((hash) => this.#known.get(hash) === undefined);
    const sizes = new Map(await imageSizes(this.#db, conversationId, unknown));
    for (const hash of hashes) {
      const known = this.#known.get(hash);
      if (known !== undefined) sizes.set(hash, known.bytes);
    }
    return sizes;
  }

  async #load(conversationId: string, hashes: ReadonlySet<string>): Promise<Images> {
    const found = new Map<string, Known>();
    for (const hash of hashes) {
      const known = this.#known.get(hash);
      if (known !== undefined) found.set(hash, known);
    }
    const missing = [...hashes].filter((hash) => !found.has(hash));
    for (const [hash, { mediaType, bytes }] of await getImages(this.#db, conversationId, missing)) {
      const data = Buffer.from(bytes).toString("base64");
      found.set(hash, { image: { mediaType, data }, bytes: bytes.length });
    }
    for (const [hash, known] of found) this.#known.set(hash, known);
    return new Map([...found].map(([hash, { image }]) => [hash, image]));
  }
}
