/** Owns: real images for tests, generated in any size and format, each different from the others. */
import sharp from "sharp";

export type Format = "png" | "jpeg" | "gif" | "webp";

export type ImageOptions = {
  readonly width?: number;
  readonly height?: number;
  /** Images of different seeds are different. */
  readonly seed?: number;
  /** Random pixels, which no format makes small; else stripes. */
  readonly noise?: boolean;
};

/** An image that is not encoded yet. */
export function pixels({ width = 40, height = 30, seed = 1, noise = false }: ImageOptions = {}) {
  const data = Buffer.alloc(width * height * 3);
  let random = seed;
  for (let index = 0; index < data.length; index++) {
    random = (Math.imul(random, 1_664_525) + 1_013_904_223) >>> 0;
    data[index] = noise ? random >>> 24 : (Math.floor(index / 3 / width / 4) * 37 + seed * 11) & 255;
  }
  return sharp(data, { raw: { width, height, channels: 3 } });
}

/** The bytes of an image file. */
export const encodedImage = (format: Format, options: ImageOptions = {}): Promise<Buffer> =>
  pixels(options).toFormat(format).toBuffer();

/** An image as a client sends it. */
export async function sentImage(format: Format = "png", options: ImageOptions = {}) {
  return {
    mediaType: `image/${format}`,
    data: (await encodedImage(format, options)).toString("base64"),
  };
}
