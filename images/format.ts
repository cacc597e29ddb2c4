/** Owns: recognising the four formats by their magic number. A file name or a client's claim is no evidence. */

/** The formats that the provider accepts. */
export const IMAGE_TYPES = ["image/png", "image/jpeg", "image/gif", "image/webp"] as const;
export type ImageType = (typeof IMAGE_TYPES)[number];

/** null: none of the four. */
export function imageTypeOf(bytes: Uint8Array): ImageType | null {
  const at = (from: number, to: number): string => Buffer.from(bytes.subarray(from, to)).toString("latin1");
  if (at(0, 8) === "\x89PNG\r\n\x1a\n") return "image/png";
  if (at(0, 3) === "\xff\xd8\xff") return "image/jpeg";
  if (at(0, 6) === "GIF87a" || at(0, 6) === "GIF89a") return "image/gif";
  if (at(0, 4) === "RIFF" && at(8, 12) === "WEBP") return "image/webp";
  return null;
}
