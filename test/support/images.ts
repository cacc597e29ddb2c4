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
export const sentImage = async (format: Format = "png", options: ImageOptions = {}) =>
  asSent(format, await encodedImage(format, options));

export const asSent = (format: Format, bytes: Buffer) => ({
  mediaType: `image/${format}`,
  data: bytes.toString("base64"),
});

export type Colour = readonly [red: number, green: number, blue: number];

const WHITE: Colour = [255, 255, 255];

/** The bytes of an image of one colour whose top left quarter is white, so that its content can be told apart. */
export async function markedImage(
  format: Format,
  colour: Colour,
  width: number,
  height: number,
): Promise<Buffer> {
  const plain = (size: { readonly width: number; readonly height: number }, [r, g, b]: Colour) =>
    sharp({ create: { ...size, channels: 3, background: { r, g, b } } });
  const quarter = plain({ width: width / 2, height: height / 2 }, WHITE);
  const input = await quarter.png().toBuffer();
  const marked = await plain({ width, height }, colour)
    .composite([{ input, left: 0, top: 0 }])
    .png()
    .toBuffer();
  return sharp(marked).toFormat(format).toBuffer();
}

/** The colours in the middle of the four quarters, row by row, to the nearest multiple of 15: no format is exact. */
export async function quartersOf(image: Buffer): Promise<readonly Colour[]> {
  const { data, info } = await sharp(image).removeAlpha().raw().toBuffer({ resolveWithObject: true });
  const at = (x: number, y: number): Colour => {
    const start = (Math.floor(y * info.height) * info.width + Math.floor(x * info.width)) * info.channels;
    const near = (value = 0): number => Math.round(value / 15) * 15;
    return [near(data[start]), near(data[start + 1]), near(data[start + 2])];
  };
  return [at(0.25, 0.25), at(0.75, 0.25), at(0.25, 0.75), at(0.75, 0.75)];
}
