/** Owns: real pictures for tests, made anew: of any size and format, each different from the others. */
import sharp from "sharp";

export type Format = "png" | "jpeg" | "gif" | "webp";

export type PictureOptions = {
  readonly width?: number;
  readonly height?: number;
  /** Pictures of different seeds are different. */
  readonly seed?: number;
  /** Random pixels, which no format makes small; else stripes. */
  readonly noise?: boolean;
};

/** A picture that is still to be written. */
export function pixels({ width = 40, height = 30, seed = 1, noise = false }: PictureOptions = {}) {
  const data = Buffer.alloc(width * height * 3);
  let random = seed;
  for (let index = 0; index < data.length; index++) {
    random = (Math.imul(random, 1_664_525) + 1_013_904_223) >>> 0;
    data[index] = noise ? random >>> 24 : (Math.floor(index / 3 / width / 4) * 37 + seed * 11) & 255;
  }
  return sharp(data, { raw: { width, height, channels: 3 } });
}

/** The bytes of a file. */
export const picture = (format: Format, options: PictureOptions = {}): Promise<Buffer> =>
  pixels(options).toFormat(format).toBuffer();

/** As a client sends it. */
export async function sentPicture(format: Format = "png", options: PictureOptions = {}) {
  return {
    mediaType: `image/${format}`,
    data: (await picture(format, options)).toString("base64"),
  };
}
