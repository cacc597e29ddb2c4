/**
 * Owns: receiving a request's body. Each body is received independently, so that no request waits for another's
 * network. A small body stays in memory, a larger one in a file without a name. A body that stalls is ended.
 * Not here: how a received body is decoded (bodies.ts).
 */
import { randomUUID } from "node:crypto";
import { open, unlink, type FileHandle } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Problem, tooLarge, unavailable } from "./problem.ts";

export type UploadLimits = {
  /** Bytes of one body. */
  readonly bodyBytes: number;
  /** Bytes of all bodies in files. Beyond them, the body that has not moved for longest is ended. */
  readonly fileBytes: number;
  /** Milliseconds. A body that grows by less than PACE_BYTES in one such interval is ended. */
  readonly paceMs: number;
  /** Milliseconds from a request's arrival within which its body must be whole. */
  readonly deadlineMs: number;
};

/**
 * Bytes of a body that is kept in memory. An image has more, and thousands of stalled bodies of this size take little.
 */
const MEMORY_BYTES = 64 * 1024;
/** Bytes in five seconds: a line of 8 kbit/s. */
const PACE_BYTES = 5 * 1024;

export class Uploads {
  readonly #limits: UploadLimits;
  /** All uploads in use, the arriving ones in the order of progress: the one that moved last is the last. */
  readonly #uploads = new Set<Upload>();

  constructor(limits: UploadLimits) {
    this.#limits = limits;
  }

  /**
   * Receives a body, calls `work` with it, and then discards it.
   *
   * @throws Problem `request_timeout`, `payload_too_large`, `unavailable` when there is no room, or `malformed_json`
   * when the sender goes away.
   */
  async use<T>(body: ReadableStream<Uint8Array>, work: (upload: Upload) => Promise<T>): Promise<T> {
    const upload = new Upload();
    try {
      await this.#receive(upload, body.getReader());
      return await work(upload);
    } finally {
      this.#uploads.delete(upload);
      await upload.discard();
    }
  }

  async #receive(upload: Upload, reader: ReadableStreamDefaultReader<Uint8Array>): Promise<void> {
    const { bodyBytes, paceMs, deadlineMs } = this.#limits;
    // Cancelling makes a waiting read return as at the end of the body.
    upload.ended.addEventListener("abort", () => void reader.cancel().catch(() => undefined), { once: true });
    const deadline = setTimeout(
      () => upload.end(`It was not whole after ${deadlineMs / 1000} s.`),
      deadlineMs,
    );
    let sizeBefore = 0;
    const pace = setInterval(() => {
      if (upload.size - sizeBefore < PACE_BYTES) upload.end(`Almost nothing came for ${paceMs / 1000} s.`);
      sizeBefore = upload.size;
    }, paceMs);
    try {
      for (;;) {
        this.#uploads.delete(upload);
        this.#uploads.add(upload);
        const { done, value } = await reader.read().catch(() => {
          throw new Problem("malformed_json", "The body ended before it was whole.");
        });
        upload.ended.throwIfAborted();
        if (done) break;
        const size = upload.size + value.length;
        if (size > bodyBytes) throw tooLarge(bodyBytes);
        if (size > MEMORY_BYTES) this.#makeRoomFor(upload, size);
        await upload.add(value);
      }
      upload.isWhole = true;
    } finally {
      clearTimeout(deadline);
      clearInterval(pace);
    }
  }

  #makeRoomFor(upload: Upload, size: number): void {
    const others = [...this.#uploads].filter((other) => other !== upload && !other.ended.aborted);
    let bytes = size + others.reduce((sum, other) => sum + other.fileBytes, 0);
    for (const other of others) {
      if (bytes <= this.#limits.fileBytes) return;
      if (other.isWhole) continue;
      bytes -= other.fileBytes;
      other.end("There was no room for it, and others came faster.");
    }
    if (bytes > this.#limits.fileBytes) throw unavailable("There is no room for the body.");
  }
}

export class Upload {
  readonly #ended = new AbortController();
  #chunks: Uint8Array[] = [];
  #file: FileHandle | null = null;
  #size = 0;
  isWhole = false;

  get size(): number {
    return this.#size;
  }

  get fileBytes(): number {
    return this.#file === null ? 0 : this.#size;
  }

  /** Aborted with a Problem when the upload is ended early. */
  get ended(): AbortSignal {
    return this.#ended.signal;
  }

  /** @param why a sentence. */
  end(why: string): void {
    this.#ended.abort(
      new Problem("request_timeout", `The body came too slowly. ${why} Send the request again.`),
    );
  }

  async add(chunk: Uint8Array): Promise<void> {
    this.#size += chunk.length;
    this.#chunks.push(chunk);
    if (this.#size <= MEMORY_BYTES) return;
    this.#file ??= await openNameless();
    const bytes = Buffer.concat(this.#chunks);
    this.#chunks = [];
    await this.#file.appendFile(bytes);
  }

  /** The bytes of a whole body. */
  async read(): Promise<Uint8Array> {
    if (this.#file === null) return Buffer.concat(this.#chunks);
    const bytes = Buffer.allocUnsafe(this.#size);
    for (let at = 0; at < bytes.length;) {
      const { bytesRead } = await this.#file.read(bytes, at, bytes.length - at, at);
      if (bytesRead === 0) throw new Error("A body's file is shorter than the body.");
      at += bytesRead;
    }
    return bytes;
  }

  async discard(): Promise<void> {
    const file = this.#file;
    this.#file = null;
    this.#chunks = [];
    await file?.close();
  }
}

/** A file that disappears with its last open descriptor, even if the process is killed. */
async function openNameless(): Promise<FileHandle> {
  const path = join(tmpdir(), `bedrock-upload-${randomUUID()}`);
  const file = await open(path, "wx+", 0o600);
  await unlink(path);
  return file;
}
