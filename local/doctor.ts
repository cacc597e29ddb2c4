/** Owns: what Bedrock needs of a machine, one check for each: whether it is there, and what to do where it is not. */
import { accessSync, constants, statfsSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { openClient } from "../db/connect.ts";
import { ConfigError, loadConfig, type Config, type Env } from "../config.ts";
import { PACKAGED_PROGRAMS } from "../sandbox/environment.ts";
import { HEARTBEAT_TIMEOUT_MS, LEASE_MS } from "../protocol/timing.ts";
import { sandboxOfHost } from "../sandbox/host.ts";
import { sentenceOf } from "./start-error.ts";
import { isDownloadable } from "./temporal/download.ts";
import { existingTemporal } from "./temporal/find.ts";
import { isOn } from "./machine.ts";
import { isFree } from "./ports.ts";
import { postgresBinaries } from "./postgres-binaries.ts";

export type Finding = {
  /** "Perl". */
  readonly name: string;
  /** With a warning, all that Bedrock promises works; with a problem, it does not. */
  readonly status: "ok" | "warning" | "problem";
  /** What was found: a part of a sentence. */
  readonly found: string;
  /** What to do; empty where nothing is to be done. */
  readonly fix: string;
};

type Check = (config: Config, env: Env) => Promise<Omit<Finding, "name">> | Omit<Finding, "name">;

const ok = (found: string) => ({ status: "ok", found, fix: "" }) as const;
const warning = (found: string, fix: string) => ({ status: "warning", found, fix }) as const;
const problem = (found: string, fix: string) => ({ status: "problem", found, fix }) as const;

/** Bytes. A long conversation with images has some ten megabytes. */
const DISK_NEEDED = 1_000_000_000;
/** Milliseconds. */
const PATIENCE = 3_000;
/** Milliseconds by which clocks of two machines may differ (docs/temporal.md). */
const CLOCKS_DIFFER = HEARTBEAT_TIMEOUT_MS - LEASE_MS;
/** Of the system's own parts, none is older. */
const EARLIEST = Date.parse("2026-01-01T00:00:00Z");

const CHECKS: { readonly [name: string]: Check } = {
  Node: () => {
    const [major = 0] = process.versions.node.split(".").map(Number);
    const found = `${process.versions.node} on ${process.platform}`;
    if (process.platform !== "linux")
      return problem(
        found,
        "Bedrock needs Linux; on Windows WSL 2 serves, elsewhere a container or virtual machine.",
      );
    return major >= 22 ? ok(found) : warning(found, "Node 20 is out of support: install Node 24.");
  },
  Perl: (_, env) => program(env, "perl", "the agent has no commands without it"),
  git: (_, env) =>
    onPath(env, "git")
      ? ok("is on PATH")
      : problem("is not on PATH; agents use it", "Install it. On Debian: apt-get install git"),
  ripgrep: (_, env) => {
    if (PACKAGED_PROGRAMS.some((folder) => isOn(folder, "rg"))) return ok("comes as a package");
    return onPath(env, "rg")
      ? ok("is on PATH")
      : problem("is not installed; the agent cannot search without it", NO_PACKAGE);
  },
  Landlock: async () => {
    const sandbox = await sandboxOfHost();
    switch (sandbox.kind) {
      case "available":
        return ok(`ABI ${sandbox.abi}: Restricted mode works`);
      case "unavailable":
        return problem(sandbox.reason, "Without it every conversation is Unrestricted, and says so.");
      case "unknown":
        return problem(sandbox.reason, "As long as that is so, no conversation can be made.");
    }
  },
  Temporal: async ({ temporalAddress: address, temporalNamespace: namespace }, env) => {
    if (address !== null) {
      // It takes a while to load.
      const { waitForTemporal } = await import("./temporal/server.ts");
      return waitForTemporal(address, { namespace, within: PATIENCE }).then(
        () => ok(`answers at ${address}, and has the namespace ${namespace}`),
        (error: unknown) => problem(sentenceOf(error), "Start it, or correct TEMPORAL_ADDRESS."),
      );
    }
    const binary = await existingTemporal(env);
    if (binary !== null) return ok(`server ${binary.server}`);
    if (await isDownloadable(env)) return warning("is not here yet", "The first start downloads it.");
    return onPath(env, "go")
      ? warning("is not here yet", "The first start builds it with Go, in some minutes.")
      : problem(
          "is not here, and cannot be downloaded",
          "Install the Temporal CLI (https://docs.temporal.io/cli), or Go 1.19 or newer, which builds it.",
        );
  },
  Postgres: async ({ databaseUrl }) => {
    if (databaseUrl === null) {
      try {
        await postgresBinaries();
        return ok("comes as a package");
      } catch (error) {
        return problem("is not installed", (error as Error).message);
      }
    }
    try {
      const { version } = await askPostgres(databaseUrl);
      return ok(`server ${version} at DATABASE_URL`);
    } catch (error) {
      return problem(
        `does not answer at DATABASE_URL: ${(error as Error).message}`,
        "Start it, or correct the address.",
      );
    }
  },
  key: ({ scriptedModel, anthropicApiKey }) =>
    scriptedModel
      ? warning("there is none: the built-in scripted model answers", "Set ANTHROPIC_API_KEY for a real one.")
      : anthropicApiKey === null
        ? problem("there is none", "Set ANTHROPIC_API_KEY.")
        : ok("ANTHROPIC_API_KEY is set"),
  port: async ({ port, host }) => {
    if (port === 0 || (await isFree(port, host))) return ok(port === 0 ? "any free one" : `${port} is free`);
    const answer = await fetch(`http://127.0.0.1:${port}/healthz`, { signal: AbortSignal.timeout(PATIENCE) })
      .then((response) => response.json() as Promise<{ readonly sandbox?: unknown }>)
      .catch(() => null);
    return answer !== null && "sandbox" in answer
      ? ok(`Bedrock answers at ${port}`)
      : problem(
          `nothing can listen on ${host}:${port}: another program does, or the address is not this machine's`,
          "Stop it, or set PORT to another one.",
        );
  },
  disk: ({ dataDir }) => {
    const folder = existing(dataDir);
    try {
      accessSync(folder, constants.W_OK);
    } catch {
      return problem(`${folder} can not be written`, "Set DATA_DIR to a folder of your own.");
    }
    const { bavail, bsize } = statfsSync(folder);
    const free = bavail * bsize;
    const found = `${(free / 1e9).toFixed(1)} GB free in ${folder}`;
    return free > DISK_NEEDED
      ? ok(found)
      : problem(found, "Make room: 1 GB at least, or set DATA_DIR elsewhere.");
  },
  clock: async ({ databaseUrl }) => {
    const now = new Date();
    if (now.getTime() < EARLIEST) return problem(`says ${now.toISOString()}`, SET_CLOCK);
    const ahead = databaseUrl === null ? null : await aheadOfPostgres(databaseUrl).catch(() => null);
    if (ahead === null || Math.abs(ahead) < CLOCKS_DIFFER) return ok(now.toISOString());
    const difference = `${Math.abs(ahead / 1000).toFixed(1)} s ${ahead > 0 ? "ahead of" : "behind"}`;
    return problem(`is ${difference} that of Postgres`, SET_CLOCK);
  },
};

const NO_PACKAGE = "Run npm ci with optional dependencies.";
const SET_CLOCK = "Set it, best by NTP: retries and time limits go by it.";

/** All checks, in a fixed order. */
export async function examine(env: Env): Promise<readonly Finding[]> {
  let config: Config;
  try {
    config = loadConfig(env);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return error.problems.map((found) => ({
      name: "settings",
      status: "problem",
      found,
      fix: "Correct it.",
    }));
  }
  return Promise.all(
    Object.entries(CHECKS).map(async ([name, check]) => ({ name, ...(await check(config, env)) })),
  );
}

const onPath = (env: Env, name: string): boolean => isOn(env["PATH"] ?? "", name);

const program = (env: Env, name: string, why: string) =>
  onPath(env, name)
    ? ok("is on PATH")
    : problem(`is not on PATH; ${why}`, `Install it. On Debian: apt-get install ${name}`);

/** The folder itself, or the nearest above it that exists. */
function existing(folder: string): string {
  try {
    statSync(folder);
    return folder;
  } catch {
    return dirname(folder) === folder ? folder : existing(dirname(folder));
  }
}

/** The version of the server, and its clock in milliseconds since the epoch. */
async function askPostgres(url: string): Promise<{ readonly version: string; readonly now: number }> {
  const client = openClient(url, "bedrock doctor");
  try {
    const asked = client<{ version: string; now: number }[]>`
      select current_setting('server_version') as version,
             (extract(epoch from clock_timestamp()) * 1000)::float8 as now`;
    const [row] = await Promise.race([asked, tooLate()]);
    if (row === undefined) throw new Error("no answer");
    return row;
  } finally {
    await client.end({ timeout: 1 });
  }
}

/** Milliseconds by which this clock is ahead, as far as the time of the way does not explain it. */
async function aheadOfPostgres(url: string): Promise<number> {
  const asked = Date.now();
  const { now } = await askPostgres(url);
  const answered = Date.now();
  return now < asked ? asked - now : Math.min(0, answered - now);
}

const tooLate = (): Promise<never> =>
  new Promise((_, reject) => {
    setTimeout(() => reject(new Error("no answer in time")), PATIENCE).unref();
  });
