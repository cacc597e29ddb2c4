/**
 * Owns: the built page, read once and kept in memory (some four MB): a request reaches no file system, and a build that
 * is made meanwhile never mixes with the one that is served.
 * Not here: the build (local/build-web.mjs), which request gets which file (page.ts).
 */
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { extname, join } from "node:path";

/** Where the build puts it. */
const BUILDS = join(import.meta.dirname, "..", "build", "web");

const TYPES: { readonly [extension: string]: string } = {
  ".css": "text/css; charset=utf-8",
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".png": "image/png",
  ".svg": "image/svg+xml",
  ".webmanifest": "application/manifest+json",
};

type Bytes = Uint8Array<ArrayBuffer>;

/** How a file can be sent, the smallest first. */
const ENCODINGS = [
  { encoding: "br", extension: ".br" },
  { encoding: "gzip", extension: ".gz" },
] as const;

export type PageFile = {
  readonly type: string;
  /** Weak: it is the same for each encoding. */
  readonly etag: string;
  readonly content: Bytes;
  /** The smallest first; none for a file that does not get smaller. */
  readonly compressed: readonly { readonly encoding: string; readonly content: Bytes }[];
};

/** By name: `index.html`, `assets/main-….js`. */
export type PageFiles = ReadonlyMap<string, PageFile>;

/**
 * @param builds a folder of builds, and a file `current` that names one of them
 * @returns null where nothing was built
 */
export function readPage(builds = BUILDS): PageFiles | null {
  const current = join(builds, "current");
  if (!existsSync(current)) return null;
  const folder = join(builds, readFileSync(current, "utf8"));
  const names = readdirSync(folder, { recursive: true, encoding: "utf8" });
  return new Map(
    names.flatMap((name) => {
      const type = TYPES[extname(name)];
      return type === undefined ? [] : [[name, readFile(join(folder, name), type)] as const];
    }),
  );
}

function readFile(path: string, type: string): PageFile {
  const content = readFileSync(path);
  return {
    type,
    etag: `W/"${createHash("sha256").update(content).digest("hex").slice(0, 16)}"`,
    content,
    compressed: ENCODINGS.filter(({ extension }) => existsSync(path + extension)).map(
      ({ encoding, extension }) => ({ encoding, content: readFileSync(path + extension) }),
    ),
  };
}
