/** The log (docs/observability.md): one line of JSON for each event, one vocabulary, and no secret in any of them. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { ConfigError, loadServiceConfig, secretsOf } from "../../config.ts";
import { createLog, type LogOptions } from "../../observability/log.ts";
import type { LogLevel } from "../../observability/log-settings.ts";
import { readable } from "../../observability/readable.ts";
import { sdkLogging } from "../../worker/telemetry.ts";
import { problemOf, startApi } from "../api/support.ts";

function captured(options: Partial<LogOptions> = {}) {
  const lines: string[] = [];
  const destination = { write: (line: string) => void lines.push(line) };
  const log = createLog({
    service: "test",
    level: "info",
    format: "json",
    secrets: [],
    destination,
    ...options,
  });
  return { log, lines, events: () => lines.map((line) => JSON.parse(line) as Record<string, unknown>) };
}

const SECRETS = {
  ANTHROPIC_API_KEY: "canary-key-1f2e3d",
  API_TOKEN: "canary-token-1f2e3d",
  DATABASE_URL: "postgres://me:canary%2Fpassword@127.0.0.1:1/db",
  PAYLOAD_KEY: Buffer.from("canary-payload-key-1f2e3d-123456").toString("base64"),
  OTEL_EXPORTER_OTLP_HEADERS: "authorization=Bearer%20canary-collector",
};
const COLLECTOR = { OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:4318" };

test("what Temporal's SDK and workflows say comes into the log, under our names; only warnings unless all is wanted", () => {
  const error = new Error("It did not work.");
  const ids = { workflowId: "a-conversation", runId: "a-run", namespace: "default" };
  const say = (level: LogLevel) => {
    const { log, events } = captured({ level });
    const { logger } = sdkLogging(log);
    logger?.info("Worker state changed", { sdkComponent: "worker" });
    logger?.warn("Slow", ids);
    logger?.error("Failed", { ...ids, error });
    logger?.warn("No workflows registered");
    return events();
  };
  expect(say("info")).toMatchObject([
    { level: "warn", msg: "Slow", conversation: "a-conversation", run: "a-run" },
    { level: "error", msg: "Failed", err: { message: "It did not work." } },
  ]);
  expect(say("info")[0]).not.toHaveProperty("namespace");
  expect(say("debug").map(({ msg }) => msg)).toEqual(["Worker state changed", "Slow", "Failed"]);
});

test("no secret setting comes into the log, in whatever field, in whatever error", () => {
  const secrets = secretsOf(loadServiceConfig({ ...SECRETS, ...COLLECTOR, TEMPORAL_ADDRESS: "127.0.0.1:1" }));
  for (const format of ["json", "text"] as const) {
    const { log, lines } = captured({ secrets, format });
    const canaries = [...Object.values(SECRETS), "canary/password", "Bearer canary-collector"];
    for (const canary of canaries.filter((each) => !each.startsWith("authorization"))) {
      log.error({ err: new Error(`refused: ${canary}`, { cause: new Error(canary) }) }, `with ${canary}`);
      log.warn({ request: canary, deep: { in: [canary] } }, "a field");
    }
    expect(lines.length).toBeGreaterThan(0);
    expect(lines.join("")).not.toMatch(/canary/);
    expect(lines.join("")).toContain("[secret]");
  }
});

test("an error of the database shows its code, and not the values of its query", () => {
  const { log, events } = captured();
  const error = Object.assign(new Error("refused"), {
    code: "23505",
    query: "insert …",
    parameters: ["said"],
  });
  log.error({ err: error }, "not stored");
  expect(events()).toMatchObject([
    { level: "error", err: { type: "Error", message: "refused", code: "23505" } },
  ]);
  expect(JSON.stringify(events())).not.toMatch(/said|insert/);
});

test("each request has an id, in its answer, in the log, and in the problem of a 500", async () => {
  const { log, events } = captured({ level: "debug" });
  const reported: unknown[] = [];
  const { get, send } = await startApi({
    log,
    report: (request, error) => void reported.push({ request, error }),
    models: () => Promise.reject(new Error("broken on purpose")),
  });
  const given = await get("/healthz", { headers: { "x-request-id": "from-the-proxy" } });
  expect(given.headers.get("x-request-id")).toBe("from-the-proxy");
  const made = await get("/healthz", { headers: { "x-request-id": "not an id: \u00e9".slice(0, 12) } });
  expect(made.headers.get("x-request-id")).toMatch(/^[\da-f-]{36}$/);
  const failed = await get("/api/models");
  const problem = await problemOf(failed);
  expect(problem).toMatchObject({ code: "internal", id: failed.headers.get("x-request-id") });
  expect(problem.detail).not.toContain("broken");
  expect(reported).toMatchObject([{ request: problem["id"] }]);
  const text = "the words of a person";
  await send("POST", "/api/conversations/none/messages", { text });

  const found = events().map(({ level, request, method, route, status, conversation }) => ({
    ...{ level, request, method, route, status, conversation },
  }));
  expect(found).toMatchObject([
    { level: "debug", request: "from-the-proxy", method: "GET", route: "/healthz", status: 200 },
    { level: "debug", method: "GET", route: "/healthz", status: 200 },
    { level: "warn", request: problem["id"], route: "/api/models", status: 500 },
    { level: "info", method: "POST", route: "/api/conversations/:id/messages", conversation: "none" },
  ]);
  expect(JSON.stringify(events())).not.toContain(text);
});

test("every field of these lines is in the page, and each line has the four that it says", async () => {
  const page = readFileSync(join(import.meta.dirname, "..", "..", "docs", "observability.md"), "utf8");
  const [, section = ""] = page.split("\n## Logs\n");
  const documented = new Set([...section.matchAll(/`(\w+)`/g)].map(([, name]) => name));
  const { log, events } = captured({ level: "debug" });
  const { get } = await startApi({ log });
  await get("/api/conversations/none");
  log.error({ err: new Error("x"), revision: 3 }, "said");
  for (const event of events()) {
    for (const name of Object.keys(event)) expect(documented, name).toContain(name);
    expect(Object.keys(event)).toEqual(expect.arrayContaining(["level", "time", "service", "msg"]));
    expect(event["time"]).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  }
});

test("text for a person has the sentence first, and lines that are none of the log's stay as they are", () => {
  const { log, lines } = captured({ format: "text" });
  log.info({ conversation: "c-1" }, "said");
  log.error({ err: new Error("broken") }, "it broke");
  expect(lines[0]).toMatch(/^\d\d:\d\d:\d\d\.\d{3} said conversation="c-1"\n$/);
  expect(lines[1]).toMatch(/^\S+ ERROR it broke\nError: broken\n +at /);
  for (const line of ["DATABASE_URL is not set.", "{}", "[1]", "{"]) expect(readable(line)).toBe(line);
});

test("a bad setting is named", () => {
  const bad = {
    LOG_LEVEL: "loud",
    LOG_FORMAT: "xml",
    METRICS_PORT: "x",
    OTEL_EXPORTER_OTLP_ENDPOINT: "collector",
  };
  const load = () => loadServiceConfig({ ...bad, OTEL_EXPORTER_OTLP_HEADERS: "none", TRACE_DAYS: "-1" });
  expect(load).toThrow(ConfigError);
  for (const key of Object.keys({ ...bad, TRACE_DAYS: "", OTEL_EXPORTER_OTLP_HEADERS: "" }))
    expect(load).toThrow(key);
});

test("a reader who does not read stops nothing, and what is fatal is written before the process is killed", async () => {
  const program = `
    import { createLog } from "./observability/log.ts";
    const log = createLog({ service: "test", level: "info", format: "json", secrets: [] });
    for (let line = 0; line < 10_000; line++) log.info("x".repeat(1_000));
    process.stderr.write("goes on");
    process.stdin.once("data", () => {
      log.fatal("the end");
      process.kill(process.pid, "SIGKILL");
    });`;
  const child = spawn(process.execPath, ["--import", "tsx", "--input-type=module", "--eval", program], {
    cwd: join(import.meta.dirname, "..", ".."),
    stdio: ["pipe", "pipe", "pipe"],
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  const [said] = (await once(child.stderr.setEncoding("utf8"), "data")) as [string];
  expect(said).toBe("goes on");
  let output = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => (output += text));
  child.stdin.write("x");
  await once(child, "close");
  expect(output.trimEnd().split("\n").at(-1)).toContain('"msg":"the end"');
});
