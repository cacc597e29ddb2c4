/**
 * Owns: running one of our programs, as a user does: `node local/run.mjs worker.ts`. All programs are compiled once per
 * content of the sources, and the result is kept. Compiling at each import (tsx) costs every process more than a
 * second. Plain JavaScript: it runs the TypeScript. Packages are not compiled, but imported from `node_modules`.
 *
 * `npm start` also builds the page, where its sources changed (build-web.mjs).
 *
 * `--compile` in place of a program compiles and builds only. A program followed by `--secrets-fd=3` gets its secrets
 * by that descriptor (secrets.mjs). What follows a program is for the program.
 */
import { existsSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { closeDebugger, closeMemory } from "./closed-memory.mjs";
import { closeInherited } from "./descriptors.mjs";
import { receiveSecrets, SecretError, takeSecrets } from "./secrets.mjs";
import { digestOf, ROOT, stateOf } from "./sources.mjs";

const CACHE = join(ROOT, "node_modules", ".cache", "bedrock");
const PROGRAMS = [
  "local/main.ts",
  "local/scripted/main.ts",
  "api/main.ts",
  "api/temporal-ui/main.ts",
  "cli/main.ts",
  "db/main.ts",
  "worker.ts",
];
const FOLDERS = [
  "acp",
  "activities",
  "api",
  "cli",
  "client",
  "db",
  "images",
  "llm",
  "local",
  "machine",
  "observability",
  "protocol",
  "sandbox",
  "tools",
  "worker",
  "workflows",
];

const COMPILE_ONLY = "--compile";

const [, , program = "", option = ""] = process.argv;
if (program !== COMPILE_ONLY && !PROGRAMS.includes(program))
  throw new Error(`Not a program: ${program}. There are ${PROGRAMS.join(", ")}.`);
// These come before anything else: every process that is started later would inherit what is open.
closeDebugger();
const secrets = await secretsBy(option === "--secrets-fd=3" ? 3 : null);
const folder = await compiled();
if (program === COMPILE_ONLY || program === "local/main.ts") await ensureForClients();
if (program !== COMPILE_ONLY) {
  // Reading the maps takes time, which a person would wait for at each command.
  process.setSourceMapsEnabled(program !== "cli/main.ts");
  const { main } = await import(pathToFileURL(join(folder, program.replace(/\.ts$/, ".mjs"))).href);
  await main({ ...process.env, ...secrets }, process.argv.slice(3));
}

/** A secret may come by a descriptor of the environment, and a process that is closed cannot change what it shows. */
async function secretsBy(fd) {
  try {
    const own = takeSecrets();
    closeInherited(fd);
    await closeMemory();
    return fd === null ? own : { ...own, ...receiveSecrets(fd) };
  } catch (error) {
    if (!(error instanceof SecretError)) throw error;
    console.error(error.message);
    process.exit(1);
  }
}

/** The page, and the client for other programs. `npm start` goes on without them: everything else works. */
async function ensureForClients() {
  const [{ buildPage }, { buildClient }] = await Promise.all([
    import("./build-web.mjs"),
    import("./build-client.mjs"),
  ]);
  const problem = await buildPage((line) => console.log(line));
  if (problem === null) await buildClient();
  if (problem === null) return;
  console.error(problem);
  if (program === COMPILE_ONLY) process.exit(1);
  console.error("Starting without it. If it was built before, that page is served.");
}

/** The folder with the programs that were compiled from the present sources. */
async function compiled() {
  const files = ["config.ts", "worker.ts"];
  // The compiled code contains the path of the sources (keepPlaces).
  const sources = { folders: FOLDERS, files, pattern: /\.m?ts$|\.mjs$/, beside: ROOT };
  // To read all sources takes longer than most of what a command does at its start.
  const state = stateOf(sources);
  const known = state === null ? null : join(CACHE, `${state}.is`);
  const digest = known !== null && existsSync(known) ? readFileSync(known, "utf8") : digestOf(sources);
  const folder = join(CACHE, digest);
  if (!existsSync(folder)) await compileTo(folder);
  if (known !== null && !existsSync(known)) remember(known, digest);
  return folder;
}

function remember(known, digest) {
  try {
    writeFileSync(`${known}.${process.pid}`, digest);
    renameSync(`${known}.${process.pid}`, known);
  } catch {
    // A container's image is read-only. The next start reads all sources again.
  }
}

async function compileTo(folder) {
  const { build } = await import("esbuild");
  // Two processes may compile at once. The result of either is good, but not half of one.
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
}

/** Keeps the sources' own paths in the compiled code, so that it finds files that lie beside a source. */
function keepPlaces({ onLoad }) {
  onLoad({ filter: /\.ts$/ }, ({ path }) => ({
    loader: "ts",
    contents: readFileSync(path, "utf8")
      .replaceAll("import.meta.dirname", JSON.stringify(dirname(path)))
      .replaceAll("import.meta.url", JSON.stringify(pathToFileURL(path).href)),
  }));
}
