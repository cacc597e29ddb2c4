/**
 * Owns: the specification of each child process of `npm start`: its command, its environment, when it is ready, how
 * long it may take to end. The processes get their settings by environment, and only those secrets that they need, by a
 * pipe.
 */
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { isLoopback, type Config } from "../config.ts";
import type { ProcessSpec } from "./managed-process.ts";
import { SECRETS } from "./secrets.mjs";
import { StartError } from "./start-error.ts";
import { temporalCommand, waitForTemporal, type TemporalOptions } from "./temporal/server.ts";

/**
 * The order in which processes end: first the one that takes requests, then the one that works, then those that both
 * need.
 */
export const STOP_ORDER = [["api"], ["worker"], ["temporal", "scripted"]] as const;

const ROOT = join(import.meta.dirname, "..");

export type Services = {
  readonly databaseUrl: string;
  readonly temporalAddress: string;
  /** The address of the Messages API; null: the provider's own. */
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
    ...program("worker.ts", "--secrets-fd=3"),
    env: {
      ...common(config, services),
      ...(services.modelUrl === null ? {} : { ANTHROPIC_BASE_URL: services.modelUrl }),
    },
    secrets: {
      DATABASE_URL: services.databaseUrl,
      // The scripted model accepts any key, so it does not get the real one.
      ANTHROPIC_API_KEY: (config.scriptedModel ? null : config.anthropicApiKey) ?? "none",
      ...payloadKeys(config),
      ...collectorHeaders(config),
    },
    ready: { line: /worker ready/ },
    stopWithin: 3500,
  };
}

export function apiProcess(config: Config, services: Services): ProcessSpec {
  return {
    name: "api",
    ...program("api/main.ts", "--secrets-fd=3"),
    env: {
      ...common(config, services),
      HOST: config.host,
      PORT: String(config.port),
      ANONYMOUS_ROLE: config.anonymousRole ?? "none",
      ...(config.apiTokensFile === null ? {} : { API_TOKENS_FILE: config.apiTokensFile }),
    },
    secrets: {
      DATABASE_URL: services.databaseUrl,
      ...(config.ownerTokenDigest === null ? {} : { OWNER_TOKEN_SHA256: config.ownerTokenDigest }),
      ...payloadKeys(config),
      ...collectorHeaders(config),
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

function program(...args: readonly string[]): Pick<ProcessSpec, "command" | "args" | "cwd"> {
  return { command: process.execPath, args: ["local/run.mjs", ...args], cwd: ROOT };
}

function common(config: Config, services: Services): NodeJS.ProcessEnv {
  return {
    ...withoutSecrets(),
    TEMPORAL_ADDRESS: services.temporalAddress,
    TEMPORAL_NAMESPACE: config.temporalNamespace,
    DATA_DIR: config.dataDir,
    TASK_QUEUE: config.taskQueue,
    TOOL_HOST: config.toolHost,
    TITLES_IN_TEMPORAL: config.titlesInTemporal ? "1" : "0",
    MODEL: config.model,
    ...(config.modelsFile === null ? {} : { MODELS_FILE: config.modelsFile }),
    SCRIPTED_MODEL: config.scriptedModel ? "1" : "0",
    LLM_STALL_MS: String(config.llmStallMs),
    SUB_AGENT_TIMEOUT_SECONDS: String(config.subAgentTimeoutSeconds),
    ...spendingLimits(config),
  };
}

function spendingLimits({ spendingLimits: { conversation, day } }: Config): NodeJS.ProcessEnv {
  const limits = {
    LIMIT_CONVERSATION_TOKENS: conversation.tokens,
    LIMIT_CONVERSATION_DOLLARS: conversation.dollars,
    LIMIT_DAY_TOKENS: day.tokens,
    LIMIT_DAY_DOLLARS: day.dollars,
  };
  return Object.fromEntries(Object.entries(limits).map(([key, limit]) => [key, limit?.toString()]));
}

function payloadKeys({ payloadKeys: keys }: Config): { readonly PAYLOAD_KEY?: string } {
  const texts = keys.map((key) => Buffer.from(key).toString("base64"));
  return texts.length === 0 ? {} : { PAYLOAD_KEY: texts.join(",") };
}

function collectorHeaders({ collector }: Config): { readonly OTEL_EXPORTER_OTLP_HEADERS?: string } {
  const pairs = Object.entries(collector?.headers ?? {});
  if (pairs.length === 0) return {};
  const text = pairs.map(([name, value]) => `${name}=${encodeURIComponent(value)}`).join(",");
  return { OTEL_EXPORTER_OTLP_HEADERS: text };
}

/**
 * The environment of this process without secrets. run.mjs has already taken them out, unless this process was started
 * in another way.
 */
function withoutSecrets(): NodeJS.ProcessEnv {
  const env = { ...process.env };
  const secrets = SECRETS.flatMap((name) => [name, `${name}_FILE`]);
  for (const key of [...secrets, "ANTHROPIC_BASE_URL"]) Reflect.deleteProperty(env, key);
  return env;
}

async function waitForApi(config: Config, signal: AbortSignal): Promise<void> {
  // No client can connect to a wildcard address.
  const host =
    isLoopback(config.host) || !/^(0\.0\.0\.0|\[?::\]?)$/.test(config.host) ? config.host : "localhost";
  const url = `${apiUrl({ host, port: config.port })}/readyz`;
  let last = "it does not answer";
  while (!signal.aborted) {
    try {
      const response = await fetch(url, { signal });
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
