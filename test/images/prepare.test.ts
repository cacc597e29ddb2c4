/** REQ-BED-013: which images are accepted, and how they are converted for storage. */
import { createHash, randomBytes } from "node:crypto";
import { deflateSync } from "node:zlib";
import sharp from "sharp";
import { describe, expect, test } from "vitest";
import { imageTypeOf } from "../../images/format.ts";
import {
  BadImage,
  MAX_IMAGE_BYTES,
  MAX_IMAGE_PIXELS,
  MAX_LONG_SIDE,
  MAX_STORED_BYTES,
  prepareImage,
} from "../../images/prepare.ts";
import { readImageHeader } from "../../local/scripted/images.ts";
import { encodedImage, pixels, type Format } from "../support/images.ts";

const FORMATS: readonly Format[] = ["png", "jpeg", "gif", "webp"];

const refusal = async (bytes: Uint8Array): Promise<string> => {
  const error: unknown = await prepareImage(bytes).then(
    () => null,
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(BadImage);
  return error instanceof BadImage ? error.message : "";
};

describe.each(FORMATS)("%s", (format) => {
  test("keeps its format, and is stored under the hash of its bytes", async () => {
    const { block, bytes, original } = await prepareImage(await encodedImage(format));
    const mediaType = `image/${format}`;
    expect(block).toEqual({
      ...{ type: "image", mediaType, width: 40, height: 30 },
      hash: createHash("sha256").update(bytes).digest("hex"),
    });
    expect(original).toEqual({ mediaType, width: 40, height: 30 });
    // The scripted provider has its own reader, which shares no code with ours.
    expect(readImageHeader(Buffer.from(bytes))).toEqual({ mediaType, width: 40, height: 30 });
  });

  test("has the same hash when it is prepared again", async () => {
    const bytes = await encodedImage(format);
    const [first, second] = await Promise.all([prepareImage(bytes), prepareImage(Buffer.from(bytes))]);
    expect(second.block).toEqual(first.block);
  });

  test("is scaled to the provider's long side, in its proportions; a smaller one stays", async () => {
    const wide = await prepareImage(await encodedImage(format, { width: 3000, height: 1500 }));
    expect(wide.block).toMatchObject({ width: MAX_LONG_SIDE, height: MAX_LONG_SIDE / 2 });
    expect(wide.original).toMatchObject({ width: 3000, height: 1500 });
    const tall = await prepareImage(await encodedImage(format, { width: 10, height: MAX_LONG_SIDE + 1 }));
    expect(tall.block).toMatchObject({ width: 10, height: MAX_LONG_SIDE });
    const exact = await prepareImage(await encodedImage(format, { width: MAX_LONG_SIDE, height: 20 }));
    expect(exact.block).toMatchObject({ width: MAX_LONG_SIDE, height: 20 });
  });

  test("is refused if it is cut off anywhere", async () => {
    const whole = await encodedImage(format, { width: 300, height: 200, noise: true });
    for (const part of [13, 40, whole.length / 4, whole.length / 2, whole.length * 0.9]) {
      expect(await refusal(whole.subarray(0, Math.floor(part)))).toMatch(/broken/);
    }
  });
});

test("an image with EXIF data is turned upright and loses its metadata", async () => {
  const lying = await pixels({ width: 60, height: 20 })
    .jpeg()
    .withExif({ IFD0: { Artist: "Somebody" }, IFD3: { GPSLatitude: "51/1 30/1 0/1" } })
    .withIccProfile("p3")
    .withMetadata({ orientation: 6 })
    .toBuffer();
  expect((await sharp(lying).metadata()).orientation).toBe(6);
  const { block, bytes, original } = await prepareImage(lying);
  expect([block.width, block.height]).toEqual([20, 60]);
  expect(original).toMatchObject({ width: 20, height: 60 });
  const kept = await sharp(bytes).metadata();
  expect([kept.orientation, kept.exif, kept.icc, kept.xmp]).toEqual([
    undefined,
    undefined,
    undefined,
    undefined,
  ]);
  expect(Buffer.from(bytes).includes("Somebody")).toBe(false);
});

test("only the first frame of an animation is kept", async () => {
  const frames = [pixels({ seed: 1 }), pixels({ seed: 9 })].map((frame) => frame.png().toBuffer());
  const animated = await sharp(await Promise.all(frames), { join: { animated: true } })
    .gif({ delay: [100, 100] })
    .toBuffer();
  expect((await sharp(animated).metadata()).pages).toBe(2);
  const { block, bytes } = await prepareImage(animated);
  expect(block).toMatchObject({ mediaType: "image/gif", width: 40, height: 30 });
  expect((await sharp(bytes).metadata()).pages ?? 1).toBe(1);
});

test("an image that no lossless format makes small enough is stored as WebP", async () => {
  const noisy = await encodedImage("png", { width: MAX_LONG_SIDE, height: MAX_LONG_SIDE, noise: true });
  expect(noisy.length).toBeGreaterThan(MAX_STORED_BYTES);
  const { block, bytes } = await prepareImage(noisy);
  expect(bytes.length).toBeLessThanOrEqual(MAX_STORED_BYTES);
  expect(block).toMatchObject({ mediaType: "image/webp", width: MAX_LONG_SIDE, height: MAX_LONG_SIDE });
});

test("noise is small enough afterwards, also in the transparency, which WebP cannot make small", async () => {
  const side = MAX_LONG_SIDE;
  for (const channels of [2, 4] as const) {
    const raw = { width: side, height: side, channels };
    const image = sharp(randomBytes(side * side * channels), { raw }).webp({ quality: 50, effort: 0 });
    const { block, bytes } = await prepareImage(await image.toBuffer());
    expect(bytes.length).toBeLessThanOrEqual(MAX_STORED_BYTES);
    expect(block).toMatchObject({ width: side, height: side });
  }
});

describe("a file that takes a decoder long", () => {
  /** An animation of many tiny images; the library's time to read it grows with the square of their number. */
  const endless = async (frames: number): Promise<Buffer> => {
    const background = { r: 1, g: 2, b: 3, alpha: 0.5 };
    const still = await sharp({ create: { width: 4, height: 4, channels: 4, background } })
      .webp({ lossless: true })
      .toBuffer();
    const chunk = (type: string, ...parts: Buffer[]): Buffer => {
      const data = Buffer.concat(parts);
      const head = Buffer.alloc(8);
      head.write(type, "latin1");
      head.writeUInt32LE(data.length, 4);
      return Buffer.concat([head, data, Buffer.alloc(data.length % 2)]);
    };
    const canvas = Buffer.from([0x12, 0, 0, 0, 3, 0, 0, 3, 0, 0]);
    const frame = Buffer.alloc(16);
    for (const at of [6, 9]) frame.writeUIntLE(3, at, 3);
    const pixels = still.subarray(still.indexOf("VP8L"));
    const all = Array.from({ length: frames }, () => chunk("ANMF", frame, pixels));
    return chunk("RIFF", Buffer.from("WEBP"), chunk("VP8X", canvas), chunk("ANIM", Buffer.alloc(6)), ...all);
  };

  test("is given up at once after an abort, and does not delay the next image", async () => {
    const bytes = await endless(100_000);
    const stop = new AbortController();
    const hopeless = Array.from({ length: 4 }, () =>
      prepareImage(bytes, stop.signal).catch((error: unknown) => error),
    );
    const next = encodedImage("png").then((small) => prepareImage(small));
    stop.abort(new Error("Stop"));
    for (const given of await Promise.all(hopeless)) expect(given).toBe(stop.signal.reason);
    expect((await next).block.width).toBe(40);
  });

  test("is refused when it takes too long, even without an abort", async () => {
    expect(await refusal(await endless(100_000))).toMatch(/too long to decode/);
  });
});

test("grey, 16-bit, transparent and CMYK images become images that the provider can read", async () => {
  const variants = [
    pixels().greyscale().png(),
    pixels().toColourspace("rgb16").png(),
    pixels().ensureAlpha(0.5).png(),
    pixels().toColourspace("cmyk").jpeg(),
    pixels().png({ palette: true }),
    pixels().png({ progressive: true }),
    pixels().webp({ lossless: true }),
  ];
  for (const variant of variants) {
    const { block, bytes } = await prepareImage(await variant.toBuffer());
    const { space, depth } = await sharp(bytes).metadata();
    expect([block.width, depth]).toEqual([40, "uchar"]);
    expect(["srgb", "b-w"]).toContain(space);
  }
});

test("an image with the maximum number of bytes is accepted, one byte more is not", async () => {
  const small = await encodedImage("png");
  const padded = Buffer.concat([small, Buffer.alloc(MAX_IMAGE_BYTES - small.length)]);
  expect((await prepareImage(padded)).block.width).toBe(40);
  expect(await refusal(Buffer.concat([padded, Buffer.alloc(1)]))).toMatch(/more than 10485760 bytes/);
});

describe("a bomb: few bytes, many pixels", () => {
  /** A valid PNG of one colour, made without its decoded pixels in memory. */
  const flat = (width: number, height: number): Buffer => {
    const chunk = (type: string, data: Buffer): Buffer => {
      const body = Buffer.concat([Buffer.from(type, "latin1"), data]);
      const framed = Buffer.alloc(body.length + 8);
      framed.writeUInt32BE(data.length, 0);
      body.copy(framed, 4);
      framed.writeUInt32BE(crc(body), body.length + 4);
      return framed;
    };
    const header = Buffer.alloc(13);
    header.writeUInt32BE(width, 0);
    header.writeUInt32BE(height, 4);
    header.set([1, 0, 0, 0, 0], 8);
    const rows = deflateSync(Buffer.alloc((Math.ceil(width / 8) + 1) * height), { level: 9 });
    const magic = Buffer.from("\x89PNG\r\n\x1a\n", "latin1");
    return Buffer.concat([magic, chunk("IHDR", header), chunk("IDAT", rows), chunk("IEND", Buffer.alloc(0))]);
  };

  test("is refused by its header, before its pixels take any memory", async () => {
    const bomb = flat(30_000, 30_000);
    expect(bomb.length).toBeLessThan(200_000);
    const before = process.memoryUsage().rss;
    expect(await refusal(bomb)).toMatch(/more than 50000000 pixels/);
    // Decoded it would be 2.7 GB.
    expect(process.memoryUsage().rss - before).toBeLessThan(100 * 1024 * 1024);
  });

  test("is refused if one side is too long, because scaling needs memory by the sides", async () => {
    for (const [width, height] of [
      [20_000, 100],
      [100, 20_000],
    ] as const) {
      expect(await refusal(flat(width, height))).toMatch(/too long a side/);
    }
    expect((await prepareImage(flat(16_384, 100))).block).toMatchObject({ width: MAX_LONG_SIDE, height: 10 });
  });

  test("is refused from one pixel a side above the limit; the largest image is accepted", async () => {
    const side = Math.floor(Math.sqrt(MAX_IMAGE_PIXELS));
    expect((await prepareImage(flat(side, side))).block.width).toBe(MAX_LONG_SIDE);
    expect(await refusal(flat(side + 1, side + 1))).toMatch(/pixels/);
  });

  test.each(["jpeg", "gif", "webp"] as const)("is refused as %s, too", async (format) => {
    const width = 8_000;
    const create = { width, height: MAX_IMAGE_PIXELS / width + 1, channels: 3, background: "#369" } as const;
    const bomb = await sharp({ create }).toFormat(format, { effort: 1 }).toBuffer();
    expect(await refusal(bomb)).toMatch(/pixels/);
  });
});

describe("a file in none of the four formats", () => {
  test.each([
    ["nothing", ""],
    ["text", "hello"],
    ["SVG", '<svg xmlns="http://www.w3.org/2000/svg"><image href="file:///etc/passwd"/></svg>'],
    ["HTML", "<!doctype html><script>alert(1)</script>"],
    ["PDF", "%PDF-1.7\n"],
    ["a RIFF that is sound", "RIFF\x00\x00\x00\x00WAVEfmt "],
    ["BMP", "BM\x00\x00\x00\x00"],
  ])("is refused: %s", async (_, text) => {
    expect(imageTypeOf(Buffer.from(text, "latin1"))).toBeNull();
    expect(await refusal(Buffer.from(text, "latin1"))).toMatch(/none of image\/png/);
  });

  test("is refused if it is TIFF or AVIF, which the library could read", async () => {
    for (const format of ["tiff", "avif"] as const) {
      expect(await refusal(await pixels().toFormat(format).toBuffer())).toMatch(/none of/);
    }
  });

  test("is refused behind a magic number, and removed behind a valid image", async () => {
    const disguised = Buffer.concat([
      Buffer.from("\x89PNG\r\n\x1a\n", "latin1"),
      Buffer.from("<html></html>"),
    ]);
    expect(await refusal(disguised)).toMatch(/broken/);
    const polyglot = Buffer.concat([await encodedImage("gif"), Buffer.from("<script>alert(1)</script>")]);
    const { bytes } = await prepareImage(polyglot);
    expect(Buffer.from(bytes).includes("script")).toBe(false);
  });
});

test("images that are prepared concurrently each get their own result", async () => {
  const sent = await Promise.all(
    Array.from({ length: 20 }, (_, seed) => encodedImage("png", { seed, width: 100 + seed, height: 50 })),
  );
  const prepared = await Promise.all(sent.map((bytes) => prepareImage(bytes)));
  expect(prepared.map(({ block }) => block.width)).toEqual(sent.map((__, seed) => 100 + seed));
});

function crc(bytes: Buffer): number {
  let sum = 0xffffffff;
  for (const byte of bytes) {
    sum ^= byte;
    for (let bit = 0; bit < 8; bit++) sum = sum & 1 ? (sum >>> 1) ^ 0xedb88320 : sum >>> 1;
  }
  return (sum ^ 0xffffffff) >>> 0;
}
