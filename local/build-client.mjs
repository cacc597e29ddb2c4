/**
 * Owns: building the client for programs outside of this repository (`import … from "bedrock/client"`): one file,
 * `build/client.mjs`, with all that it needs, for browsers and Node. Plain JavaScript, as run.mjs.
 */
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { digestOf, ROOT } from "./sources.mjs";

const BUILD = join(ROOT, "build");
const CLIENT = join(BUILD, "client.mjs");
/** client/ imports these rooms (test/support/rooms.ts). */
const FOLDERS = ["client", "machine", "protocol"];

/** Builds it if its sources changed. */
export async function buildClient() {
  const digest = digestOf({ folders: FOLDERS, files: ["local/build-client.mjs"], pattern: /\.m?ts$/ });
  const banner = `// Built from the sources ${digest}.`;
  if (existsSync(CLIENT) && readFileSync(CLIENT, "utf8").startsWith(banner)) return;
  const { build } = await import("esbuild");
  const { outputFiles } = await build({
    entryPoints: [join(ROOT, "client", "index.ts")],
    bundle: true,
    format: "esm",
    target: "es2022",
    banner: { js: banner },
    write: false,
    logLevel: "silent",
  });
  mkdirSync(BUILD, { recursive: true });
  // Two processes may build at once. Nobody reads half a file.
  const temporary = `${CLIENT}.${process.pid}`;
  for (const { text } of outputFiles) writeFileSync(temporary, text);
  renameSync(temporary, CLIENT);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await buildClient();
