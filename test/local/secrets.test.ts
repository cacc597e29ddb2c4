/** How a program gets its secrets, tested with an API on its own, which starts without servers. */
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { chmodSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { expect, onTestFinished, test } from "vitest";
import { familyOf } from "../support/processes.ts";
import { temporaryFolder } from "./support.ts";

const ROOT = join(import.meta.dirname, "..", "..");
const TOKEN = "canary-token-of-this-test";

/** @param under a command that starts it */
function startApi(
  env: NodeJS.ProcessEnv,
  options: readonly string[] = [],
  under: readonly string[] = [],
): ChildProcess {
  const common = { PATH: process.env["PATH"], PORT: "0", TEMPORAL_ADDRESS: "127.0.0.1:1" };
  const [command = "", ...args] = [...under, process.execPath, "local/run.mjs", "api/main.ts", ...options];
  const child = spawn(command, args, {
    cwd: ROOT,
    stdio: ["ignore", "pipe", "pipe", "pipe"],
    env: { ...common, DATABASE_URL: "postgres://nobody@127.0.0.1:1/none", ...env },
  });
  onTestFinished(async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.kill("SIGKILL");
    await once(child, "exit");
  });
  return child;
}

/** Resolves with its address. */
async function ready({ stdout }: ChildProcess): Promise<string> {
  if (stdout === null) throw new Error("it has no output");
  for await (const line of createInterface(stdout)) {
    const url = /api ready (http:[^\s"]+)/.exec(line)?.[1];
    if (url !== undefined) return url;
  }
  throw new Error("it ended before it was ready");
}

/** The error output of a program that does not start. */
async function complaint(child: ChildProcess): Promise<string> {
  let said = "";
  child.stderr?.on("data", (chunk: Buffer) => (said += chunk.toString()));
  const [code] = (await once(child, "close")) as [number];
  expect(code).toBe(1);
  return said;
}

function secretFile(mode: number): string {
  const file = join(temporaryFolder(), "token");
  writeFileSync(file, `${TOKEN}\n`);
  chmodSync(file, mode);
  return file;
}

async function takesTheToken(url: string): Promise<void> {
  const statusWith = async (token: string) =>
    (await fetch(`${url}/api/models`, { headers: { authorization: `Bearer ${token}` } })).status;
  expect([await statusWith("another"), await statusWith(TOKEN)]).toEqual([401, 200]);
}

function environmentOf(pid: number): string | null {
  try {
    return readFileSync(`/proc/${pid}/environ`, "utf8");
  } catch {
    return null;
  }
}

test("a secret in the environment is removed from it, and from what /proc shows of it", async () => {
  const child = startApi({ API_TOKEN: TOKEN, NOT_SECRET: "kept" });
  await takesTheToken(await ready(child));
  for (const pid of familyOf(child.pid ?? 0)) {
    const environment = environmentOf(pid);
    // It is closed to this user.
    if (environment === null) continue;
    expect(environment).not.toContain(TOKEN);
    expect(environment).not.toContain("nobody@127.0.0.1");
    expect(environment).toContain("NOT_SECRET=kept");
  }
});

test("a secret may be in a file that only its owner can open", async () => {
  const child = startApi({ API_TOKEN_FILE: secretFile(0o600) });
  await takesTheToken(await ready(child));
});

test("a secret may come out of a pipe, and is then stored nowhere", async () => {
  const script = `API_TOKEN_FILE=<(echo ${TOKEN}) exec "$@"`;
  await takesTheToken(await ready(startApi({}, [], ["bash", "-c", script, "bash"])));
});

test("a secret file that others can open, a missing one and a secret given twice are refused", async () => {
  const open = secretFile(0o640);
  expect(await complaint(startApi({ API_TOKEN_FILE: open }))).toBe(
    `API_TOKEN_FILE: others than its owner can open ${open}. Run: chmod 600 ${open}\n`,
  );
  expect(await complaint(startApi({ API_TOKEN_FILE: "/nowhere/token" }))).toBe(
    "API_TOKEN_FILE: /nowhere/token cannot be read (ENOENT).\n",
  );
  expect(await complaint(startApi({ API_TOKEN: TOKEN, API_TOKEN_FILE: secretFile(0o600) }))).toBe(
    "Set API_TOKEN or API_TOKEN_FILE, not both.\n",
  );
});

test("with --secrets-fd=3 the secrets come by descriptor 3; without them the program ends", async () => {
  const secrets = { API_TOKEN: TOKEN, DATABASE_URL: "postgres://nobody@127.0.0.1:1/none" };
  const child = startApi({ DATABASE_URL: undefined }, ["--secrets-fd=3"]);
  (child.stdio[3] as NodeJS.WritableStream).end(JSON.stringify(secrets));
  await takesTheToken(await ready(child));

  const orphan = startApi({}, ["--secrets-fd=3"]);
  (orphan.stdio[3] as NodeJS.WritableStream).end();
  expect(await complaint(orphan)).toContain("Descriptor 3 did not bring the secrets");
});
