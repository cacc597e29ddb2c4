/** Owns: the `read` tool: a part of a text file with line numbers, read no further than needed; or an image. */
import { constants, open, stat, type FileHandle } from "node:fs/promises";
import { z } from "zod";
import { imageTypeOf } from "../images/format.ts";
import { BadImage, MAX_IMAGE_BYTES, prepareImage } from "../images/prepare.ts";
import { readablePath } from "./path.ts";
import { completed, defineTool, failed, type ToolContext, type ToolRun } from "./tool.ts";

const MAX_LINES = 2_000;
/** UTF-16 code units of the text returned. */
const MAX_CHARS = 50 * 1024;
const MAX_LINE_CHARS = 2_000;
/** A NUL in this many bytes from the beginning marks a binary file. */
const PROBE_BYTES = 8 * 1024;
const CHUNK_BYTES = 64 * 1024;

export const read = defineTool({
  name: "read",
  description: `Read a text file, or look at an image (PNG, JPEG, GIF, WebP). Of a text returns its lines, each after its number and a tab. At most ${MAX_LINES} lines or ${MAX_CHARS / 1024} KiB at once; longer lines than ${MAX_LINE_CHARS} characters are cut. A note says with which offset to read on. For directories use ls, for other binary files bash. Works in both modes.`,
  input: z.strictObject({
    path: z.string().min(1).describe("Absolute, or relative to the working directory"),
    offset: z.int().min(1).optional().describe("The first line to read, counted from 1"),
    limit: z
      .int()
      .min(1)
      .optional()
      .describe(`The number of lines to read; default and at most ${MAX_LINES}`),
  }),
  async run({ path, offset = 1, limit = MAX_LINES }, context) {
    const { signal } = context;
    const file = await readablePath(path, context);
    const stats = await stat(file);
    if (stats.isDirectory()) return failed(`${file} is a directory. Use ls to list it.`);
    // A pipe or a device may never end, or never begin.
    if (!stats.isFile()) return failed(`${file} is not a regular file.`);
    const lines = new Lines(offset, Math.min(limit, MAX_LINES));
    // A file that looks regular may still make a reader wait for more.
    const handle = await open(file, constants.O_RDONLY | constants.O_NONBLOCK);
    try {
      const decoder = new TextDecoder();
      const chunk = Buffer.allocUnsafe(CHUNK_BYTES);
      for (let isFirst = true; !lines.full; isFirst = false) {
        signal.throwIfAborted();
        const { bytesRead } = await handle.read(chunk, 0, CHUNK_BYTES, null);
        const bytes = chunk.subarray(0, bytesRead);
        if (isFirst && imageTypeOf(bytes) !== null) return await look(file, handle, context);
        if (isFirst && bytes.subarray(0, PROBE_BYTES).includes(0)) {
          return failed(`${file} is a binary file (${stats.size} bytes). Use bash to look into it.`);
        }
        if (bytesRead === 0) {
          lines.add(decoder.decode());
          lines.end();
          break;
        }
        lines.add(decoder.decode(bytes, { stream: true }));
      }
    } finally {
      await handle.close();
    }
    return lines.answer(file);
  },
});

/** An image as the model will see it: upright, and scaled to what the provider takes (REQ-BED-013). */
async function look(file: string, handle: FileHandle, { keepImage, signal }: ToolContext): Promise<ToolRun> {
  if (keepImage === undefined) return failed(`${file} is an image, and there is nowhere to show it.`);
  const { size } = await handle.stat();
  if (size > MAX_IMAGE_BYTES) {
    return failed(`${file} is an image of ${size} bytes; at most ${MAX_IMAGE_BYTES} can be shown.`);
  }
  try {
    const { buffer: bytes } = await handle.read(Buffer.alloc(size), 0, size, 0);
    const image = await prepareImage(bytes, signal);
    const { width, height } = image.original;
    const scaled =
      image.block.width === width ? "" : ` (shown with ${image.block.width} × ${image.block.height})`;
    const text = `${file}: an image of ${width} × ${height} pixels${scaled}`;
    return { status: "completed", output: [{ type: "text", text }, await keepImage(image)] };
  } catch (error) {
    if (error instanceof BadImage) return failed(`${file} cannot be shown as an image. ${error.message}`);
    throw error;
  }
}

/** Collects the wanted lines from a text that comes in pieces, and no more of it than is shown. */
class Lines {
  readonly #offset: number;
  readonly #limit: number;
  readonly #shown: string[] = [];
  #chars = 0;
  /** Number of the line that is being read. */
  #number = 1;
  #line = "";
  #lineChars = 0;
  #full = false;

  constructor(offset: number, limit: number) {
    this.#offset = offset;
    this.#limit = limit;
  }

  /** More lines follow than may be shown. */
  get full(): boolean {
    return this.#full;
  }

  add(text: string): void {
    let start = 0;
    while (!this.#full) {
      const newline = text.indexOf("\n", start);
      this.#extend(text, start, newline === -1 ? text.length : newline);
      if (newline === -1) return;
      this.#endLine();
      start = newline + 1;
    }
  }

  end(): void {
    if (this.#lineChars > 0) this.#endLine();
  }

  answer(file: string) {
    const last = this.#offset + this.#shown.length - 1;
    if (this.#shown.length === 0) {
      const count = this.#number - 1;
      if (count === 0) return completed("(the file is empty)");
      return failed(`${file} has ${count} lines; there is no line ${this.#offset}.`);
    }
    const more = this.#full ? `\n[the file goes on; read on with offset ${last + 1}]` : "";
    return completed(this.#shown.join("\n") + more);
  }

  #extend(text: string, start: number, end: number): void {
    this.#lineChars += end - start;
    if (this.#full || this.#number < this.#offset) return;
    if (this.#shown.length >= this.#limit && end > start) this.#full = true;
    const room = MAX_LINE_CHARS - this.#line.length;
    if (room > 0) this.#line += text.slice(start, Math.min(end, start + room));
  }

  #endLine(): void {
    if (this.#number >= this.#offset) {
      const cut = this.#lineChars - this.#line.length;
      const note = cut > 0 ? ` [… ${cut} characters cut …]` : "";
      const shown = `${this.#number}\t${this.#line.replace(/\r$/, "").replaceAll("\0", "")}${note}`;
      if (this.#shown.length >= this.#limit || this.#chars + shown.length > MAX_CHARS) {
        this.#full = true;
        return;
      }
      this.#shown.push(shown);
      this.#chars += shown.length + 1;
    }
    this.#number++;
    this.#line = "";
    this.#lineChars = 0;
  }
}
