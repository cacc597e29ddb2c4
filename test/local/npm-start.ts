/** Owns: `npm start` as a person runs it, for the tests of its start and its end. */
import { spawn, type ChildProcess } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished } from "vitest";
import { identify, parseIdentity, type ProcessIdentity } from "../../local/process-identity.ts";
import { eventually } from "./support.ts";

export const ROOT = fileURLToPath(new URL("../..", import.meta.url));
export const SLOW = 180_000;

export type Launched = { readonly child: ChildProcess; readonly output: () => string };
export type Started = {
  readonly process: ChildProcess;
  readonly url: string;
  readonly output: () => string;
};

/** What `npm start` runs in the end: for tests that need no npm. */
export const LAUNCHER = [process.execPath, "local/run.mjs", "local/main.ts"] as const;

export function launch(
  dataDir: string,
  port: number,
  env: NodeJS.ProcessEnv = {},
  [command, ...args]: readonly [string, ...string[]] = LAUNCHER,
): Launched {
  const { PATH, HOME, XDG_CACHE_HOME } = process.env;
  const child = spawn(command, args, {
    cwd: ROOT,
    env: { PATH, HOME, XDG_CACHE_HOME, DATA_DIR: dataDir, PORT: String(port), ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.on("data", (chunk: Buffer) => (output += chunk.toString()));
  }
  onTestFinished(async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.kill("SIGTERM");
    await once(child, "exit");
  });
  return { child, output: () => output };
}

export async function start(dataDir: string, port: number, env?: NodeJS.ProcessEnv): Promise<Started> {
  const launched = launch(dataDir, port, env);
  return { process: launched.child, url: await ready(launched), output: launched.output };
}

/** Resolves to the address. */
export function ready({ child, output }: Launched): Promise<string> {
  return eventually(
    "ready",
    () => {
      if (child.exitCode !== null && child.exitCode > 0) throw new Error(output());
      return /^ready (http:\S+)$/m.exec(output())?.[1] ?? null;
    },
    SLOW,
  );
}

/** The output of a start that fails. */
export async function refused(dataDir: string, port: number, env?: NodeJS.ProcessEnv): Promise<string> {
  const { child, output } = launch(dataDir, port, env);
  const [code] = (await once(child, "close")) as [number];
  expect(code).toBe(1);
  expect(output()).not.toMatch(/^\s+at /m);
  return output();
}

/** null for a file that is just being written, or has just gone. */
function identityIn(file: string): ProcessIdentity | null {
  try {
    return parseIdentity(readFileSync(file, "utf8"));
  } catch {
    return null;
  }
}

/** The processes of `npm start` on this folder, Postgres included. */
export function processesOf(dataDir: string): Record<string, ProcessIdentity> {
  const found: Record<string, ProcessIdentity> = {};
  for (const file of readdirSync(join(dataDir, "run"))) {
    if (!/^(api|worker|temporal|scripted)\.json$/.test(file)) continue;
    const identity = identityIn(join(dataDir, "run", file));
    if (identity !== null) found[file.replace(".json", "")] = identity;
  }
  const postmaster = join(dataDir, "pg18", "postmaster.pid");
  const postgres = existsSync(postmaster)
    ? identify(Number.parseInt(readFileSync(postmaster, "utf8"), 10))
    : null;
  if (postgres !== null) found["postgres"] = postgres;
  return found;
}

type State = { readonly state: { readonly kind: string } };

/** A 503 means "not known": the request is repeated with the same id, as the contract says. */
export async function converse(url: string, cwd: string, text: string): Promise<string> {
  const id = randomUUID();
  const open = async () => {
    const response = await fetch(`${url}/api/conversations`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ id, cwd, message: { text, id: "first" } }),
    });
    await response.arrayBuffer();
    return response.status === 503 ? null : response.status;
  };
  expect([201, 409]).toContain(await eventually("a conversation", open, SLOW));
  return id;
}

export async function stateOf(url: string, id: string): Promise<string> {
  const response = await fetch(`${url}/api/conversations/${id}`);
  return ((await response.json()) as State).state.kind;
}
