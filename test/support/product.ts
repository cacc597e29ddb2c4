/**
 * Owns: the product as a person runs it (`npm start`, durable Postgres, processes of their own), with a scripted
 * provider in this process. Tests use it over HTTP.
 */
import { spawn, type ChildProcess } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { chownSync, closeSync, mkdtempSync, openSync, readFileSync, rmSync } from "node:fs";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { Client, Connection } from "@temporalio/client";
import { dyingWithParent } from "../../local/die-with-parent.ts";
import { freePort } from "../../local/ports.ts";
import { payloadKeysOf } from "../../config.ts";
import { startScriptedServer, type ScriptedServer } from "../../local/scripted/server.ts";
import { dataConverterOf } from "../../protocol/payload-encryption.ts";
import { familyOf } from "./processes.ts";
import { deferred } from "./waiting.ts";

const ROOT = join(import.meta.dirname, "..", "..");

export const PROCESSES = ["worker", "api", "postgres", "temporal"] as const;
export type ProcessName = (typeof PROCESSES)[number];

export type Product = {
  readonly url: string;
  readonly toolHosts: readonly [string];
  /** Id of the process that started all others. It changes with `startAgain`. */
  readonly pid: number;
  readonly dataDir: string;
  /** null: the product serves no Temporal Web UI. */
  readonly temporalUiUrl: string | null;
  readonly databaseUrl: string;
  readonly temporalAddress: string;
  readonly model: ScriptedServer;
  /** A client that encrypts payloads as the product does. */
  readonly temporal: Client;
  /** None: the product encrypts nothing, or with a key of its own. */
  readonly payloadKeys: readonly Uint8Array[];
  /** An empty directory for conversations, removed with the product. */
  readonly cwd: string;
  /** Milliseconds from the start of the process to `ready`. */
  readonly startMs: number;
  /** The link that opens the page with the owner's token; null: none was shown. */
  readonly approveUrl: string | null;
  readonly pidOf: (name: ProcessName) => number;
  /**
   * Starts the product again after its end, as a person would, with the same settings and the same data.
   *
   * @throws when it ends before it is ready, or is ready at another address.
   */
  readonly startAgain: () => Promise<void>;
  /** Resolves with the signal or exit code when the product, once ready, ends without being stopped or killed. */
  readonly gaveUp: Promise<string>;
  /** Aborted when the product is stopped: no process listens any more. */
  readonly ended: AbortSignal;
  readonly stop: () => Promise<void>;
};

/** What a client and the checks of a run need: of `npm start`, or of a team on several hosts. */
export type Served = Pick<Product, "url" | "databaseUrl" | "model" | "temporal" | "cwd" | "ended"> & {
  /** Where tools run; the first is the default. */
  readonly toolHosts: readonly [string, ...string[]];
};

export type ProductOptions = {
  /** A folder that is kept. Without it a new folder is made, and removed with the product. */
  readonly dataDir?: string;
  /** The folder of the sources; by default, these sources. */
  readonly root?: string;
  /**
   * Settings that add to the usual ones or replace them; undefined removes one. Usually callers without a token may
   * everything, and the key of payloads is known, so that tests can sign.
   */
  readonly env?: NodeJS.ProcessEnv;
  /** It has a terminal of its own. */
  readonly isTerminal?: boolean;
  /** The user that runs it, with a group of the same number; by default the one that runs the test. */
  readonly user?: number;
  /** Files that are open when the product starts, by their descriptors. */
  readonly inherits?: ReadonlyMap<number, string>;
  /** The address under which the product reaches the provider, given the provider's own. */
  readonly providerBehind?: (url: string) => Promise<string>;
};

export async function startProduct(options: ProductOptions = {}): Promise<Product> {
  const {
    root = ROOT,
    env,
    inherits,
    isTerminal = false,
    user,
    providerBehind = (url: string) => Promise.resolve(url),
  } = options;
  const folder = mkdtempSync(join(tmpdir(), "bedrock-product-"));
  if (user !== undefined) chownSync(folder, user, user);
  const data = options.dataDir ?? join(folder, "data");
  const model = await startScriptedServer();
  const provider = await providerBehind(model.url);
  const started = performance.now();
  const settings = {
    PATH: process.env["PATH"],
    HOME: process.env["HOME"],
    XDG_CACHE_HOME: process.env["XDG_CACHE_HOME"],
    DATA_DIR: data,
    PORT: String(await freePort()),
    ANTHROPIC_API_KEY: "test-key",
    ANTHROPIC_BASE_URL: provider,
    PAYLOAD_KEY: randomBytes(32).toString("base64"),
    ...(env?.["API_TOKEN"] === undefined ? { ANONYMOUS_ROLE: "admin" } : {}),
    ...env,
  };
  let child: ChildProcess | null = null;
  let connection: Connection | null = null;
  const ended = new AbortController();
  const { promise: gaveUp, resolve: giveUp } = deferred<string>();
  const stop = async (): Promise<void> => {
    ended.abort();
    if (child?.exitCode === null && child.signalCode === null) {
      const exited = once(child, "exit");
      // The terminal ends with what runs in it; signalled itself, it would kill that.
      const [, launcher] = isTerminal && child.pid !== undefined ? familyOf(child.pid) : [];
      process.kill(launcher ?? child.pid ?? 0, "SIGTERM");
      await exited;
    }
    await connection?.close();
    await model.close();
    rmSync(folder, { recursive: true, force: true });
  };
  /** Starts the process. Returns the addresses that it prints until it is ready. */
  const start = async (): Promise<ReadonlyMap<string, string>> => {
    ended.signal.throwIfAborted();
    const started = (child = spawnProduct(root, settings, { user, isTerminal, inherits }));
    const said = await introductionOf(started, isTerminal ? "approve" : "ready");
    started.once("exit", (code, signal) => {
      if (signal !== "SIGKILL" && !ended.signal.aborted) giveUp(signal ?? `exit code ${String(code)}`);
    });
    return said;
  };
  const said = await start().catch(async (error: unknown) => {
    await stop();
    throw error;
  });
  const addresses = (all: ReadonlyMap<string, string>): string =>
    JSON.stringify(["ready", "Temporal", "Postgres"].map((name) => all.get(name)));
  const temporalAddress = said.get("Temporal") ?? "";
  connection = await Connection.connect({ address: temporalAddress });
  // A test may have taken the key out.
  const given: NodeJS.ProcessEnv = settings;
  const payloadKeys = payloadKeysOf(given["PAYLOAD_KEY"] ?? "") ?? [];
  return {
    url: said.get("ready") ?? "",
    toolHosts: [hostname()],
    get pid() {
      return child?.pid ?? 0;
    },
    dataDir: data,
    temporalUiUrl: said.get("Temporal Web UI") ?? null,
    databaseUrl: said.get("Postgres") ?? "",
    temporalAddress,
    temporal: new Client({ connection, dataConverter: dataConverterOf(payloadKeys) }),
    payloadKeys,
    model,
    cwd: folder,
    startMs: performance.now() - started,
    approveUrl: said.get("approve") ?? null,
    ended: ended.signal,
    pidOf: (name) => {
      const file =
        name === "postgres" ? join(data, "pg18", "postmaster.pid") : join(data, "run", `${name}.json`);
      const text = readFileSync(file, "utf8");
      return name === "postgres"
        ? Number.parseInt(text, 10)
        : (JSON.parse(text) as { readonly pid: number }).pid;
    },
    startAgain: async () => {
      const now = await start();
      if (addresses(now) !== addresses(said))
        throw new Error(`It is ready elsewhere: ${addresses(now)}, not ${addresses(said)}.`);
    },
    gaveUp,
    stop,
  };
}

function spawnProduct(
  root: string,
  env: NodeJS.ProcessEnv,
  {
    user,
    isTerminal,
    inherits = new Map<number, string>(),
  }: {
    readonly user: number | undefined;
    readonly isTerminal: boolean;
    readonly inherits: ReadonlyMap<number, string> | undefined;
  },
): ChildProcess {
  const open = new Map([...inherits].map(([at, file]) => [at, openSync(file, "r")]));
  const above = Array.from(
    { length: Math.max(2, ...open.keys()) - 2 },
    (_, n) => open.get(n + 3) ?? ("ignore" as const),
  );
  const product = { command: process.execPath, args: ["local/run.mjs", "local/main.ts"] };
  const line = ["exec", product.command, ...product.args].join(" ");
  const inTerminal = {
    command: "script",
    args: ["--quiet", "--return", "--flush", "--command", line, "/dev/null"],
  };
  const { command, args } = dyingWithParent(isTerminal ? inTerminal : product, "SIGTERM");
  const child = spawn(command, args, {
    ...{ cwd: root, env, ...(user === undefined ? {} : { uid: user, gid: user }) },
    stdio: ["ignore", "pipe", "inherit", ...above],
  });
  for (const fd of open.values()) closeSync(fd);
  return child;
}

/** @param last the last line of it @throws when it ends before it is ready. */
async function introductionOf({ stdout }: ChildProcess, last: string): Promise<ReadonlyMap<string, string>> {
  const said = new Map<string, string>();
  if (stdout === null) throw new Error("The product cannot be started.");
  for await (const line of createInterface(stdout)) {
    const [, name = "", value = ""] =
      /^(ready|approve|Temporal Web UI|Temporal|Postgres) +(\S+:\/?\S+)$/.exec(line) ?? [];
    if (name !== "") said.set(name, value);
    if (name === last) break;
  }
  if (!said.has("ready")) throw new Error("The product did not start.");
  stdout.resume();
  return said;
}
