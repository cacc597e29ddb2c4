/**
 * The metrics of a running API and worker: docs/observability.md has each with its labels, and each query of the dashboard
 * and of the alert rules finds them. With Prometheus, each query is evaluated on what it has scraped.
 */
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { createApiMetrics, createWorkerMetrics } from "../../observability/metrics.ts";
import { freePort } from "../../local/ports.ts";
import { until } from "../support/waiting.ts";
import { samplesIn, scrape, startMetered, work } from "./metered.ts";

const ROOT = join(import.meta.dirname, "..", "..");
const OPERATIONS = join(ROOT, "operations");
const run = promisify(execFile);
const isThere = (program: string): boolean =>
  (process.env["PATH"] ?? "").split(delimiter).some((folder) => existsSync(join(folder, program)));
const hasPrometheus = isThere("prometheus") && isThere("promtool");

type Target = { readonly expr: string; readonly legendFormat: string; readonly refId: string };
type Panel = {
  readonly id: number;
  readonly title: string;
  readonly type: string;
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
  readonly fieldConfig: { readonly defaults: { readonly unit: string } };
  readonly targets: readonly Target[];
};
const dashboard = JSON.parse(readFileSync(join(OPERATIONS, "grafana", "bedrock.json"), "utf8")) as {
  readonly uid: string;
  readonly schemaVersion: number;
  readonly templating: { readonly list: readonly { readonly name: string; readonly type: string }[] };
  readonly panels: readonly Panel[];
};
const alerts = parse(readFileSync(join(OPERATIONS, "alerts.yml"), "utf8")) as {
  readonly groups: readonly {
    readonly rules: readonly {
      readonly alert: string;
      readonly expr: string;
      readonly annotations: Readonly<Record<string, string>>;
    }[];
  }[];
};
const rules = alerts.groups.flatMap((group) => group.rules);

const queriesOf = (panel: Panel): readonly string[] =>
  panel.targets.map(({ expr }) => expr.replaceAll("$__rate_interval", "1m"));
const dashboardQueries = dashboard.panels.flatMap(queriesOf);
/** Without the threshold: below it, an alert's query has no result, as it should. */
const ruleQueries = rules.map(({ expr }) => expr.replace(/\s*> [\d.]+$/, ""));

const metered = await startMetered();
await work(metered);
// The second scrape has the first one's request, too.
await scrape(metered.api.url);
const scraped = [await scrape(metered.api.url), await scrape(metered.worker.url)];
const samples = scraped.flatMap(samplesIn);

/** What Prometheus adds to each sample. */
const ADDED: readonly string[] = ["job", "instance", "le"];
/** Of Prometheus itself. */
const ITS_OWN: readonly string[] = ["up"];

/** Names of metrics with the labels that a query selects or groups by. */
function usesIn(query: string): { readonly names: readonly string[]; readonly labels: readonly string[] } {
  const names = [...query.matchAll(/\b(?:bedrock|temporal|process|nodejs)_\w+|\bup\b/g)].map(
    ([name]) => name,
  );
  const selected = [...query.matchAll(/[{,]\s*(\w+)\s*(?:=~|!~|!=|=)/g)].map(([, label = ""]) => label);
  const grouped = [...query.matchAll(/\bby \(([^)]*)\)/g)].flatMap(([, list = ""]) => list.split(/,\s*/));
  return { names, labels: [...selected, ...grouped].filter((label) => !ADDED.includes(label)) };
}

test.each([...dashboardQueries, ...ruleQueries])("%s: its metrics and labels exist", (query) => {
  const { names, labels } = usesIn(query);
  expect(names).not.toEqual([]);
  for (const name of names.filter((each) => !ITS_OWN.includes(each)))
    expect(
      samples.some((sample) => sample.name === name),
      name,
    ).toBe(true);
  const known = samples
    .filter(({ name }) => names.includes(name))
    .flatMap((sample) => Object.keys(sample.labels));
  for (const label of labels) expect(known, label).toContain(label);
});

test("docs/observability.md has every metric with its kind and labels, and no other", async () => {
  const page = readFileSync(join(ROOT, "docs", "observability.md"), "utf8");
  const rows = [...page.matchAll(/^\| `(bedrock_\w+)` +\| (\w+) +\| ([^|]*?) +\|/gm)];
  const documented = rows.map(([, name, kind, labels = ""]) => ({
    ...{ name, kind },
    labels: [...labels.matchAll(/`(\w+)`/g)].map(([, label = ""]) => label).sort(),
  }));
  const backlog = () => Promise.resolve({ conversations: { idle: 1 }, queued: 0, oldestSeconds: 0 });
  const registries = [createApiMetrics({ backlog }), createWorkerMetrics()].map(({ registry }) => registry);
  const all = (await Promise.all(registries.map((each) => each.getMetricsAsJSON()))).flat();
  const labelsOf = (name: string): readonly string[] => {
    const found = registries.map((each) => each.getSingleMetric(name)).find((metric) => metric !== undefined);
    return [...(found as unknown as { readonly labelNames: readonly string[] }).labelNames].sort();
  };
  const real = new Map(
    all.map(({ name, type }) => [name, { name, kind: String(type), labels: labelsOf(name) }]),
  );
  const byName = (a: { name?: string | undefined }, b: { name?: string | undefined }) =>
    (a.name ?? "") < (b.name ?? "") ? -1 : 1;
  expect(documented.sort(byName)).toEqual([...real.values()].sort(byName));
});

test("no label has an id, the text of a message, or a name that somebody made up", () => {
  const values = samples
    .filter(({ name }) => name.startsWith("bedrock_"))
    .flatMap(({ labels }) => Object.values(labels));
  for (const value of values) {
    expect(value).not.toMatch(/[\da-f]{8}-[\da-f]{4}|no_such_tool/);
    expect(value.length).toBeLessThan(64);
  }
});

test("the workload is counted", () => {
  const value = (text: string | undefined, line: RegExp): number => Number(line.exec(text ?? "")?.[1]);
  const [, worker] = scraped;
  expect(value(worker, /^bedrock_turn_seconds_count\{reason="completed"\} (\d+)$/m)).toBe(2);
  expect(value(worker, /^bedrock_turn_seconds_count\{reason="interrupted"\} (\d+)$/m)).toBe(1);
  expect(value(worker, /^bedrock_retries_total\{error_kind="rate_limit"\} (\d+)$/m)).toBe(1);
  expect(value(worker, /^bedrock_cancel_seconds_count\{stopping="tool"\} (\d+)$/m)).toBe(1);
  expect(value(worker, /^bedrock_queue_wait_seconds_count (\d+)$/m)).toBe(1);
  expect(value(worker, /^bedrock_round_seconds_count (\d+)$/m)).toBe(1);
  expect(value(worker, /^bedrock_tool_seconds_count\{tool="bash",status="completed"\} (\d+)$/m)).toBe(1);
  expect(
    value(worker, /^bedrock_tool_seconds_sum\{tool="bash",status="completed"\} ([\d.]+)$/m),
  ).toBeGreaterThan(0.4);
});

test("the dashboard is one that Grafana can load: panels do not overlap, and each query has a name", () => {
  expect(dashboard.schemaVersion).toBeGreaterThanOrEqual(36);
  expect(dashboard.templating.list).toMatchObject([{ name: "datasource", type: "datasource" }]);
  expect(new Set(dashboard.panels.map(({ id }) => id)).size).toBe(dashboard.panels.length);
  const cells = dashboard.panels.flatMap(({ gridPos: { x, y, w, h } }) =>
    Array.from({ length: w * h }, (_, n) => `${x + (n % w)},${y + Math.floor(n / w)}`),
  );
  expect(new Set(cells).size).toBe(cells.length);
  for (const { title, targets, fieldConfig, gridPos } of dashboard.panels) {
    expect(title).not.toBe("");
    expect(fieldConfig.defaults.unit).not.toBe("");
    expect(gridPos.x + gridPos.w).toBeLessThanOrEqual(24);
    expect(new Set(targets.map(({ refId }) => refId)).size).toBe(targets.length);
    for (const { legendFormat, expr } of targets) {
      expect(legendFormat).not.toBe("");
      for (const [, label = ""] of legendFormat.matchAll(/\{\{(\w+)\}\}/g))
        if (!ADDED.includes(label)) expect(expr).toContain(label);
    }
  }
});

test("each alert says what is wrong and what to do", () => {
  for (const { alert, annotations } of rules) {
    expect(alert).toMatch(/^Bedrock/);
    expect(annotations).toEqual({
      summary: expect.any(String) as unknown,
      action: expect.any(String) as unknown,
    });
  }
});

test("the port of a worker answers nothing but GET /metrics", async () => {
  for (const path of ["/", "/debug", "/metrics/x"])
    expect((await fetch(`${metered.worker.url}${path}`)).status).toBe(404);
  expect((await fetch(`${metered.worker.url}/metrics`, { method: "POST" })).status).toBe(404);
});

test.skipIf(!hasPrometheus)("the rules are valid, and fire where they must", async () => {
  await run("promtool", ["check", "rules", join(OPERATIONS, "alerts.yml")]);
  await run("promtool", ["check", "config", join(OPERATIONS, "prometheus.yml")]);
  const { stdout } = await run("promtool", ["test", "rules", join(OPERATIONS, "alerts.test.yml")]);
  expect(stdout).toContain("SUCCESS");
  const tested = readFileSync(join(OPERATIONS, "alerts.test.yml"), "utf8");
  for (const { alert } of rules) expect(tested).toContain(`alertname: ${alert} `);
  expect(tested).toContain(`value: ${rules.length} `);
});

test.skipIf(!hasPrometheus)(
  "Prometheus scrapes both, and every query has a result",
  async () => {
    const folder = mkdtempSync(join(tmpdir(), "bedrock-prometheus-"));
    const config = readFileSync(join(OPERATIONS, "prometheus.yml"), "utf8")
      .replace("scrape_interval: 15s", "scrape_interval: 1s\n  evaluation_interval: 1s")
      .replace("- alerts.yml", `- ${join(OPERATIONS, "alerts.yml")}`)
      .replace("127.0.0.1:3000", `127.0.0.1:${metered.api.port}`)
      .replace("127.0.0.1:9464", `127.0.0.1:${metered.worker.port}`);
    writeFileSync(join(folder, "prometheus.yml"), config);
    const port = await freePort();
    const prometheus = spawn(
      "prometheus",
      [
        `--config.file=${join(folder, "prometheus.yml")}`,
        `--storage.tsdb.path=${join(folder, "data")}`,
        `--web.listen-address=127.0.0.1:${port}`,
      ],
      { stdio: "ignore" },
    );
    try {
      const url = `http://127.0.0.1:${port}/api/v1`;
      const ask = async (path: string): Promise<unknown> => {
        const response = await fetch(`${url}/${path}`);
        return response.ok ? ((await response.json()) as { readonly data: unknown }).data : null;
      };
      const results = async (query: string): Promise<number> => {
        const data = (await ask(`query?query=${encodeURIComponent(query)}`)) as {
          readonly result: readonly unknown[];
        } | null;
        return data?.result.length ?? 0;
      };
      // Rates need a change between two scrapes.
      await until(async () => (await results('up{job=~"bedrock-.*"} == 1').catch(() => 0)) === 2);
      await work(metered);
      const queries = [...dashboardQueries, ...ruleQueries.filter((query) => !query.startsWith("absent"))];
      const missing = new Set(queries);
      const giveUpAt = performance.now() + 60_000;
      await until(async () => {
        for (const query of missing) if ((await results(query)) > 0) missing.delete(query);
        return missing.size === 0 || performance.now() > giveUpAt;
      });
      expect([...missing]).toEqual([]);
      const loaded = (await ask("rules")) as {
        readonly groups: readonly { readonly rules: readonly { readonly health: string }[] }[];
      };
      await until(async () => {
        const { groups } = (await ask("rules")) as typeof loaded;
        return groups.flatMap((group) => group.rules).every(({ health }) => health === "ok");
      });
      expect(loaded.groups.flatMap((group) => group.rules)).toHaveLength(rules.length);
    } finally {
      const ended = once(prometheus, "exit");
      prometheus.kill("SIGKILL");
      await ended;
      rmSync(folder, { recursive: true, force: true });
    }
  },
  180_000,
);
