/** Owns: the `write` tool: a whole file at once, so that a reader sees the old content or the new, never half. */
import { randomUUID } from "node:crypto";
import { lstat, mkdir, open, realpath, rename, rm } from "node:fs/promises";
import type { Stats } from "node:fs";
import { basename, dirname, join } from "node:path";
import { z } from "zod";
import { resolvePath } from "./path.ts";
import { completed, defineTool, failed } from "./tool.ts";

export const write = defineTool({
  name: "write",
  description: `Write a text file: creates it, and the directories above it, or replaces its whole content. Disabled in Restricted mode; use request_mode_upgrade to request write access.`,
  input: z.strictObject({
    path: z.string().min(1).describe("Absolute, or relative to the working directory"),
    content: z.string().describe("The whole content of the file"),
  }),
  async run({ path, content }, { cwd, mode, signal }) {
    if (mode === "restricted") {
      return failed(
        "Write tool is disabled in Restricted mode. Use request_mode_upgrade to request write access.",
      );
    }
    const file = await followLinks(resolvePath(cwd, path));
    const existing = await statOrNull(file);
    if (existing?.isDirectory() === true) return failed(`${file} is a directory.`);
    if (existing !== null && !existing.isFile()) return failed(`${file} is not a regular file.`);
    await mkdir(dirname(file), { recursive: true });
    signal.throwIfAborted();
    await replace(file, content, existing);
    const bytes = Buffer.byteLength(content);
    return completed(`${existing === null ? "Created" : "Replaced"} ${file} (${bytes} bytes).`);
  },
});

/** A link is kept, and what it points to is replaced. */
async function followLinks(file: string): Promise<string> {
  try {
    return await realpath(file);
  } catch (error) {
    if (isMissing(error)) return file;
    throw error;
  }
}

async function statOrNull(file: string): Promise<Stats | null> {
  try {
    return await lstat(file);
  } catch (error) {
    if (isMissing(error)) return null;
    throw error;
  }
}

/** Writes beside the file and renames, with the mode and the owner of the file that was there. */
async function replace(file: string, content: string, existing: Stats | null): Promise<void> {
  const temporary = join(dirname(file), `.${basename(file).slice(0, 100)}.${randomUUID()}.tmp`);
  try {
    const handle = await open(temporary, "wx");
    try {
      await handle.writeFile(content);
      if (existing !== null) {
        // Only root may give files away, and only root takes them by accident.
        if (process.getuid?.() === 0) await handle.chown(existing.uid, existing.gid);
        await handle.chmod(existing.mode & 0o7777);
      }
    } finally {
      await handle.close();
    }
    await rename(temporary, file);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
}

const isMissing = (error: unknown): boolean =>
  error instanceof Error && "code" in error && error.code === "ENOENT";
