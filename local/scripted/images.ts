/**
 * Owns: the API's requirements for images: media type, encoding, bytes, pixels. Sizes are read from the headers of PNG,
 * JPEG, GIF and WebP files; the pixels themselves are not decoded.
 */
import type { ImageParam, MessagesRequest } from "./messages.ts";
import { firstOf } from "./shape.ts";

/** Bytes of its base64. */
export const MAX_IMAGE_BYTES = 5 * 1024 * 1024;
const MAX_IMAGE_PIXELS = 8000;
/** With more images than `MANY_IMAGES` in a request, each may have at most `MAX_MANY_IMAGE_PIXELS` a side. */
const MANY_IMAGES = 20;
const MAX_MANY_IMAGE_PIXELS = 2000;
/** Images of one request; models with a window of at most `SMALL_WINDOW` tokens take fewer. */
const MAX_IMAGES = 600;
const MAX_IMAGES_SMALL = 100;
const SMALL_WINDOW = 200_000;

export type ImageHeader = { readonly mediaType: string; readonly width: number; readonly height: number };

/** The first defect of the images in a request, tool results included, or null. */
export function complainAboutImages(request: MessagesRequest): string | null {
  const images = findImages(request);
  const longest = images.length > MANY_IMAGES ? MAX_MANY_IMAGE_PIXELS : MAX_IMAGE_PIXELS;
  return firstOf(images, ({ image, path }) => complainAboutImage(image, path, longest));
}

/** Too many images for a model with this window, or null. */
export function complainAboutNumber(request: MessagesRequest, contextWindow: number): string | null {
  const most = contextWindow <= SMALL_WINDOW ? MAX_IMAGES_SMALL : MAX_IMAGES;
  const found = findImages(request).length;
  return found > most ? `Too many images and documents: ${found} + 0 > ${most}` : null;
}

type Found = { readonly image: ImageParam; readonly path: string };

function findImages(request: MessagesRequest): Found[] {
  const found: Found[] = [];
  for (const [m, message] of request.messages.entries()) {
    if (typeof message.content === "string") continue;
    for (const [b, block] of message.content.entries()) {
      const path = `messages.${m}.content.${b}`;
      if (block.type === "image") found.push({ image: block, path: `${path}.image` });
      if (block.type !== "tool_result" || typeof block.content !== "object") continue;
      for (const [r, inner] of block.content.entries()) {
        if (inner.type === "image")
          found.push({ image: inner, path: `${path}.tool_result.content.${r}.image` });
      }
    }
  }
  return found;
}

function complainAboutImage(image: ImageParam, path: string, longest: number): string | null {
  const { source } = image;
  if (source.type === "url") return null;
  const where = `${path}.source.base64`;
  if (source.data === "") return `${where}.data: image cannot be empty`;
  if (!isBase64(source.data)) return `${where}.data: Invalid base64 data`;
  const bytes = Buffer.from(source.data, "base64");
  // The limit is for the base64 that is sent.
  if (source.data.length > MAX_IMAGE_BYTES)
    return `${where}: image exceeds 5 MB maximum: ${source.data.length} bytes > ${MAX_IMAGE_BYTES} bytes`;
  const header = readImageHeader(bytes);
  if (header === null) return "Could not process image";
  if (header.mediaType !== source.media_type)
    return `${where}.data: Image does not match the provided media type ${source.media_type}`;
  if (Math.max(header.width, header.height) > longest) {
    const many = longest === MAX_MANY_IMAGE_PIXELS ? " for many-image requests" : "";
    return `${where}.data: At least one of the image dimensions exceed max allowed size${many}: ${longest} pixels`;
  }
  return null;
}

/** Strict: padded, the standard alphabet, no line breaks. */
export const isBase64 = (data: string): boolean =>
  data.length % 4 === 0 && /^[A-Za-z0-9+/]+={0,2}$/.test(data);

/** Media type and size in pixels; null if the bytes are none of the four formats, or cut off. */
export function readImageHeader(bytes: Buffer): ImageHeader | null {
  try {
    return readPng(bytes) ?? readGif(bytes) ?? readWebp(bytes) ?? readJpeg(bytes);
  } catch (error) {
    // Reading past the end of a cut-off file.
    if (error instanceof RangeError) return null;
    throw error;
  }
}

const ascii = (bytes: Buffer, from: number, to: number): string => bytes.toString("latin1", from, to);

function readPng(bytes: Buffer): ImageHeader | null {
  if (ascii(bytes, 0, 8) !== "\x89PNG\r\n\x1a\n" || ascii(bytes, 12, 16) !== "IHDR") return null;
  return { mediaType: "image/png", width: bytes.readUInt32BE(16), height: bytes.readUInt32BE(20) };
}

function readGif(bytes: Buffer): ImageHeader | null {
  if (!["GIF87a", "GIF89a"].includes(ascii(bytes, 0, 6))) return null;
  return { mediaType: "image/gif", width: bytes.readUInt16LE(6), height: bytes.readUInt16LE(8) };
}

function readWebp(bytes: Buffer): ImageHeader | null {
  if (ascii(bytes, 0, 4) !== "RIFF" || ascii(bytes, 8, 12) !== "WEBP") return null;
  const mediaType = "image/webp";
  const chunk = ascii(bytes, 12, 16);
  if (chunk === "VP8X")
    return { mediaType, width: 1 + bytes.readUIntLE(24, 3), height: 1 + bytes.readUIntLE(27, 3) };
  if (chunk === "VP8L") {
    const packed = bytes.readUInt32LE(21);
    return { mediaType, width: 1 + (packed & 0x3fff), height: 1 + ((packed >>> 14) & 0x3fff) };
  }
  if (chunk !== "VP8 ") return null;
  return { mediaType, width: bytes.readUInt16LE(26) & 0x3fff, height: bytes.readUInt16LE(28) & 0x3fff };
}

/** Walks from marker to marker until the frame header, which holds the size. */
function readJpeg(bytes: Buffer): ImageHeader | null {
  if (bytes.readUInt16BE(0) !== 0xffd8) return null;
  let offset = 2;
  for (;;) {
    if (bytes.readUInt8(offset) !== 0xff) return null;
    const marker = bytes.readUInt8(offset + 1);
    if (marker === 0xff) {
      offset += 1;
    } else if (marker === 0x01 || (marker >= 0xd0 && marker <= 0xd8)) {
      offset += 2;
    } else if (marker === 0xd9 || marker === 0xda) {
      return null;
    } else if (marker >= 0xc0 && marker <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(marker)) {
      const height = bytes.readUInt16BE(offset + 5);
      return { mediaType: "image/jpeg", width: bytes.readUInt16BE(offset + 7), height };
    } else {
      offset += 2 + bytes.readUInt16BE(offset + 2);
    }
  }
}
