/**
 * Owns: running one of our programs as a person does: `node local/run.mjs worker.ts`. All of them are compiled once per
 * content of the sources and kept, because compiling on the way in (tsx) costs each process more than a second.
 * Plain JavaScript: it is what runs the TypeScript. Packages stay what they are and are imported from `node_modules`.
 */
import { build } from "esbuild";
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, realpathSync, renameSync, rmSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const ROOT = join(dirname(fileURLToPath(import.meta.url)), "..");
const CACHE = join(ROOT, "node_modules", ".cache", "bedrock");
const PROGRAMS = ["local/main.ts", "local/scripted/main.ts", "api/main.ts", "worker.ts"];
const FOLDERS = [
  "activities",
  "api",
  "db",
  "images",
  "llm",
  "local",
  "machine",
  "sandbox",
  "tools",
  "workflows",
];

const [, , program = ""] = process.argv;
if (!PROGRAMS.includes(program))
  throw new Error(`Not a program: ${program}. There are ${PROGRAMS.join(", ")}.`);
// Programs know that they are the one that was started by their own, real path.
const file = join(realpathSync(await compiled()), program.replace(/\.ts$/, ".mjs"));
// As if it had been started itself.
process.argv.splice(1, 2, file);
process.setSourceMapsEnabled(true);
await import(pathToFileURL(file).href);

/** The folder of the programs that belong to the sources as they are. */
async function compiled() {
  const folder = join(CACHE, hashOfSources());
  if (existsSync(folder)) return folder;
  // Two processes may compile at once; either's result will do, but not half of one.
  const temporary = `${folder}.${process.pid}`;
  await build({
    entryPoints: PROGRAMS.map((entry) => join(ROOT, entry)),
    outdir: temporary,
    outbase: ROOT,
    outExtension: { ".js": ".mjs" },
    bundle: true,
    splitting: true,
    packages: "external",
    platform: "node",
    format: "esm",
    target: "node20",
    sourcemap: "linked",
    logLevel: "warning",
    plugins: [{ name: "places", setup: keepPlaces }],
  });
  try {
    renameSync(temporary, folder);
  } catch {
    rmSync(temporary, { recursive: true });
  }
  for (const name of readdirSync(CACHE)) {
    if (!name.startsWith(basename(folder))) rmSync(join(CACHE, name), { recursive: true, force: true });
  }
  return folder;
}

/** Files that lie beside a source are found from where the source is, not from where it was compiled to. */
function keepPlaces({ onLoad }) {
  onLoad({ filter: /\.ts$/ }, ({ path }) => ({
    loader: "ts",
    contents: readFileSync(path, "utf8")
      .replaceAll("import.meta.dirname", JSON.stringify(dirname(path)))
      .replaceAll("import.meta.url", JSON.stringify(pathToFileURL(path).href)),
  }));
}

function hashOfSources() {
  // The place of the sources is in what is compiled (keepPlaces).
  const hash = createHash("sha256")
    .update(ROOT)
    .update(readFileSync(join(ROOT, "package-lock.json")));
  const files = FOLDERS.flatMap((folder) =>
    readdirSync(join(ROOT, folder), { recursive: true }).map((name) => join(folder, name)),
  );
  for (const name of ["config.ts", "worker.ts", ...files.filter((name) => name.endsWith(".ts")).sort()]) {
    hash.update(`${name}\n`).update(readFileSync(join(ROOT, name)));
  }
  return hash.digest("hex").slice(0, 16);
}
