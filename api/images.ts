/**
 * Owns: images that come with a message (REQ-BED-013). They are checked before anything is stored, so that a message
 * with one bad image leaves nothing behind.
 */
import { setMaxListeners } from "node:events";
import { deleteUnreferencedImages, putImage } from "../db/images.ts";
import type { Database } from "../db/connect.ts";
import { BadImage, MAX_IMAGE_BYTES, prepareImage, type PreparedImage } from "../images/prepare.ts";
import { Problem, unavailable } from "./problem.ts";
import type { NewMessage } from "./schemas/message.ts";

type SentImage = NonNullable<NewMessage["images"]>[number];

/**
 * Prepares the images as they will be stored. If one is refused, the work on the others ends.
 *
 * @param path of the message in the body.
 * @param gone aborts when the client no longer waits.
 * @throws Problem `invalid_image`, with the path of the refused image.
 */
export async function readImages(
  { images = [] }: Pick<NewMessage, "images">,
  path: string,
  gone: AbortSignal,
): Promise<PreparedImage[]> {
  const refused = new AbortController();
  const signal = AbortSignal.any([gone, refused.signal]);
  // Each image listens; Node takes more than ten listeners for a leak.
  setMaxListeners(images.length + 1, signal);
  try {
    return await Promise.all(
      images.map((image, index) => readImage(image, `${path}images.${index}`, signal)),
    );
  } catch (error) {
    throw gone.aborted ? unavailable("The request was given up.") : error;
  } finally {
    refused.abort();
  }
}

/** Stores images before the message that refers to them. `sweepImages` removes those that no message refers to. */
export async function storeImages(db: Database, images: readonly PreparedImage[]): Promise<void> {
  for (const { block, bytes } of images) await putImage(db, block, bytes);
}

/** Milliseconds between two searches for unreferenced images. */
const SWEEP_MS = 60 * 60 * 1000;

/** Removes in the background, until the signal, the images that refused messages left behind. */
export function sweepImages(db: Database, until: AbortSignal, report: (error: unknown) => void): void {
  const timer = setInterval(() => void deleteUnreferencedImages(db).catch(report), SWEEP_MS).unref();
  until.addEventListener("abort", () => clearInterval(timer), { once: true });
}

async function readImage(
  { mediaType, data }: SentImage,
  path: string,
  signal: AbortSignal,
): Promise<PreparedImage> {
  const refuse = (why: string): Problem =>
    new Problem("invalid_image", `An image is not accepted. ${why}`, { errors: [{ path, message: why }] });
  if (data.length > Math.ceil(MAX_IMAGE_BYTES / 3) * 4) {
    throw refuse(`It has more than ${MAX_IMAGE_BYTES} bytes. Make it smaller.`);
  }
  const bytes = Buffer.from(data, "base64");
  // Decoding skips characters that are not base64.
  if (bytes.toString("base64") !== data) {
    throw refuse("Its data is not base64 (with padding, without line breaks).");
  }
  try {
    const image = await prepareImage(bytes, signal);
    if (image.original.mediaType !== mediaType)
      throw refuse(`It says ${mediaType} and is ${image.original.mediaType}.`);
    return image;
  } catch (error) {
    throw error instanceof BadImage ? refuse(error.message) : error;
  }
}
