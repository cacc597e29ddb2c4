/**
 * Owns: building the page: from `web/` and what it imports to `build/web/`, once per content of the sources.
 * `node local/build-web.mjs` does it alone. Plain JavaScript, as run.mjs.
 *
 * - `index.html` and `docs.html`: their addresses `/assets/<name>.js` and `.css` get the digest of the content.
 * - `assets/`: all that these load. A name contains the digest of the content, so it may be kept for ever.
 * - Each `web/<name>-worker.ts` is a program of its own. The page knows its address as `<NAME>_WORKER_URL`
 *   (web/globals.d.ts).
 * - The icons, and the manifest that makes the page installable.
 * - Whatever gets smaller by it also lies there as `.br` and `.gz`.
 *
 * A build is a folder of its own, and the file `current` has its name: nobody finds half of one. The build before stays
 * for those who are just reading it.
 */
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { brotliCompress, constants, gzip } from "node:zlib";
import { digestOf, ROOT } from "./sources.mjs";

const SOURCES = join(ROOT, "web");
const BUILDS = join(ROOT, "build", "web");
const CURRENT = join(BUILDS, "current");
/** web/ imports these rooms (test/support/rooms.ts). */
const FOLDERS = ["web", "client", "machine", "protocol"];

/** Each page, the assets that it names, and their sources. */
const PAGES = {
  "index.html": { "main.js": "main.tsx", "main.css": "style.css" },
  "docs.html": { "docs.js": "docs.ts", "docs.css": "docs.css" },
};
const COPIED = ["manifest.webmanifest", "icon.svg", "icon-waiting.svg"];
/** Pixels. A system may cut a maskable icon to any shape, so its background has no corners of its own. */
const ICONS = [
  { name: "icon-192.png", from: "icon.svg", size: 192 },
  { name: "icon-512.png", from: "icon.svg", size: 512 },
  { name: "icon-maskable-512.png", from: "icon-maskable.svg", size: 512 },
  { name: "icon-touch-180.png", from: "icon-maskable.svg", size: 180 },
];

/**
 * Builds the page if its sources changed.
 *
 * @param {(line: string) => void} say prints a line when that takes work
 * @returns {Promise<string | null>} what failed, in words for a person; null: nothing did
 */
export async function buildPage(say) {
  try {
    const name = digestOf({ folders: FOLDERS, files: ["local/build-web.mjs"], pattern: /./ });
    const before = currentBuild();
    if (before === name) return null;
    say("Building the page …");
    const temporary = join(BUILDS, `.${name}.${process.pid}`);
    mkdirSync(join(temporary, "assets"), { recursive: true });
    try {
      await buildInto(temporary);
      publish(temporary, name);
    } finally {
      rmSync(temporary, { recursive: true, force: true });
    }
    for (const old of readdirSync(BUILDS)) {
      const isKept = old.startsWith(".") ? isUnderWay(old) : ["current", name, before].includes(old);
      if (!isKept) rmSync(join(BUILDS, old), { recursive: true, force: true });
    }
    return null;
  } catch (error) {
    return `The page could not be built: ${sentenceOf(error)}`;
  }
}

/** A build that was killed never ends. */
function isUnderWay(temporary) {
  const { mtimeMs } = statSync(join(BUILDS, temporary), { throwIfNoEntry: false }) ?? { mtimeMs: Date.now() };
  return Date.now() - mtimeMs < 600_000;
}

/** null: there is none. */
function currentBuild() {
  if (!existsSync(CURRENT)) return null;
  const name = readFileSync(CURRENT, "utf8");
  return existsSync(join(BUILDS, name)) ? name : null;
}

/** Two processes may build at once. The result of either is good. */
function publish(temporary, name) {
  try {
    renameSync(temporary, join(BUILDS, name));
  } catch (error) {
    if (!existsSync(join(BUILDS, name))) throw error;
  }
  const pointer = `${temporary}.current`;
  writeFileSync(pointer, name);
  renameSync(pointer, CURRENT);
}

async function buildInto(folder) {
  const { build, stop } = await import("esbuild");
  const { default: sharp } = await import("sharp");
  // Each program is a build of its own: two of them in one would have to load what they share as one more file.
  const bundle = async (assets, define = {}) => {
    const { metafile } = await build(optionsFor(folder, assets, define));
    return outputsOf(metafile);
  };
  try {
    const define = {};
    for (const source of workerFiles()) {
      const name = basename(source, ".ts").replaceAll("-", "_").toUpperCase();
      define[`${name}_URL`] = JSON.stringify((await bundle({ [source]: source })).addressOf(source));
    }
    for (const [page, assets] of Object.entries(PAGES)) {
      writeFileSync(join(folder, page), htmlOf(page, assets, await bundle(assets, define)));
    }
  } finally {
    await stop();
  }
  for (const name of COPIED) writeFileSync(join(folder, name), readFileSync(join(SOURCES, name)));
  await Promise.all(
    ICONS.map(({ name, from, size }) =>
      sharp(join(SOURCES, from), { density: 300 }).resize(size, size).png().toFile(join(folder, name)),
    ),
  );
  await compressAll(folder);
}

const optionsFor = (folder, assets, define) => ({
  absWorkingDir: ROOT,
  entryPoints: Object.entries(assets).map(([name, source]) => ({
    in: join(SOURCES, source),
    out: name.replace(/\.\w+$/, ""),
  })),
  outdir: folder,
  outbase: SOURCES,
  entryNames: "assets/[name]-[hash]",
  chunkNames: "assets/[name]-[hash]",
  bundle: true,
  splitting: true,
  minify: true,
  format: "esm",
  target: "es2022",
  jsx: "automatic",
  define: { "process.env.NODE_ENV": '"production"', ...define },
  metafile: true,
  logLevel: "silent",
});

const workerFiles = () => readdirSync(SOURCES).filter((name) => name.endsWith("-worker.ts"));

/** The addresses of what was built. */
function outputsOf({ outputs }) {
  const addressIn = (output) => `/assets/${basename(output)}`;
  const outputOf = (source) => {
    const isOf = ([, { entryPoint }]) => entryPoint === `web/${source}`;
    return Object.entries(outputs).find(isOf)[0];
  };
  const loadedBy = (output) =>
    outputs[output].imports
      .filter(({ kind }) => kind === "import-statement")
      .flatMap(({ path }) => [path, ...loadedBy(path)]);
  return {
    addressOf: (source) => addressIn(outputOf(source)),
    /** Chunks that are loaded along with it. */
    chunksOf: (source) => [...new Set(loadedBy(outputOf(source)))].map(addressIn),
  };
}

/** The page with the addresses of its assets. Without the hints, a browser asks for a chunk after its importer came. */
function htmlOf(page, assets, { addressOf, chunksOf }) {
  return Object.entries(assets).reduce(
    (html, [name, source]) => {
      const written = `"/assets/${name}"`;
      if (!html.includes(written)) throw new Error(`web/${page} does not load ${written}.`);
      const hints = chunksOf(source).map((chunk) => `<link rel="modulepreload" href="${chunk}" />`);
      return html.replace(written, `"${addressOf(source)}"`).replace("</head>", `${hints.join("")}</head>`);
    },
    readFileSync(join(SOURCES, page), "utf8"),
  );
}

async function compressAll(folder) {
  const names = readdirSync(folder, { recursive: true }).filter((name) =>
    /\.(js|css|html|svg|webmanifest)$/.test(name),
  );
  await Promise.all(
    names.map(async (name) => {
      const path = join(folder, name);
      const content = readFileSync(path);
      const br = await promisify(brotliCompress)(content, { params: BROTLI });
      const gz = await promisify(gzip)(content, { level: 9 });
      if (br.length < content.length) writeFileSync(`${path}.br`, br);
      if (gz.length < content.length) writeFileSync(`${path}.gz`, gz);
    }),
  );
}

/** The best quality takes three times as long for a twentieth less. */
const BROTLI = { [constants.BROTLI_PARAM_QUALITY]: 9 };

/** esbuild's errors say where they are. */
function sentenceOf(error) {
  const [first] = error?.errors ?? [];
  if (first === undefined) return error instanceof Error ? error.message : String(error);
  const { text, location } = first;
  return location === null ? text : `${location.file}:${location.line}:${location.column + 1}: ${text}`;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const problem = await buildPage((line) => console.log(line));
  if (problem !== null) console.error(problem);
  process.exitCode = problem === null ? 0 : 1;
}
