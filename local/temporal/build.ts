/**
 * Owns: building the Temporal program from its sources with Go. The CLI cannot be installed as a module by itself (its
 * go.mod has a `replace`), so `wrapper/` is a module of its own that depends on it, with every checksum in its go.sum.
 */
import { execFile, spawn } from "node:child_process";
import { mkdtemp, rename, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";
import type { Report } from "../progress.ts";
import { StartError } from "../start-error.ts";
import { RELEASE } from "./release.ts";

/** From this version on Go fetches by itself the newer toolchain that the module asks for. */
const OLDEST_GO: readonly [major: number, minor: number] = [1, 21];
const PACKAGE = "github.com/temporalio/cli/cmd/temporal";
const VERSION = `-X github.com/temporalio/cli/internal/temporalcli.Version=${RELEASE.version}`;

export type BuildOptions = {
  /** Where the program is put, atomically. Its folder exists. */
  readonly to: string;
  readonly onProgress: Report;
  readonly env?: NodeJS.ProcessEnv;
  readonly signal?: AbortSignal;
};

/** @throws StartError that says what is missing; `to` is untouched then. */
export async function buildTemporal(options: BuildOptions): Promise<void> {
  const { to, onProgress } = options;
  const env = buildEnvironment(options.env ?? process.env);
  await checkGo(env);
  const folder = await mkdtemp(join(dirname(to), "build-"));
  try {
    const program = join(folder, "temporal");
    const flags = ["-v", "-trimpath", `-ldflags=-s -w ${VERSION}`, "-o", program];
    await goBuild([...flags, PACKAGE], env, onProgress, options.signal);
    await rename(program, to);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** The person's own Go settings stay, but for those that would change what is built. */
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

async function checkGo(env: NodeJS.ProcessEnv): Promise<void> {
  const needed = `Go ${OLDEST_GO.join(".")} or newer`;
  // From the root folder: here the wrapper's go.mod would send an older Go to fetch a toolchain first.
  const version = await promisify(execFile)("go", ["version"], { env, cwd: "/" }).catch(() => null);
  if (version === null) throw new StartError(`Go is not installed (${needed} can build it)`);
  const [, major = "0", minor = "0"] = /go(\d+)\.(\d+)/.exec(version.stdout) ?? [];
  const [oldestMajor, oldestMinor] = OLDEST_GO;
  if (Number(major) < oldestMajor || (Number(major) === oldestMajor && Number(minor) < oldestMinor)) {
    throw new StartError(`Go ${major}.${minor} is too old to build it (${needed} can)`);
  }
}

function goBuild(
  args: readonly string[],
  env: NodeJS.ProcessEnv,
  onProgress: Report,
  signal: AbortSignal | undefined,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const go = spawn("go", ["build", ...args], {
      cwd: join(import.meta.dirname, "wrapper"),
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
