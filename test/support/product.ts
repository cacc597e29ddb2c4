/**
 * Owns: the product as a person runs it (`npm start`, durable Postgres, processes of their own), asked over HTTP,
 * with a scripted provider in this process.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { Client, Connection } from "@temporalio/client";
import { freePort } from "../../local/ports.ts";
import { startScriptedServer, type ScriptedServer } from "../../local/scripted/server.ts";

const ROOT = join(import.meta.dirname, "..", "..");

export const PROCESSES = ["worker", "api", "postgres", "temporal"] as const;
export type ProcessName = (typeof PROCESSES)[number];

export type Product = {
  readonly url: string;
  readonly databaseUrl: string;
  readonly temporalAddress: string;
  readonly model: ScriptedServer;
  readonly temporal: Client;
  /** An empty directory for conversations; it goes with the product. */
  readonly cwd: string;
  /** Milliseconds from the start of the process to `ready`. */
  readonly startMs: number;
  readonly pidOf: (name: ProcessName) => number;
  /** Aborted when it is stopped: nobody listens any more. */
  readonly ended: AbortSignal;
  readonly stop: () => Promise<void>;
};

export type ProductOptions = {
  /** Is kept; without one a new folder is made, which goes with the product. */
  readonly dataDir?: string;
  /** Where the sources are; these by default. */
  readonly root?: string;
  /** The address under which the product reaches the provider, given the provider's own. */
  readonly providerBehind?: (url: string) => Promise<string>;
};

export async function startProduct(options: ProductOptions = {}): Promise<Product> {
  const { root = ROOT, providerBehind = (url: string) => Promise.resolve(url) } = options;
  const folder = mkdtempSync(join(tmpdir(), "bedrock-product-"));
  const data = options.dataDir ?? join(folder, "data");
  const model = await startScriptedServer();
  const provider = await providerBehind(model.url);
  const started = performance.now();
  const child = spawn(process.execPath, ["local/run.mjs", "local/main.ts"], {
    cwd: root,
    stdio: ["ignore", "pipe", "inherit"],
    env: {
      PATH: process.env["PATH"],
      HOME: process.env["HOME"],
      XDG_CACHE_HOME: process.env["XDG_CACHE_HOME"],
      DATA_DIR: data,
      PORT: String(await freePort()),
      ANTHROPIC_API_KEY: "test-key",
      ANTHROPIC_BASE_URL: provider,
    },
  });
  let connection: Connection | null = null;
  const ended = new AbortController();
  const stop = async (): Promise<void> => {
    ended.abort();
    const exited = once(child, "exit");
    if (child.exitCode === null && child.signalCode === null) {
      child.kill("SIGTERM");
      await exited;
    }
    await connection?.close();
    await model.close();
    rmSync(folder, { recursive: true, force: true });
  };
  const said = new Map<string, string>();
  for await (const line of createInterface(child.stdout)) {
    const [, name = "", value = ""] = /^(ready|Temporal|Postgres) +(\S+:\/?\S+)$/.exec(line) ?? [];
    if (name !== "") said.set(name, value);
    if (name === "ready") break;
  }
  const url = said.get("ready");
  if (url === undefined) {
    await stop();
    throw new Error("The product did not start.");
  }
  child.stdout.resume();
  const temporalAddress = said.get("Temporal") ?? "";
  connection = await Connection.connect({ address: temporalAddress });
  return {
    url,
    databaseUrl: said.get("Postgres") ?? "",
    temporalAddress,
    temporal: new Client({ connection }),
    model,
    cwd: folder,
    startMs: performance.now() - started,
    ended: ended.signal,
    pidOf: (name) => {
      const file =
        name === "postgres" ? join(data, "pg18", "postmaster.pid") : join(data, "run", `${name}.json`);
      const text = readFileSync(file, "utf8");
      return name === "postgres"
        ? Number.parseInt(text, 10)
        : (JSON.parse(text) as { readonly pid: number }).pid;
    },
    stop,
  };
}
