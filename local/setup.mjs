/**
 * Owns: the prerequisites of everything else in the project: a Node that is new enough and the packages of
 * package-lock.json, patched. Plain JavaScript without dependencies: it runs before `node_modules` exists.
 *
 * `--test` also gets the Temporal server, which may take minutes once, with its progress on the terminal.
 */
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { nodeProblem } from "./node-version.mjs";

const ROOT = join(dirname(fileURLToPath(import.meta.url)), "..");
/** Holds the hash of the lock and of the patches that the packages were installed from. */
const STAMP = join(ROOT, "node_modules", ".bedrock-setup");

try {
  const problem = nodeProblem();
  if (problem !== null) throw new Error(problem);
  await ensurePackages();
  if (process.argv.includes("--test")) await ensureTemporal();
} catch (error) {
  console.error(error instanceof Error ? error.message : String(error));
  process.exitCode = 1;
}

async function ensurePackages() {
  const lock = readFileSync(join(ROOT, "package-lock.json"), "utf8");
  const patches = readdirSync(join(ROOT, "patches")).map((name) =>
    readFileSync(join(ROOT, "patches", name), "utf8"),
  );
  const wanted = createHash("sha256")
    .update(`${process.platform} ${process.arch} ${lock} ${patches.join("")}`)
    .digest("hex");
  if (existsSync(STAMP) && readFileSync(STAMP, "utf8") === wanted) return;
  if (existsSync(STAMP) || !matches(JSON.parse(lock))) {
    const output = await npmCi();
    if (output !== null) throw new Error(explain(output));
  }
  const { patchPackages } = await import("./patches.mjs");
  patchPackages(ROOT);
  writeFileSync(STAMP, wanted);
}

/** True after `npm ci` by hand: npm's record of the installed packages agrees with the lock. */
function matches(lock) {
  try {
    const noted = join(ROOT, "node_modules", ".package-lock.json");
    const installed = JSON.parse(readFileSync(noted, "utf8")).packages;
    return Object.entries(lock.packages).every(([path, wanted]) => {
      if (path === "") return true;
      const found = installed[path];
      if (found === undefined) return wanted.optional === true && !isForHere(wanted);
      return found.version === wanted.version && found.integrity === wanted.integrity;
    });
  } catch {
    return false;
  }
}

/** An optional package that is made for this very platform. */
function isForHere({ os, cpu, libc }) {
  if (!os?.includes(process.platform) || !cpu?.includes(process.arch)) return false;
  return (
    libc === undefined ||
    libc.includes(process.report.getReport().header.glibcVersionRuntime ? "glibc" : "musl")
  );
}

/** Resolves to null, or to npm's output when it failed. */
function npmCi() {
  const startedAt = Date.now();
  const seconds = () => `${Math.round((Date.now() - startedAt) / 1000)} s`;
  console.log("Installing the packages of package-lock.json (npm ci) …");
  const timer = setInterval(() => console.log(`Installing … ${seconds()}`), 5000);
  // The npm that runs this script, if one does; else the one on PATH.
  const runner = process.env.npm_execpath;
  const args = ["ci", "--no-audit", "--no-fund", "--loglevel=error"];
  const options = {
    cwd: ROOT,
    // A package below swagger-ui-dist tells a server of each installation.
    env: { ...process.env, SCARF_ANALYTICS: "false" },
    stdio: ["ignore", "pipe", "pipe"],
  };
  const npm = runner ? spawn(process.execPath, [runner, ...args], options) : spawn("npm", args, options);
  for (const signal of ["SIGINT", "SIGTERM"]) {
    process.once(signal, () => {
      npm.kill(signal);
      process.exit(1);
    });
  }
  let output = "";
  for (const stream of [npm.stdout, npm.stderr]) stream.on("data", (chunk) => (output += chunk));
  return new Promise((resolve) => {
    npm.once("error", (error) => resolve(`${error.code}: ${error.message}`));
    npm.once("close", (code) => resolve(code === 0 ? null : output));
  }).finally(() => {
    clearInterval(timer);
    process.removeAllListeners("SIGINT");
    process.removeAllListeners("SIGTERM");
    console.log(`Installing: ${seconds()}`);
  });
}

function explain(output) {
  if (output.startsWith("ENOENT")) {
    return "npm is not on PATH. It comes with Node: install Node from https://nodejs.org and start again.";
  }
  if (/ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|network/i.test(output)) {
    return `The package registry cannot be reached, and the packages are not all in npm's cache. Check the network or npm's proxy settings and start again.\n${cause(output)}`;
  }
  return `npm ci failed:\n${cause(output)}`;
}

/** The cause in npm's output: its first lines, without its own usage text and stacks. */
function cause(output) {
  const lines = output.split("\n").filter((line) => !/^npm warn|^\s+at |^(npm error)?\s*$/.test(line));
  const usage = lines.findIndex((line) => /Clean install a project|Usage:/.test(line));
  return lines.slice(0, usage < 0 ? 12 : Math.min(usage, 12)).join("\n");
}

async function ensureTemporal() {
  const program = join(ROOT, "local", "temporal", "ensure.ts");
  const { register } = await import(
    pathToFileURL(join(ROOT, "node_modules", "tsx", "dist", "esm", "api", "index.mjs"))
  );
  register();
  await import(pathToFileURL(program));
}
