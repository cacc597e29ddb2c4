/**
 * Owns: the settings, validated once. Every other file gets them from here, typed.
 * Not here: what `npm start` decides itself (ports, embedded servers) and hands on as environment; how secrets come to
 * a process, and that no environment contains them (local/secrets.mjs).
 */
import { homedir, hostname } from "node:os";
import { isAbsolute, join, resolve } from "node:path";
import { z } from "zod";
import { readModelsFile } from "./llm/models-file.ts";
import { DEFAULT_MODEL, type ModelFacts, SCRIPTED_MODEL } from "./llm/models.ts";
import { DEFAULT_LIMITS } from "./machine/context.ts";
import { MAX_TIMEOUT_SECONDS } from "./machine/control-tools.ts";
import { digestOfToken, ROLES, type Role } from "./protocol/access.ts";
import type { SpendingLimits } from "./protocol/spending.ts";
import { LOG_FORMATS, LOG_LEVELS, type LogFormat, type LogLevel } from "./observability/log-settings.ts";
import { CONVERSATIONS_QUEUE } from "./protocol/workflow.ts";

export type RestartPolicy = "idle" | "resume";

/**
 * What a worker does: `conversations` runs the workflows, `requests` commits and asks the model, `tools` runs the tools
 * of its host.
 */
type WorkerRole = (typeof WORKER_ROLES)[number];
export const WORKER_ROLES = ["conversations", "requests", "tools"] as const;

export type Config = {
  /** null: no key; see `scriptedModel`. */
  readonly anthropicApiKey: string | null;
  /** null: the provider's own address. */
  readonly anthropicBaseUrl: string | null;
  /** Answers come from the built-in scripted model, and are labelled so. */
  readonly scriptedModel: boolean;
  /** The model of a conversation that names none. */
  readonly model: string;
  /** Absolute path of a file with more facts on models; null: there is none. */
  readonly modelsFile: string | null;
  /** The content of `modelsFile`. */
  readonly models: readonly ModelFacts[];
  /** A stream without an event for this many milliseconds has stalled. */
  readonly llmStallMs: number;
  /** The time limit of a sub-agent whose task sets none. */
  readonly subAgentTimeoutSeconds: number;
  readonly spendingLimits: SpendingLimits;
  /** null: `npm start` brings its own Postgres. */
  readonly databaseUrl: string | null;
  /** `host:port`; null: `npm start` brings its own server. */
  readonly temporalAddress: string | null;
  readonly temporalNamespace: string;
  readonly host: string;
  /** 0: any free port. */
  readonly port: number;
  /**
   * The keys of payloads: the first encrypts, all decrypt. None: `npm start` with its own server makes its own key;
   * otherwise nothing is encrypted.
   */
  readonly payloadKeys: readonly Uint8Array[];
  /** Titles are search attributes in Temporal, where they stand in clear. */
  readonly titlesInTemporal: boolean;
  /** The owner's token, which may do everything. null: see `ownerTokenDigest`. */
  readonly apiToken: string | null;
  /** Of the owner's token: of `apiToken`, or of the one that `npm start` has made. null: there is none. */
  readonly ownerTokenDigest: string | null;
  /** Absolute path of a file with more tokens; null: there is none. */
  readonly apiTokensFile: string | null;
  /** What callers without a token may do; null: nothing. Not null only on a loopback `host`. */
  readonly anonymousRole: Role | null;
  /** Absolute path of everything that survives a restart of `npm start`. */
  readonly dataDir: string;
  readonly restartPolicy: RestartPolicy;
  /** `npm start` serves Temporal's Web UI, behind the checks of the API. */
  readonly temporalUi: boolean;
  /** Where the Web UI answers that `api/temporal-ui/main.ts` guards, without a path; null: nowhere. */
  readonly temporalUiAddress: string | null;
  /** The task queue of conversations; every process of one installation has the same. */
  readonly taskQueue: string;
  /** Of a worker: the host whose tools it runs, the queue `tools:<toolHost>`. Of the API: that of new conversations. */
  readonly toolHost: string;
  /** Of the API: the hosts on which people may begin conversations, `toolHost` first. */
  readonly toolHosts: readonly string[];
  /** What a worker does; at least one. */
  readonly workerRoles: ReadonlySet<WorkerRole>;
  /** For how many seconds a worker that is told to end lets what it does go on. */
  readonly workerDrainSeconds: number;
  /** Of a worker of conversations or requests; null: it has none. `build` null: by the workflows' sources. */
  readonly workerVersion: { readonly deployment: string; readonly build: string | null } | null;
  readonly logLevel: LogLevel;
  /** null: text at a terminal, else JSON. */
  readonly logFormat: LogFormat | null;
  /** Where a worker serves its metrics; null: nowhere. */
  readonly metrics: { readonly host: string; readonly port: number } | null;
  /** Days for which the spans of turns are kept; 0: none are. */
  readonly traceDays: number;
  /** Where spans are sent, too, by OTLP over HTTP; null: nowhere. */
  readonly collector: {
    readonly endpoint: string;
    readonly headers: Readonly<Record<string, string>>;
  } | null;
};

/** The settings of the API and of a worker: the addresses of both servers are set. */
export type ServiceConfig = Config & { readonly databaseUrl: string; readonly temporalAddress: string };

/** The environment cannot be used; one sentence for each bad key. */
export class ConfigError extends Error {
  override readonly name = "ConfigError";
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(problems.join("\n"));
    this.problems = problems;
  }
}

/** The environment of a process and its secrets. */
export type Env = Readonly<{ [key: string]: string | undefined }>;

/**
 * Reads the configuration; unset and empty keys take their defaults.
 *
 * @throws ConfigError with every problem at once.
 */
export function loadConfig(env: Env): Config {
  const set = Object.fromEntries(Object.entries(env).filter(([, value]) => value?.trim() !== ""));
  const parsed = schema.safeParse(set);
  if (!parsed.success) throw new ConfigError(parsed.error.issues.map((issue) => issue.message));
  const e = parsed.data;
  const hasTokens = e.API_TOKEN !== undefined || e.API_TOKENS_FILE !== undefined;
  const anonymous = e.ANONYMOUS_ROLE ?? (hasTokens ? "none" : "talk");
  if (anonymous !== "none" && !isLoopback(e.HOST)) {
    const given = e.ANONYMOUS_ROLE === undefined ? "set API_TOKEN" : "set ANONYMOUS_ROLE to none";
    throw new ConfigError([
      `HOST ${e.HOST} can be reached from other machines, and whoever reaches it can run commands here: ${given}, or leave HOST at 127.0.0.1.`,
    ]);
  }
  const toolHost = e.TOOL_HOST ?? hostname();
  const modelsFile = e.MODELS_FILE === undefined ? null : resolve(e.MODELS_FILE);
  const scriptedModel =
    e.SCRIPTED_MODEL ?? (e.ANTHROPIC_API_KEY === undefined && e.ANTHROPIC_BASE_URL === undefined);
  return {
    anthropicApiKey: e.ANTHROPIC_API_KEY ?? null,
    anthropicBaseUrl: e.ANTHROPIC_BASE_URL ?? null,
    scriptedModel,
    model: scriptedModel ? SCRIPTED_MODEL : (e.MODEL ?? DEFAULT_MODEL),
    modelsFile,
    models: modelsFile === null ? [] : modelsOf(modelsFile),
    llmStallMs: e.LLM_STALL_MS,
    subAgentTimeoutSeconds: e.SUB_AGENT_TIMEOUT_SECONDS,
    spendingLimits: {
      conversation: {
        tokens: e.LIMIT_CONVERSATION_TOKENS ?? null,
        dollars: e.LIMIT_CONVERSATION_DOLLARS ?? null,
      },
      day: { tokens: e.LIMIT_DAY_TOKENS ?? null, dollars: e.LIMIT_DAY_DOLLARS ?? null },
    },
    databaseUrl: e.DATABASE_URL ?? null,
    temporalAddress: e.TEMPORAL_ADDRESS ?? null,
    temporalNamespace: e.TEMPORAL_NAMESPACE,
    payloadKeys: e.PAYLOAD_KEY ?? [],
    titlesInTemporal: e.TITLES_IN_TEMPORAL,
    host: e.HOST,
    port: e.PORT,
    apiToken: e.API_TOKEN ?? null,
    ownerTokenDigest: e.API_TOKEN === undefined ? (e.OWNER_TOKEN_SHA256 ?? null) : digestOfToken(e.API_TOKEN),
    apiTokensFile: e.API_TOKENS_FILE === undefined ? null : resolve(e.API_TOKENS_FILE),
    anonymousRole: anonymous === "none" ? null : anonymous,
    dataDir: e.DATA_DIR === undefined ? defaultDataDir(env) : resolve(e.DATA_DIR),
    restartPolicy: e.RESTART_POLICY,
    temporalUi: e.TEMPORAL_UI,
    temporalUiAddress: e.TEMPORAL_UI_ADDRESS === undefined ? null : new URL(e.TEMPORAL_UI_ADDRESS).origin,
    taskQueue: e.TASK_QUEUE,
    toolHost,
    toolHosts: [...new Set([toolHost, ...e.TOOL_HOSTS])],
    workerRoles: e.WORKER_ROLES,
    workerDrainSeconds: e.WORKER_DRAIN_SECONDS,
    workerVersion: e.WORKER_DEPLOYMENT
      ? { deployment: e.WORKER_DEPLOYMENT, build: e.WORKER_BUILD ?? null }
      : null,
    logLevel: e.LOG_LEVEL,
    logFormat: e.LOG_FORMAT ?? null,
    metrics: e.METRICS_PORT === undefined ? null : { host: e.METRICS_HOST, port: e.METRICS_PORT },
    traceDays: e.TRACE_DAYS,
    collector:
      e.OTEL_EXPORTER_OTLP_ENDPOINT === undefined
        ? null
        : { endpoint: e.OTEL_EXPORTER_OTLP_ENDPOINT, headers: e.OTEL_EXPORTER_OTLP_HEADERS },
  };
}

/**
 * The configuration of the API or a worker, started by `npm start` or on its own.
 *
 * @throws ConfigError
 */
export function loadServiceConfig(env: Env): ServiceConfig {
  const config = loadConfig(env);
  const { databaseUrl, temporalAddress } = config;
  const problems: string[] = [];
  if (databaseUrl === null) problems.push("DATABASE_URL is not set: the address of a PostgreSQL database.");
  if (temporalAddress === null) problems.push("TEMPORAL_ADDRESS is not set: host:port of a Temporal server.");
  if (databaseUrl === null || temporalAddress === null) throw new ConfigError(problems);
  return { ...config, databaseUrl, temporalAddress };
}

/** How a process writes its log. */
export function formatOf({ logFormat }: Pick<Config, "logFormat">): LogFormat {
  return logFormat ?? (process.stdout.isTTY ? "text" : "json");
}

/** The values of the settings that no log may show. */
export function secretsOf(config: Config): readonly string[] {
  const { anthropicApiKey, apiToken, databaseUrl, payloadKeys, collector } = config;
  // An address of several servers is no URL.
  const password = /^\w+:\/\/[^:@/]*:([^@]*)@/.exec(databaseUrl ?? "")?.[1] ?? null;
  const found = [
    ...[anthropicApiKey, apiToken, databaseUrl, password],
    ...(password === null ? [] : [decodeURIComponent(password)]),
    ...payloadKeys.map((key) => Buffer.from(key).toString("base64")),
    ...Object.values(collector?.headers ?? {}),
  ];
  return found.filter((value): value is string => value !== null);
}

/** The keys in a text that has commas between them; null: one of them is not 32 bytes in base64, or there is none. */
export function payloadKeysOf(text: string): readonly Uint8Array[] | null {
  const keys = text.split(",").map((part) => part.trim());
  return keys.every((key) => /^[A-Za-z0-9+/]{43}=$/.test(key))
    ? keys.map((key) => Buffer.from(key, "base64"))
    : null;
}

/** Only this machine can connect to it. */
export function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || host === "[::1]" || /^127(\.\d{1,3}){3}$/.test(host);
}

function modelsOf(file: string): readonly ModelFacts[] {
  try {
    return readModelsFile(file);
  } catch (error) {
    throw new ConfigError([`MODELS_FILE: ${error instanceof Error ? error.message : String(error)}`]);
  }
}

function defaultDataDir(env: Env): string {
  // Postgres refuses to run as root, and the account that runs it instead cannot enter root's home.
  if (process.getuid?.() === 0) return "/var/lib/bedrock";
  const xdg = env["XDG_DATA_HOME"];
  const base = xdg !== undefined && isAbsolute(xdg) ? xdg : join(homedir(), ".local", "share");
  return join(base, "bedrock");
}

/** Each message names its key: it is shown to the person as it stands. */
const sentence = (key: string, must: string) => (issue: { readonly input?: unknown }) =>
  `${key} must be ${must}, not ${JSON.stringify(issue.input)}.`;

/** A secret's value is never repeated in a message. */
const secret = (key: string) =>
  z.string().regex(/^[\x21-\x7e]+$/, `${key} must be printable ASCII without spaces.`);

const url = (key: string, protocol: RegExp, must: string) => {
  const error = sentence(key, must);
  return z.url({ protocol, error });
};

const integer = (key: string, least: number, most: number) => {
  const error = sentence(key, `a whole number from ${least} to ${most}`);
  return z
    .string()
    .regex(/^\d{1,9}$/, { error })
    .transform(Number)
    .pipe(z.number().min(least, { error }).max(most, { error }));
};

/** A limit of 0 would refuse everything. */
const tokenLimit = (key: string) => {
  const error = sentence(key, "a whole number of tokens above 0");
  return z
    .string()
    .regex(/^\d{1,15}$/, { error })
    .transform(Number)
    .pipe(z.number().min(1, { error }));
};

const dollarLimit = (key: string) => {
  const error = sentence(key, "an amount of US dollars above 0, like 2.50");
  return z
    .string()
    .regex(/^\d{1,6}(\.\d{1,4})?$/, { error })
    .transform(Number)
    .pipe(z.number().positive({ error }));
};

const name = (key: string) => {
  const error = sentence(key, "a name of at most 200 letters, digits and ._:/@-");
  return z.string().regex(/^[\w.:/@-]{1,200}$/, { error });
};

/** The server joins the two parts of a version with a colon or a dot: the first part has neither. */
const versionPart = (key: string, form: RegExp) =>
  z.string().regex(form, { error: sentence(key, "a name of at most 100 letters, digits and _-") });

const host = (key: string) =>
  z.string().regex(/^[\w.:[\]-]+$/, { error: sentence(key, "an address or a host name") });

const boolean = (key: string) => {
  const error = sentence(key, "1 or 0");
  return z
    .enum(["1", "0", "true", "false"], { error })
    .transform((value) => value === "1" || value === "true");
};

const list = z.string().transform((text) => text.split(",").map((part) => part.trim()));

const roles = (key: string) => {
  const error = sentence(key, `some of ${WORKER_ROLES.join(", ")}, with commas between them`);
  return list
    .pipe(z.array(z.enum(WORKER_ROLES, { error })))
    .transform((found): ReadonlySet<WorkerRole> => new Set(found));
};

const schema = z.object({
  ANTHROPIC_API_KEY: secret("ANTHROPIC_API_KEY").optional(),
  ANTHROPIC_BASE_URL: url("ANTHROPIC_BASE_URL", /^https?$/, "an http(s) address").optional(),
  SCRIPTED_MODEL: boolean("SCRIPTED_MODEL").optional(),
  MODEL: name("MODEL").optional(),
  MODELS_FILE: z.string().optional(),
  LLM_STALL_MS: integer("LLM_STALL_MS", 100, 3_600_000).default(60_000),
  SUB_AGENT_TIMEOUT_SECONDS: integer("SUB_AGENT_TIMEOUT_SECONDS", 1, MAX_TIMEOUT_SECONDS).default(
    DEFAULT_LIMITS.subAgentTimeoutSeconds,
  ),
  LIMIT_CONVERSATION_TOKENS: tokenLimit("LIMIT_CONVERSATION_TOKENS").optional(),
  LIMIT_CONVERSATION_DOLLARS: dollarLimit("LIMIT_CONVERSATION_DOLLARS").optional(),
  LIMIT_DAY_TOKENS: tokenLimit("LIMIT_DAY_TOKENS").optional(),
  LIMIT_DAY_DOLLARS: dollarLimit("LIMIT_DAY_DOLLARS").optional(),
  DATABASE_URL: z
    .string()
    .regex(/^postgres(ql)?:\/\/\S+$/, "DATABASE_URL must look like postgres://user:password@host:5432/name.")
    .optional(),
  TEMPORAL_ADDRESS: z
    .string()
    .regex(/^\S+:\d{1,5}$/, { error: sentence("TEMPORAL_ADDRESS", "host:port") })
    .optional(),
  TEMPORAL_NAMESPACE: name("TEMPORAL_NAMESPACE").default("default"),
  HOST: host("HOST").default("127.0.0.1"),
  PORT: integer("PORT", 0, 65_535).default(3000),
  API_TOKEN: secret("API_TOKEN").optional(),
  // From `npm start` to the API.
  OWNER_TOKEN_SHA256: z
    .string()
    .regex(/^[0-9a-f]{64}$/, "OWNER_TOKEN_SHA256 must be a SHA-256 in hex.")
    .optional(),
  API_TOKENS_FILE: z.string().optional(),
  ANONYMOUS_ROLE: z
    .enum(["none", ...ROLES], { error: sentence("ANONYMOUS_ROLE", `none, ${ROLES.join(", ")}`) })
    .optional(),
  PAYLOAD_KEY: z
    .string()
    .transform((text, context) => {
      const keys = payloadKeysOf(text);
      if (keys !== null) return keys;
      context.addIssue(
        "PAYLOAD_KEY must be 32 bytes in base64, or several of them with commas. Make one with: openssl rand -base64 32",
      );
      return z.NEVER;
    })
    .optional(),
  DATA_DIR: z.string().optional(),
  RESTART_POLICY: z
    .enum(["idle", "resume"], { error: sentence("RESTART_POLICY", "idle or resume") })
    .default("idle"),
  TEMPORAL_UI: boolean("TEMPORAL_UI").default(false),
  TEMPORAL_UI_ADDRESS: url("TEMPORAL_UI_ADDRESS", /^https?$/, "an http(s) address").optional(),
  TITLES_IN_TEMPORAL: boolean("TITLES_IN_TEMPORAL").default(true),
  TASK_QUEUE: name("TASK_QUEUE").default(CONVERSATIONS_QUEUE),
  TOOL_HOST: name("TOOL_HOST").optional(),
  TOOL_HOSTS: list.pipe(z.array(name("TOOL_HOSTS"))).default([]),
  WORKER_ROLES: roles("WORKER_ROLES").default(new Set(WORKER_ROLES)),
  WORKER_DRAIN_SECONDS: integer("WORKER_DRAIN_SECONDS", 1, 86_400).default(1),
  WORKER_DEPLOYMENT: versionPart("WORKER_DEPLOYMENT", /^[A-Za-z0-9][\w-]{0,99}$/).optional(),
  WORKER_BUILD: versionPart("WORKER_BUILD", /^[A-Za-z0-9][\w.-]{0,99}$/).optional(),
  LOG_LEVEL: z
    .enum(LOG_LEVELS, { error: sentence("LOG_LEVEL", `one of ${LOG_LEVELS.join(", ")}`) })
    .default("info"),
  LOG_FORMAT: z.enum(LOG_FORMATS, { error: sentence("LOG_FORMAT", "json or text") }).optional(),
  METRICS_PORT: integer("METRICS_PORT", 0, 65_535).optional(),
  METRICS_HOST: host("METRICS_HOST").default("127.0.0.1"),
  TRACE_DAYS: integer("TRACE_DAYS", 0, 3_650).default(7),
  OTEL_EXPORTER_OTLP_ENDPOINT: url(
    "OTEL_EXPORTER_OTLP_ENDPOINT",
    /^https?$/,
    "an http(s) address without /v1/traces",
  ).optional(),
  OTEL_EXPORTER_OTLP_HEADERS: z
    .string()
    .transform((text, context) => {
      const pairs = text.split(",").map((pair) => /^\s*([\w-]+)\s*=\s*(\S.*?)\s*$/.exec(pair));
      if (pairs.every((pair) => pair !== null))
        return Object.fromEntries(
          pairs.map(([, name = "", value = ""]) => [name, decodeURIComponent(value)]),
        );
      context.addIssue("OTEL_EXPORTER_OTLP_HEADERS must be name=value, with commas between them.");
      return z.NEVER;
    })
    .default({}),
});
