/**
 * Owns: preparing an image from a user or the agent (REQ-BED-013). It is checked, turned upright, scaled to what the
 * provider takes, and written again without metadata. Only the result is ever stored or sent, so no accepted image can
 * make a later request fail.
 * Not here: where it is kept (db/images.ts), how many go into a request (llm/images.ts).
 */
import { createHash } from "node:crypto";
import type { ImageBlock } from "../machine/message.ts";
import { decode } from "./decoders.ts";
import { IMAGE_TYPES, imageTypeOf, type ImageType } from "./format.ts";

/** Bytes of an image as it arrives. */
export const MAX_IMAGE_BYTES = 10 * 1024 * 1024;
/** More pixels are refused by the header, before anything is decoded. */
export const MAX_IMAGE_PIXELS = 50_000_000;
/** Pixels. The provider scales larger images down itself, which costs time. */
export const MAX_LONG_SIDE = 1568;
/** Bytes of an image as stored. In base64, which is how it is sent, that makes the 5 MB that the provider allows. */
export const MAX_STORED_BYTES = 3_750_000;

export type PreparedImage = {
  /** The block that refers to it from a message. */
  readonly block: ImageBlock;
  readonly bytes: Uint8Array;
  /** The image as it came: its type, and its size upright. */
  readonly original: { readonly mediaType: ImageType; readonly width: number; readonly height: number };
};

/** Bytes that are not accepted; the message says why and what to do, for a user or a model. */
export class BadImage extends Error {
  override readonly name = "BadImage";
}

/**
 * The same bytes give the same result, and so the same hash. For an animation the first frame is taken.
 *
 * @param signal ends the work at once.
 * @throws BadImage for anything but a whole PNG, JPEG, GIF or WebP within the limits.
 */
export async function prepareImage(bytes: Uint8Array, signal?: AbortSignal): Promise<PreparedImage> {
  if (bytes.length > MAX_IMAGE_BYTES) {
    throw new BadImage(`It has more than ${MAX_IMAGE_BYTES} bytes. Make it smaller.`);
  }
  const mediaType = imageTypeOf(bytes);
  if (mediaType === null) {
    throw new BadImage(`It is none of ${IMAGE_TYPES.join(", ")}. Convert it to one of them.`);
  }
  const limits = { maxPixels: MAX_IMAGE_PIXELS, maxLongSide: MAX_LONG_SIDE, maxBytes: MAX_STORED_BYTES };
  const decoded = await decode({ bytes, mediaType, ...limits }, signal);
  switch (decoded.kind) {
    case "broken":
      throw new BadImage("It is broken: it cannot be decoded to its end. Save it anew.");
    case "too_large":
      throw new BadImage(`It has more than ${MAX_IMAGE_PIXELS} pixels, or too long a side. Make it smaller.`);
    case "too_slow":
      throw new BadImage("It takes too long to decode. Save it anew, or smaller.");
    case "decoded": {
      const { width, height, original } = decoded;
      const hash = createHash("sha256").update(decoded.bytes).digest("hex");
      const block: ImageBlock = { type: "image", hash, mediaType: decoded.mediaType, width, height };
      return { block, bytes: decoded.bytes, original: { mediaType, ...original } };
    }
  }
}
