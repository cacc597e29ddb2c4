/** Owns: the `ls` tool: a directory's entries with their types and sizes. */
import { lstat, opendir, readlink } from "node:fs/promises";
import type { Dirent } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { readablePath } from "./path.ts";
import { completed, defineTool } from "./tool.ts";

const MAX_SHOWN = 500;
/** Entries that are read at all. In a larger directory only these are sorted, not all. */
const MAX_READ = 20_000;

export const ls = defineTool({
  name: "ls",
  description: `List a directory, hidden entries included: "name/" for a directory, "name -> target" for a link, "name (bytes)" for a file. At most ${MAX_SHOWN} entries in alphabetical order. Works in both modes.`,
  input: z.strictObject({
    path: z
      .string()
      .min(1)
      .optional()
      .describe("Absolute, or relative to the working directory; default: that directory"),
  }),
  async run({ path = "." }, context) {
    const { signal } = context;
    const directory = await readablePath(path, context);
    const entries: Dirent[] = [];
    let isWhole = true;
    for await (const entry of await opendir(directory, { bufferSize: 256 })) {
      signal.throwIfAborted();
      if (entries.length === MAX_READ) {
        isWhole = false;
        break;
      }
      entries.push(entry);
    }
    if (entries.length === 0) return completed("(the directory is empty)");
    entries.sort((a, b) => (a.name < b.name ? -1 : 1));
    const shown = await Promise.all(entries.slice(0, MAX_SHOWN).map((entry) => describe(directory, entry)));
    const more = entries.length - shown.length;
    if (more > 0) shown.push(`[… ${isWhole ? "" : "more than "}${more} more entries …]`);
    return completed(shown.join("\n"));
  },
});

async function describe(directory: string, entry: Dirent): Promise<string> {
  const path = join(directory, entry.name);
  try {
    if (entry.isDirectory()) return `${entry.name}/`;
    if (entry.isSymbolicLink()) return `${entry.name} -> ${await readlink(path)}`;
    if (entry.isFile()) return `${entry.name} (${(await lstat(path)).size} bytes)`;
    return `${entry.name} (special file)`;
  } catch {
    // Gone, or hidden from us, since the directory was read.
    return entry.name;
  }
}
