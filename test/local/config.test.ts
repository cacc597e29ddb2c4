import { homedir, hostname } from "node:os";
import { describe, expect, test } from "vitest";
import { ConfigError, isLoopback, loadConfig, loadServiceConfig } from "../../config.ts";
import { apiProcess, workerProcess } from "../../local/children.ts";
import { NO_LIMITS } from "../../protocol/spending.ts";
import { DEFAULT_MODEL, SCRIPTED_MODEL } from "../../llm/models.ts";

const problemsOf = (env: { [key: string]: string }): readonly string[] => {
  try {
    loadConfig(env);
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    throw error;
  }
  return [];
};

describe("the environment", () => {
  test("every key has a default that works on a laptop", () => {
    const config = loadConfig({});
    expect(config).toMatchObject({
      anthropicApiKey: null,
      anthropicBaseUrl: null,
      scriptedModel: true,
      databaseUrl: null,
      temporalAddress: null,
      temporalNamespace: "default",
      host: "127.0.0.1",
      port: 3000,
      apiToken: null,
      restartPolicy: "idle",
      temporalUi: false,
      subAgentTimeoutSeconds: 3_600,
      toolHost: hostname(),
    });
    expect(config.model).toBe(SCRIPTED_MODEL);
    expect(loadConfig({ ANTHROPIC_API_KEY: "k" }).model).toBe(DEFAULT_MODEL);
    expect(loadConfig({ ANTHROPIC_API_KEY: "k", MODEL: "another" }).model).toBe("another");
    expect(loadConfig({ MODEL: "another" }).model).toBe(SCRIPTED_MODEL);
  });

  test("an empty value counts as unset", () => {
    expect(loadConfig({ PORT: "", API_TOKEN: " ", ANTHROPIC_API_KEY: "" })).toEqual(loadConfig({}));
  });

  test("the data directory is absolute, and never in root's home", () => {
    expect(loadConfig({ DATA_DIR: "some/where" }).dataDir).toBe(`${process.cwd()}/some/where`);
    const { dataDir } = loadConfig({ XDG_DATA_HOME: "/xdg" });
    if (process.getuid?.() === 0) expect(dataDir.startsWith(homedir())).toBe(false);
    else expect(dataDir).toBe("/xdg/bedrock");
  });

  test("an API key or a provider's address turns the scripted model off, and SCRIPTED_MODEL overrides both", () => {
    expect(loadConfig({ ANTHROPIC_API_KEY: "k" }).scriptedModel).toBe(false);
    expect(loadConfig({ ANTHROPIC_BASE_URL: "http://127.0.0.1:9" }).scriptedModel).toBe(false);
    expect(loadConfig({ ANTHROPIC_API_KEY: "k", SCRIPTED_MODEL: "1" }).scriptedModel).toBe(true);
    expect(loadConfig({ SCRIPTED_MODEL: "0" }).scriptedModel).toBe(false);
  });
});

test("limits on spending are none unless set, and npm start hands them on as they are", () => {
  expect(loadConfig({}).spendingLimits).toEqual(NO_LIMITS);
  const env = {
    LIMIT_CONVERSATION_TOKENS: "1000000",
    LIMIT_CONVERSATION_DOLLARS: "2.5",
    LIMIT_DAY_TOKENS: "900000000000",
    LIMIT_DAY_DOLLARS: "0.0001",
  };
  const config = loadConfig(env);
  expect(config.spendingLimits).toEqual({
    conversation: { tokens: 1_000_000, dollars: 2.5 },
    day: { tokens: 900_000_000_000, dollars: 0.0001 },
  });
  const services = { databaseUrl: "postgres://h/x", temporalAddress: "h:7233", modelUrl: null };
  for (const { env: handed } of [apiProcess(config, services), workerProcess(config, services)])
    expect(loadConfig({ ...handed }).spendingLimits).toEqual(config.spendingLimits);
});

describe("a bad value is answered with a sentence that names its key", () => {
  test.each([
    ["PORT", "70000"],
    ["PORT", "-1"],
    ["PORT", "3000x"],
    ["PORT", "3e3"],
    ["RESTART_POLICY", "sometimes"],
    ["ANTHROPIC_BASE_URL", "ftp://example.org"],
    ["ANTHROPIC_BASE_URL", "nonsense"],
    ["DATABASE_URL", "mysql://localhost/x"],
    ["TEMPORAL_ADDRESS", "localhost"],
    ["HOST", "not a host"],
    ["SCRIPTED_MODEL", "maybe"],
    ["TEMPORAL_UI", "yes"],
    ["LLM_STALL_MS", "1"],
    ["SUB_AGENT_TIMEOUT_SECONDS", "0"],
    ["SUB_AGENT_TIMEOUT_SECONDS", "86401"],
    ["MODEL", "two words"],
    ["LIMIT_CONVERSATION_TOKENS", "0"],
    ["LIMIT_DAY_TOKENS", "1.5"],
    ["LIMIT_CONVERSATION_DOLLARS", "0"],
    ["LIMIT_DAY_DOLLARS", "-5"],
    ["LIMIT_DAY_DOLLARS", "$5"],
  ])("%s=%s is refused", (key, value) => {
    const [problem, ...others] = problemsOf({ [key]: value });
    expect(problem).toContain(`${key} must`);
    expect(others).toEqual([]);
  });

  test("all problems are reported at once", () => {
    expect(problemsOf({ PORT: "x", RESTART_POLICY: "y" })).toHaveLength(2);
  });

  test("a secret's value is not repeated", () => {
    const secret = "sk-ant with a space";
    expect(problemsOf({ ANTHROPIC_API_KEY: secret }).join()).not.toContain("sk-ant");
    expect(problemsOf({ DATABASE_URL: "postgres//me:hunter2@h/x" }).join()).not.toContain("hunter2");
  });
});

describe("API_TOKEN", () => {
  test.each(["0.0.0.0", "::", "192.168.1.4", "example.org"])("is required with the host %s", (host) => {
    expect(problemsOf({ HOST: host }).join()).toContain("set API_TOKEN");
    expect(loadConfig({ HOST: host, API_TOKEN: "t0ken" }).host).toBe(host);
  });

  test.each(["127.0.0.1", "127.1.2.3", "localhost", "::1"])("is not required with the host %s", (host) => {
    expect(loadConfig({ HOST: host }).apiToken).toBeNull();
  });

  test("a name that only begins like a loopback address is no loopback address", () => {
    expect(isLoopback("127.0.0.1.example.org")).toBe(false);
    expect(isLoopback("localhost.example.org")).toBe(false);
  });
});

test("a service without its servers names both of them", () => {
  expect(() => loadServiceConfig({})).toThrow(/DATABASE_URL[^]*TEMPORAL_ADDRESS/);
  const env = { DATABASE_URL: "postgres://h/x", TEMPORAL_ADDRESS: "h:7233" };
  expect(loadServiceConfig(env)).toMatchObject({ databaseUrl: "postgres://h/x", temporalAddress: "h:7233" });
});
