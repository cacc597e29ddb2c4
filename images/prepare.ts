/**
 * Owns: a picture on its way in, a person's or the agent's (REQ-BED-013): looked at, turned upright, scaled to what the
 * provider takes, written anew without metadata. What comes out is all that is ever stored or sent, so no picture that
 * was accepted can make a later request fail.
 * Not here: where it is kept (db/images.ts), how many go into a request (llm/pictures.ts).
 */
import { createHash } from "node:crypto";
import sharp, { type Sharp } from "sharp";
import type { ImageBlock } from "../machine/message.ts";
import { IMAGE_TYPES, imageTypeOf, type ImageType } from "./format.ts";
import { Gate } from "./gate.ts";

/** Of a picture as it comes. */
export const MAX_IMAGE_BYTES = 10 * 1024 * 1024;
/** Decoded, such a picture takes 200 MB. More is refused by what its header says, before anything is decoded. */
export const MAX_IMAGE_PIXELS = 50_000_000;
/** The provider scales larger ones down itself, after they were paid for with time. */
export const MAX_LONG_SIDE = 1568;
/** Of a picture as stored; in base64, which is how it is sent, that makes the 5 MB that the provider allows. */
export const MAX_STORED_BYTES = 3_750_000;

const QUALITY = 85;
const DECODE_SECONDS = 20;
/** Pictures decoded at a time, for the sake of memory. */
const gate = new Gate(2);

// Libraries for other formats are in the same binary: nothing that comes from outside reaches them.
sharp.block({ operation: ["VipsForeignLoad"] });
sharp.unblock({
  operation: [
    "VipsForeignLoadPngBuffer",
    "VipsForeignLoadJpegBuffer",
    "VipsForeignLoadNsgifBuffer",
    "VipsForeignLoadWebpBuffer",
  ],
});
// Pictures seldom come twice; what libvips would keep of them is memory.
sharp.cache(false);

export type PreparedImage = {
  /** What refers to it from a message. */
  readonly block: ImageBlock;
  readonly bytes: Uint8Array;
  /** What came: its type, and its pixels, upright. */
  readonly original: { readonly mediaType: ImageType; readonly width: number; readonly height: number };
};

/** Bytes that are not accepted; the message says why and what to do, for a person or a model. */
export class BadImage extends Error {
  override readonly name = "BadImage";
}

/**
 * The same bytes give the same result, and so the same hash. Of an animation the first picture is taken.
 *
 * @throws BadImage for anything but a whole PNG, JPEG, GIF or WebP within the limits.
 */
export async function prepareImage(bytes: Uint8Array): Promise<PreparedImage> {
  if (bytes.length > MAX_IMAGE_BYTES) {
    throw new BadImage(`It has more than ${MAX_IMAGE_BYTES} bytes. Make it smaller.`);
  }
  const mediaType = imageTypeOf(bytes);
  if (mediaType === null) {
    throw new BadImage(`It is none of ${IMAGE_TYPES.join(", ")}. Convert it to one of them.`);
  }
  return gate.run(async () => {
    try {
      return await rewrite(bytes, mediaType);
    } catch (error) {
      throw refusalOf(error);
    }
  });
}

async function rewrite(bytes: Uint8Array, mediaType: ImageType): Promise<PreparedImage> {
  const source = sharp(bytes, { limitInputPixels: MAX_IMAGE_PIXELS, failOn: "error" });
  const original = { mediaType, ...(await source.metadata()).autoOrient };
  const scaled = source
    .autoOrient()
    .resize({ width: MAX_LONG_SIDE, height: MAX_LONG_SIDE, fit: "inside", withoutEnlargement: true })
    .timeout({ seconds: DECODE_SECONDS });
  const faithful = await written(scaled, mediaType);
  if (faithful.bytes.length <= MAX_STORED_BYTES) return { ...faithful, original };
  return { ...(await written(scaled, "image/webp")), original };
}

async function written(image: Sharp, mediaType: ImageType) {
  const { data, info } = await encoded(image.clone(), mediaType).toBuffer({ resolveWithObject: true });
  const { width, height } = info;
  const hash = createHash("sha256").update(data).digest("hex");
  const block: ImageBlock = { type: "image", hash, mediaType, width, height };
  return { block, bytes: data };
}

function encoded(image: Sharp, mediaType: ImageType): Sharp {
  switch (mediaType) {
    case "image/png":
      return image.png();
    case "image/jpeg":
      return image.jpeg({ quality: QUALITY });
    case "image/gif":
      return image.gif();
    case "image/webp":
      return image.webp({ quality: QUALITY });
  }
}

function refusalOf(error: unknown): BadImage {
  const reason = error instanceof Error ? error.message : "";
  if (reason.includes("pixel limit")) {
    return new BadImage(`It has more than ${MAX_IMAGE_PIXELS} pixels. Make it smaller.`);
  }
  if (/timeout/i.test(reason)) return new BadImage("It takes too long to decode. Save it anew, or smaller.");
  return new BadImage("It is broken: it cannot be decoded to its end. Save it anew.");
}
