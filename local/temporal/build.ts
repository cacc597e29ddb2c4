/**
 * Owns: building Temporal's programs from their sources with Go. The CLI cannot be installed as a module by itself,
 * because its go.mod has a `replace`. So `wrapper/` is a module of its own that depends on it, with every checksum in
 * its go.sum.
 */
import { execFile, spawn } from "node:child_process";
import { mkdtemp, readFile, rename, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";
import type { Report } from "../progress.ts";
import { sentenceOf, StartError } from "../start-error.ts";
import { platformName, RELEASE } from "./release.ts";

/** The oldest version that was tried; Debian's present one. */
const OLDEST_GO: readonly [major: number, minor: number] = [1, 19];
/** From this version on, Go itself fetches the newer toolchain that a module asks for. */
const SELF_UPDATING_GO: readonly [major: number, minor: number] = [1, 21];
const WRAPPER = join(import.meta.dirname, "wrapper");
/** The program says by itself which version it is, unless it is the CLI. */
const VERSION = `-X github.com/temporalio/cli/internal/temporalcli.Version=${RELEASE.version}`;

/** The packages of the wrapper module. The product uses `cli`; the others are a server for production, on SQL. */
export const PROGRAMS = {
  cli: "github.com/temporalio/cli/cmd/temporal",
  server: "go.temporal.io/server/cmd/server",
  sqlTool: "go.temporal.io/server/cmd/tools/sql",
} as const;

const run = promisify(execFile);

export type BuildOptions = {
  readonly program: keyof typeof PROGRAMS;
  /** Where the program is put, atomically. Its folder exists. */
  readonly to: string;
  readonly onProgress: Report;
  readonly env?: NodeJS.ProcessEnv;
  readonly signal?: AbortSignal;
};

/** @throws StartError that says what is missing; `to` is untouched then. */
export async function buildTemporal(options: BuildOptions): Promise<void> {
  const { program, to, onProgress } = options;
  const env = buildEnvironment(options.env ?? process.env);
  const go = await findGo(env, onProgress);
  const folder = await mkdtemp(join(dirname(to), "build-"));
  try {
    const built = join(folder, program);
    const flags = ["-v", "-trimpath", `-ldflags=-s -w ${VERSION}`, "-o", built];
    await goBuild(go, [...flags, PROGRAMS[program]], env, onProgress, options.signal);
    await rename(built, to);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Keeps the user's own Go settings, except those that would change what is built. */
function buildEnvironment(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return {
    ...env,
    GOFLAGS: "-mod=readonly -buildvcs=false",
    GOWORK: "off",
    GOTOOLCHAIN: "auto",
    CGO_ENABLED: "0",
    GO111MODULE: "on",
  };
}

/** The `go` to build with. */
async function findGo(env: NodeJS.ProcessEnv, onProgress: Report): Promise<string> {
  const needed = `Go ${OLDEST_GO.join(".")} or newer`;
  // Runs in the root folder: in the wrapper's folder, its go.mod would make Go fetch a toolchain first.
  const version = await run("go", ["version"], { env, cwd: "/" }).catch(() => null);
  if (version === null) throw new StartError(`Go is not installed (${needed} can build it)`);
  const [, major = "0", minor = "0"] = /go(\d+)\.(\d+)/.exec(version.stdout) ?? [];
  const isAtLeast = ([leastMajor, leastMinor]: readonly [number, number]) =>
    Number(major) > leastMajor || (Number(major) === leastMajor && Number(minor) >= leastMinor);
  if (isAtLeast(SELF_UPDATING_GO)) return "go";
  if (!isAtLeast(OLDEST_GO))
    throw new StartError(`Go ${major}.${minor} is too old to build it (${needed} can)`);
  onProgress("fetching a newer Go");
  return fetchToolchain(env);
}

/**
 * Fetches a toolchain for an older Go, as a newer Go does by itself. Toolchains are modules, verified like any other.
 */
async function fetchToolchain(env: NodeJS.ProcessEnv): Promise<string> {
  const wanted = /^go (\S+)$/m.exec(await readFile(join(WRAPPER, "go.mod"), "utf8"))?.[1] ?? "";
  const platform = platformName().replace("_", "-");
  const module = `golang.org/toolchain@v0.0.1-go${wanted}.${platform}`;
  try {
    const { stdout } = await run("go", ["mod", "download", "-json", module], {
      env: { ...env, GOFLAGS: "" },
      cwd: "/",
    });
    const { Dir: root } = JSON.parse(stdout) as { Dir: string };
    // Go unpacks a module's files without the right to run them.
    await run("chmod", ["-R", "u+wx", join(root, "bin"), join(root, "pkg", "tool")]);
    return join(root, "bin", "go");
  } catch (error) {
    throw new StartError(`Go ${wanted} could not be fetched: ${sentenceOf(error)}`);
  }
}

function goBuild(
  program: string,
  args: readonly string[],
  env: NodeJS.ProcessEnv,
  onProgress: Report,
  signal: AbortSignal | undefined,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const go = spawn(program, ["build", ...args], {
      cwd: WRAPPER,
      env,
      stdio: ["ignore", "ignore", "pipe"],
      ...(signal === undefined ? {} : { signal }),
    });
    let downloaded = 0;
    let compiled = 0;
    const said: string[] = [];
    createInterface({ input: go.stderr }).on("line", (line) => {
      if (line.startsWith("go: downloading ")) downloaded++;
      else if (/^[\w.~-]+(\/[\w.~-]+)*$/.test(line)) compiled++;
      else said.push(line);
      onProgress(
        compiled === 0
          ? `${downloaded} modules downloaded`
          : `${compiled} packages compiled, this takes some minutes once`,
      );
    });
    go.once("error", reject);
    go.once("close", (code) => {
      if (code === 0) resolve();
      else reject(new StartError(`go build failed: ${said.slice(-3).join(" | ") || `exit code ${code}`}`));
    });
  });
}
