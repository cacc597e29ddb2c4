/** Reading the size of an image from its header. */
import { expect, test } from "vitest";
import { isBase64, readImageHeader } from "../../local/scripted/images.ts";
import { imageFile } from "./support.ts";

test("reads a whole PNG file", () => {
  const file =
    "iVBORw0KGgoAAAANSUhEUgAAAAMAAAACCAIAAAASFvFNAAAAEElEQVR4nGP4z8AAQQxwFgBB0gX7h/C5SAAAAABJRU5ErkJggg==";
  expect(readImageHeader(Buffer.from(file, "base64"))).toEqual({
    mediaType: "image/png",
    width: 3,
    height: 2,
  });
});

test.each(["image/png", "image/jpeg", "image/gif", "image/webp"])("reads the header of %s", (mediaType) => {
  const file = imageFile(mediaType, 1234, 567);
  expect(readImageHeader(file)).toEqual({ mediaType, width: 1234, height: 567 });
  for (let length = 0; length < 10; length += 1) expect(readImageHeader(file.subarray(0, length))).toBeNull();
});

test("reads lossy and lossless WebP", () => {
  const lossy = Buffer.alloc(30);
  lossy.write("RIFF", 0, "latin1");
  lossy.write("WEBPVP8 ", 8, "latin1");
  lossy.writeUInt16LE(640, 26);
  lossy.writeUInt16LE(480, 28);
  expect(readImageHeader(lossy)).toEqual({ mediaType: "image/webp", width: 640, height: 480 });
  const lossless = Buffer.alloc(30);
  lossless.write("RIFF", 0, "latin1");
  lossless.write("WEBPVP8L", 8, "latin1");
  lossless.writeUInt32LE((640 - 1) | ((480 - 1) << 14), 21);
  expect(readImageHeader(lossless)).toEqual({ mediaType: "image/webp", width: 640, height: 480 });
});

test("other bytes are not an image", () => {
  for (const bytes of ["", "x", "<svg/>", "\xff\xd8\xff\xd9", "RIFF....WAVE................"])
    expect(readImageHeader(Buffer.from(bytes, "latin1"))).toBeNull();
});

test("base64 is strict", () => {
  expect(["QQ==", "QUI=", "QUJD"].every(isBase64)).toBe(true);
  expect(["", "QQ", "QQ=", "Q Q=", "QU\nJD", "QU-_"].some(isBase64)).toBe(false);
});
