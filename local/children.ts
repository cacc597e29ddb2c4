/**
 * Owns: what each child process of the launcher is: its command, its environment, when it is ready, how long it may
 * take to end. They get their settings by environment only, and only those secrets that they need.
 */
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { isLoopback, type Config } from "../config.ts";
import type { ProcessSpec } from "./managed-process.ts";
import { StartError } from "./start-error.ts";
import { temporalCommand, waitForTemporal, type TemporalOptions } from "./temporal/server.ts";

/** The order of the end: who takes requests, who works, what they need. */
export const STOP_ORDER = [["api"], ["worker"], ["temporal", "scripted"]] as const;

const ROOT = join(import.meta.dirname, "..");

export type Services = {
  readonly databaseUrl: string;
  readonly temporalAddress: string;
  /** Of the Messages API; null: the provider's own. */
  readonly modelUrl: string | null;
};

export function temporalProcess(options: TemporalOptions): ProcessSpec {
  const address = `127.0.0.1:${options.port}`;
  const { namespace = "default" } = options;
  return {
    name: "temporal",
    ...temporalCommand(options),
    ready: { check: (signal) => waitForTemporal(address, { namespace, signal, within: 60_000 }) },
    stopWithin: 1500,
  };
}

export function scriptedProcess(port: number): ProcessSpec {
  return {
    name: "scripted",
    ...program("local/scripted/main.ts"),
    env: { ...withoutSecrets(), PORT: String(port) },
    ready: { line: /^scripted model ready /m },
    stopWithin: 500,
  };
}

export function workerProcess(config: Config, services: Services): ProcessSpec {
  return {
    name: "worker",
    ...program("worker.ts"),
    env: {
      ...common(config, services),
      // The scripted model takes any key; the real one's stays out of its reach.
      ANTHROPIC_API_KEY: (config.scriptedModel ? null : config.anthropicApiKey) ?? "none",
      ...(services.modelUrl === null ? {} : { ANTHROPIC_BASE_URL: services.modelUrl }),
    },
    ready: { line: /^worker ready/m },
    stopWithin: 3500,
  };
}

export function apiProcess(config: Config, services: Services): ProcessSpec {
  return {
    name: "api",
    ...program("api/main.ts"),
    env: {
      ...common(config, services),
      HOST: config.host,
      PORT: String(config.port),
      ...(config.apiToken === null ? {} : { API_TOKEN: config.apiToken }),
    },
    ready: { check: (signal) => waitForApi(config, signal) },
    stopWithin: 2500,
  };
}

/** `http://HOST:PORT` */
export function apiUrl(config: Pick<Config, "host" | "port">): string {
  const host = config.host.includes(":") && !config.host.startsWith("[") ? `[${config.host}]` : config.host;
  return `http://${host}:${config.port}`;
}

function program(file: string): Pick<ProcessSpec, "command" | "args" | "cwd"> {
  return { command: process.execPath, args: ["local/run.mjs", file], cwd: ROOT };
}

function common(config: Config, services: Services): NodeJS.ProcessEnv {
  return {
    ...withoutSecrets(),
    DATABASE_URL: services.databaseUrl,
    TEMPORAL_ADDRESS: services.temporalAddress,
    TEMPORAL_NAMESPACE: config.temporalNamespace,
    DATA_DIR: config.dataDir,
    TASK_QUEUE: config.taskQueue,
    TOOL_HOST: config.toolHost,
    MODEL: config.model,
    ...(config.modelsFile === null ? {} : { MODELS_FILE: config.modelsFile }),
    SCRIPTED_MODEL: config.scriptedModel ? "1" : "0",
    LLM_STALL_MS: String(config.llmStallMs),
  };
}

function withoutSecrets(): NodeJS.ProcessEnv {
  const env = { ...process.env };
  for (const key of ["ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "API_TOKEN", "DATABASE_URL"]) {
    Reflect.deleteProperty(env, key);
  }
  return env;
}

async function waitForApi(config: Config, signal: AbortSignal): Promise<void> {
  // A wildcard address is not one to connect to.
  const host =
    isLoopback(config.host) || !/^(0\.0\.0\.0|\[?::\]?)$/.test(config.host) ? config.host : "localhost";
  const url = `${apiUrl({ host, port: config.port })}/readyz`;
  const headers = config.apiToken === null ? {} : { authorization: `Bearer ${config.apiToken}` };
  let last = "it does not answer";
  while (!signal.aborted) {
    try {
      const response = await fetch(url, { headers, signal });
      const body = await response.text();
      if (response.status === 200) return;
      last = `/readyz answers ${response.status} ${body.slice(0, 500)}`;
    } catch {
      // Not listening yet.
    }
    await pause(50);
  }
  throw new StartError(last);
}
