/** Owns: image files that a person adds to a message. The server converts and checks them. */
import { readFileSync } from "node:fs";
import { imageTypeOf } from "../images/format.ts";
import { UsageError } from "./exit-codes.ts";

/** @throws UsageError */
export function readImage(path: string): { readonly mediaType: string; readonly data: string } {
  const bytes = read(path);
  const mediaType = imageTypeOf(bytes);
  if (mediaType === null) throw new UsageError(`${path} is no PNG, JPEG, GIF or WebP.`);
  return { mediaType, data: bytes.toString("base64") };
}

function read(path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (error) {
    throw new UsageError(`The image can not be read: ${(error as Error).message}.`);
  }
}
