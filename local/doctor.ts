/** Owns: what Bedrock needs of a machine, one check for each: whether it is there, and what to do where it is not. */
import { accessSync, constants, statfsSync, statSync } from "node:fs";
import { createConnection } from "node:net";
import { dirname, join } from "node:path";
import { openClient } from "../db/connect.ts";
import { ConfigError, loadConfig, type Config, type Env } from "../config.ts";
import { PACKAGED_PROGRAMS } from "../sandbox/environment.ts";
import { sandboxOfHost } from "../sandbox/host.ts";
import { existingTemporal } from "./temporal/find.ts";
import { isOn } from "./machine.ts";
import { isFree } from "./ports.ts";
import { postgresBinaries } from "./postgres-binaries.ts";

export type Finding = {
  /** "Perl". */
  readonly name: string;
  /** A warning leaves something out; with a problem, Bedrock does not work. */
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
      : warning("is not on PATH", "Install it: agents use it. On Debian: apt-get install git"),
  ripgrep: () => {
    const isThere = PACKAGED_PROGRAMS.some((folder) => isProgram(join(folder, "rg")));
    return isThere ? ok("comes as a package") : problem("is not installed", NO_PACKAGE);
  },
  Landlock: async () => {
    const sandbox = await sandboxOfHost();
    switch (sandbox.kind) {
      case "available":
        return ok(`ABI ${sandbox.abi}: Restricted mode works`);
      case "unavailable":
        return warning(sandbox.reason, "Without it every conversation is Unrestricted, and says so.");
      case "unknown":
        return problem(sandbox.reason, "As long as that is so, no conversation can be made.");
    }
  },
  Temporal: async ({ temporalAddress }, env) => {
    if (temporalAddress !== null) return reachable(temporalAddress, "TEMPORAL_ADDRESS");
    const binary = await existingTemporal(env);
    if (binary !== null) return ok(`server ${binary.server}`);
    return onPath(env, "go")
      ? warning("is not here yet", "The first start downloads it, or builds it with Go in some minutes.")
      : warning(
          "is not here yet",
          "The first start downloads it. Where that is not possible, install Go 1.19 or newer.",
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
    const client = openClient(databaseUrl, "bedrock doctor");
    try {
      const asked = client<{ version: string }[]>`select current_setting('server_version') as version`;
      const [row] = await Promise.race([asked, tooLate()]);
      return ok(`server ${row?.version ?? "of an unknown version"} at DATABASE_URL`);
    } catch (error) {
      return problem(
        `does not answer at DATABASE_URL: ${(error as Error).message}`,
        "Start it, or correct the address.",
      );
    } finally {
      await client.end({ timeout: 1 });
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
      : problem(`another program has ${port}`, "Stop it, or set PORT to another one.");
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
  clock: () => {
    const now = new Date();
    return now.getTime() > EARLIEST
      ? ok(now.toISOString())
      : problem(`says ${now.toISOString()}`, "Set it, best by NTP: retries and time limits go by it.");
  },
};

const NO_PACKAGE = "Run npm ci with optional dependencies.";

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

function isProgram(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return statSync(file).isFile();
  } catch {
    return false;
  }
}

/** The folder itself, or the nearest above it that exists. */
function existing(folder: string): string {
  try {
    statSync(folder);
    return folder;
  } catch {
    return dirname(folder) === folder ? folder : existing(dirname(folder));
  }
}

async function reachable(address: string, setting: string) {
  const [, host = "", port = ""] = /^(.*):(\d+)$/.exec(address) ?? [];
  const answers = await new Promise<boolean>((resolve) => {
    const socket = createConnection({ host, port: Number(port), timeout: PATIENCE });
    const end = (isThere: boolean) => () => {
      socket.destroy();
      resolve(isThere);
    };
    for (const event of ["error", "timeout"]) socket.once(event, end(false));
    socket.once("connect", end(true));
  });
  return answers
    ? ok(`answers at ${address}`)
    : problem(`does not answer at ${address}`, `Start it, or correct ${setting}.`);
}

const tooLate = (): Promise<never> =>
  new Promise((_, reject) => {
    setTimeout(() => reject(new Error("no answer in time")), PATIENCE).unref();
  });
