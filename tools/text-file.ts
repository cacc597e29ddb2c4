/**
 * Owns: text files for the writing tools: a file is read whole, and replaced whole or not at all. A replacement is
 * written beside the file and renamed over it, so that a reader sees the old content or the new, never half. Directly
 * before each lasting effect, a check asserts that the run still goes on. No other turn of the event loop comes between
 * check and effect.
 * Not here: what is changed in the text (edits.ts).
 */
import { randomUUID } from "node:crypto";
import { mkdirSync, renameSync, type Stats } from "node:fs";
import { access, constants, lstat, open, realpath, rm, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Before } from "./diff.ts";
import { isProcessFile } from "./path.ts";
import { assertGoesOn, ToolError, type Cancellation } from "./tool.ts";

/** Bytes of the largest file that is edited, before and after. */
export const MAX_FILE_BYTES = 10 * 1024 * 1024;

export type TextFile = {
  /** Absolute and without links. */
  readonly path: string;
  /** As it stands: a byte order mark and carriage returns are part of it. */
  readonly text: string;
  readonly bytes: Buffer;
};

/** Reads a file that is to be changed. Throws a ToolError unless it is a text file of at most `MAX_FILE_BYTES`. */
export async function readTextFile(file: string): Promise<TextFile> {
  const path = await realpath(file);
  const stats = await stat(path);
  if (stats.isDirectory()) throw new ToolError(`${path} is a directory.`);
  if (!stats.isFile()) throw new ToolError(`${path} is not a regular file.`);
  if (isProcessFile(await realpath(path)))
    throw new ToolError(`${path} belongs to a process and cannot be edited.`);
  const bytes = await readBounded(path);
  if (bytes.includes(0)) throw new ToolError(`${path} is a binary file. Use bash to change it.`);
  return { path, text: decode(path, bytes), bytes };
}

/** Replaces the content of a file if it is still as it was read. Throws a ToolError if another process changed it. */
export async function replaceTextFile(file: TextFile, text: string, ends: Cancellation): Promise<void> {
  await replace(file.path, text, ends, await stat(file.path), async () => {
    if (!(await readBounded(file.path)).equals(file.bytes)) {
      throw new ToolError(
        `${file.path} was changed by something else in the meantime. Nothing was written: read it again.`,
      );
    }
  });
}

/**
 * Makes a text the whole content of a file, whatever was in it. Creates the file, and the directories above it, if it
 * does not exist. Keeps a link, and replaces what it points to. Returns the path without links and the old content.
 */
export async function overwriteFile(
  file: string,
  text: string,
  ends: Cancellation,
): Promise<{ readonly file: string; readonly before: Before; readonly bytes: number }> {
  const path = (await orNull(realpath(file))) ?? file;
  const existing = await orNull(lstat(path));
  if (existing?.isDirectory() === true) throw new ToolError(`${path} is a directory.`);
  if (existing !== null && !existing.isFile()) throw new ToolError(`${path} is not a regular file.`);
  assertGoesOn(ends);
  mkdirSync(dirname(path), { recursive: true });
  let before: Before = { kind: "nothing" };
  await replace(path, text, ends, existing, async () => {
    if (existing !== null) before = await contentOf(path);
  });
  return { file: path, before, bytes: Buffer.byteLength(text) };
}

/** What a file holds; whatever that is, it may be overwritten. */
async function contentOf(path: string): Promise<Before> {
  try {
    return { kind: "text", text: decode(path, await readBounded(path)) };
  } catch {
    return { kind: "unknown" };
  }
}

/** Replaces a file, and keeps its mode and owner. `check` is called last before the old content is gone. */
async function replace(
  path: string,
  text: string,
  ends: Cancellation,
  existing: Stats | null,
  check: () => Promise<void>,
): Promise<void> {
  if (existing !== null) await assertWritable(path, existing);
  const temporary = join(dirname(path), `.${randomUUID()}.tmp`);
  assertGoesOn(ends);
  try {
    const handle = await open(temporary, "wx").catch((error: unknown) => {
      // Names the directory, which denied the access: the model does not know the temporary file.
      throw error instanceof Error ? Object.assign(error, { path: dirname(path) }) : error;
    });
    try {
      await handle.writeFile(text);
      if (existing !== null) {
        // Only root may change the owner of a file, and only root would become the owner by accident.
        if (process.getuid?.() === 0) await handle.chown(existing.uid, existing.gid);
        await handle.chmod(existing.mode & 0o7777);
      }
    } finally {
      await handle.close();
    }
    await check();
    assertGoesOn(ends);
    renameSync(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
}

/**
 * A rename needs only the directory's permission, and root needs none at all. So this checks the file's own permission.
 */
async function assertWritable(path: string, { mode }: Stats): Promise<void> {
  if ((mode & 0o222) === 0) {
    throw new ToolError(`${path} is read-only. If it is meant to be changed, change its permissions first.`);
  }
  await access(path, constants.W_OK);
}

/** Reads no further than the limit, even if the file grows meanwhile. */
async function readBounded(path: string): Promise<Buffer> {
  const handle = await open(path, "r");
  try {
    const { size } = await handle.stat();
    const chunks: Buffer[] = [];
    let total = 0;
    for (let room = size + 1; total <= MAX_FILE_BYTES; room = 64 * 1024) {
      const chunk = Buffer.allocUnsafe(Math.min(room, MAX_FILE_BYTES + 1));
      const { bytesRead } = await handle.read(chunk, 0, chunk.length, null);
      if (bytesRead === 0) return Buffer.concat(chunks);
      chunks.push(chunk.subarray(0, bytesRead));
      total += bytesRead;
    }
  } finally {
    await handle.close();
  }
  throw new ToolError(
    `${path} is larger than ${MAX_FILE_BYTES / 1024 / 1024} MiB, the most that can be edited. Use bash.`,
  );
}

function decode(path: string, bytes: Buffer): string {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new ToolError(
      `${path} is not UTF-8 text, so that an edit would damage the rest of it. Use bash to change or convert it.`,
    );
  }
}

async function orNull<T>(found: Promise<T>): Promise<T | null> {
  try {
    return await found;
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return null;
    throw error;
  }
}
