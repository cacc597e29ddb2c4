/**
 * Owns: what the API has to know of the host where tools run. The API calls these as standalone activities, because it
 * may run elsewhere.
 */
import { readdir, stat } from "node:fs/promises";
import { homedir } from "node:os";
import { dirname, isAbsolute, join } from "node:path";
import type { Sandbox } from "../machine/conversation.ts";
import type { HostActivities } from "../protocol/activities.ts";

const LISTED = 200;

export function hostActivities(host: string, sandbox: () => Promise<Sandbox>): HostActivities {
  return {
    describeHost: async () => ({ host, sandbox: await sandbox() }),
    async checkDirectory({ cwd }) {
      if (!isAbsolute(cwd)) return { ok: false, reason: `${cwd} is not an absolute path.` };
      try {
        if (!(await stat(cwd)).isDirectory()) return { ok: false, reason: `${cwd} is not a directory.` };
        return { ok: true, cwd };
      } catch {
        return { ok: false, reason: `${cwd} does not exist on ${host}, or cannot be read.` };
      }
    },
    /** Directories that begin with the path, for completion; without a path, the one to begin in. */
    async listDirectories({ path }) {
      if (path === "") return { directories: [homedir()] };
      if (!isAbsolute(path)) return { directories: [] };
      const parent = path.endsWith("/") ? path : dirname(path);
      const entries = await readdir(parent, { withFileTypes: true }).catch(() => []);
      const candidates = entries
        .map((entry) => ({ entry, directory: join(parent, entry.name) }))
        .filter(({ directory }) => directory.startsWith(path))
        .sort((a, b) => (a.directory < b.directory ? -1 : 1));
      const directories: string[] = [];
      for (const { entry, directory } of candidates) {
        if (directories.length === LISTED) break;
        // A conversation can work in a symbolic link to a directory, too.
        if (entry.isDirectory() || (entry.isSymbolicLink() && (await isDirectory(directory)))) {
          directories.push(directory);
        }
      }
      return { directories };
    },
  };
}

const isDirectory = (path: string): Promise<boolean> =>
  stat(path).then(
    (found) => found.isDirectory(),
    () => false,
  );
