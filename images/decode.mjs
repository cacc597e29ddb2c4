/**
 * Owns: decoding images in a process of its own. Whatever a hostile file does to a decoder (a crash, minutes,
 * gigabytes) ends with this process, which its parent kills (decoders.ts). Plain JavaScript: it runs uncompiled.
 */
import { writeFileSync } from "node:fs";
import sharp from "sharp";

/**
 * The largest side, and the bytes of all pixels. Scaling needs memory in proportion to the width, and for an interlaced
 * image to width and height.
 */
const MAX_SIDE = 16_384;
const MAX_PIXEL_BYTES = 400_000_000;
const QUALITY = 85;

// The same binary contains libraries for other formats; no data from outside may reach them.
sharp.block({ operation: ["VipsForeignLoad"] });
sharp.unblock({
  operation: [
    "VipsForeignLoadPngBuffer",
    "VipsForeignLoadJpegBuffer",
    "VipsForeignLoadNsgifBuffer",
    "VipsForeignLoadWebpBuffer",
  ],
});
sharp.cache(false);
sharp.concurrency(1);
try {
  // If memory runs out, the kernel must kill this process first.
  writeFileSync("/proc/self/oom_score_adj", "1000");
} catch {
  // Not on Linux.
}

process.on("message", (job) => {
  void decode(job).then((answer) => process.send?.(answer));
});
process.once("disconnect", () => process.exit());

/**
 * @param {import("./decoders.ts").Job} job
 * @returns {Promise<import("./decoders.ts").Decoded>}
 */
async function decode({ bytes, mediaType, maxPixels, maxLongSide, maxBytes }) {
  try {
    const source = sharp(bytes, { limitInputPixels: maxPixels, failOn: "error" });
    const header = await source.metadata();
    const { width, height } = header.autoOrient;
    const pixelBytes = width * height * header.channels * (header.depth === "uchar" ? 1 : 2);
    if (Math.max(width, height) > MAX_SIDE || pixelBytes > MAX_PIXEL_BYTES) return { kind: "too_large" };
    const scaled = source
      .autoOrient()
      .resize({ width: maxLongSide, height: maxLongSide, fit: "inside", withoutEnlargement: true });
    for (const write of waysToWrite(mediaType)) {
      const { data, info } = await write(scaled.clone()).toBuffer({ resolveWithObject: true });
      if (data.length > maxBytes) continue;
      const written = { mediaType: `image/${info.format}`, width: info.width, height: info.height };
      return { kind: "decoded", bytes: data, ...written, original: { width, height } };
    }
    return { kind: "too_large" };
  } catch (error) {
    const reason = error instanceof Error ? error.message : "";
    return /pixel limit/.test(reason) ? { kind: "too_large" } : { kind: "broken" };
  }
}

/** First the format in which it came; if that has too many bytes, less and less faithful ones. */
function waysToWrite(mediaType) {
  return [
    (image) =>
      image.toFormat(mediaType.replace("image/", ""), mediaType === "image/png" ? {} : { quality: QUALITY }),
    (image) => image.webp({ quality: QUALITY }),
    // WebP cannot make transparency small.
    (image) => image.flatten({ background: "#fff" }).jpeg({ quality: 70 }),
  ];
}
