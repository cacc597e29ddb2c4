/**
 * Owns: where the `temporal` program comes from: PATH, the cache, the official download, a build; in this order. A
 * downloaded or built program is kept in the cache, under the release's version. Only one start at a time makes it.
 */
import { accessSync, constants, mkdirSync, statSync } from "node:fs";
import { rm } from "node:fs/promises";
import { homedir } from "node:os";
import { delimiter, isAbsolute, join } from "node:path";
import { lock } from "../lock.ts";
import type { Report } from "../progress.ts";
import { sentenceOf, StartError } from "../start-error.ts";
import { buildTemporal } from "./build.ts";
import { downloadTemporal } from "./download.ts";
import { DOWNLOADS, platformName, PUSHED_CANCEL, RELEASE, type Release } from "./release.ts";
import { serverVersion, type ServerVersion } from "./version.ts";

export type TemporalBinary = {
  readonly path: string;
  readonly source: "path" | "cache" | "download" | "build";
  readonly server: string;
  /** A sentence that the user should read; else null. */
  readonly warning: string | null;
};

export type FindOptions = {
  readonly onProgress?: Report;
  /** PATH, HOME, XDG_CACHE_HOME, and TEMPORAL_DOWNLOADS for a mirror; process.env by default. */
  readonly env?: NodeJS.ProcessEnv;
  readonly release?: Release;
  readonly signal?: AbortSignal;
};

/**
 * Finds the program of a Temporal server, or makes it. A build takes minutes; an existing program, milliseconds.
 *
 * @throws StartError with what was tried and exactly what to install.
 */
export async function ensureTemporalBinary(options: FindOptions = {}): Promise<TemporalBinary> {
  const { env = process.env, release = RELEASE, onProgress = () => undefined, signal } = options;
  const failures: string[] = [];

  const installed = onPath(env["PATH"] ?? "");
  if (installed !== null) {
    const version = await serverVersion(installed);
    if (version !== null) return found(installed, "path", version);
    failures.push(`${installed} does not answer to --version`);
  } else failures.push("there is no temporal on PATH");

  const cached = cachedProgram(env, release);
  const early = await fromCache(cached);
  if (early !== null) return early;

  mkdirSync(cacheFolder(env), { recursive: true });
  const waiting = () => onProgress("another start is getting the Temporal server, waiting for it");
  const held = await lock(`${cached}.lock`, waiting, signal);
  try {
    const late = await fromCache(cached);
    if (late !== null) return late;
    await rm(cached, { force: true });

    const common = { to: cached, onProgress, ...(signal === undefined ? {} : { signal }) };
    const ways = {
      download: () => downloadTemporal({ ...common, release, base: env["TEMPORAL_DOWNLOADS"] ?? DOWNLOADS }),
      build: () => buildTemporal({ ...common, program: "cli", env }),
    };
    for (const source of ["download", "build"] as const) {
      try {
        await ways[source]();
        const version = await serverVersion(cached);
        if (version !== null) return found(cached, source, version);
        failures.push(`the program of the ${source} does not run on this machine`);
        await rm(cached, { force: true });
      } catch (error) {
        signal?.throwIfAborted();
        failures.push(sentenceOf(error));
      }
    }
  } finally {
    held.release();
  }
  throw new StartError(advice(failures));
}

/** The program as it is, on PATH or in the cache; null: the next start has to get it. */
export async function existingTemporal(env: NodeJS.ProcessEnv): Promise<TemporalBinary | null> {
  const installed = onPath(env["PATH"] ?? "");
  const version = installed === null ? null : await serverVersion(installed);
  if (installed !== null && version !== null) return found(installed, "path", version);
  return fromCache(cachedProgram(env, RELEASE));
}

const cachedProgram = (env: NodeJS.ProcessEnv, { version }: Release): string =>
  join(cacheFolder(env), `temporal-${version}-${platformName()}`);

/** XDG_CACHE_HOME/bedrock, ~/.cache/bedrock by default. */
export function cacheFolder(env: NodeJS.ProcessEnv): string {
  const xdg = env["XDG_CACHE_HOME"];
  const base = xdg !== undefined && isAbsolute(xdg) ? xdg : join(env["HOME"] ?? homedir(), ".cache");
  return join(base, "bedrock");
}

function onPath(path: string): string | null {
  for (const folder of path.split(delimiter)) {
    if (!isAbsolute(folder)) continue;
    const file = join(folder, "temporal");
    try {
      accessSync(file, constants.X_OK);
      if (statSync(file).isFile()) return file;
    } catch {
      // Not here.
    }
  }
  return null;
}

async function fromCache(path: string): Promise<TemporalBinary | null> {
  const version = await serverVersion(path);
  return version === null ? null : found(path, "cache", version);
}

function found(path: string, source: TemporalBinary["source"], version: ServerVersion): TemporalBinary {
  const [major, minor] = PUSHED_CANCEL;
  const old = version.major < major || (version.major === major && version.minor < minor);
  const warning = old
    ? `${path} brings the server ${version.text}: before ${major}.${minor}, a cancel reaches a running tool with its next heartbeat only and takes longer.`
    : null;
  return { path, source, server: version.text, warning };
}

function advice(failures: readonly string[]): string {
  return [
    "No Temporal server could be found or made:",
    ...failures.map((failure) => `  - ${failure}`),
    "Do one of these and start again:",
    "  - install the Temporal CLI so that `temporal` is on PATH: https://docs.temporal.io/cli",
    "  - install Go 1.19 or newer (https://go.dev/dl); the server is then built, once",
    "  - set TEMPORAL_ADDRESS to the host:port of a Temporal server that runs already",
  ].join("\n");
}
