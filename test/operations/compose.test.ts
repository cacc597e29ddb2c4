/** docker-compose.yml is valid, has no default secret, and gives each part what it needs and no more. */
import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseEnv, promisify } from "node:util";
import { beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { loadConfig, loadServiceConfig, WORKER_ROLES } from "../../config.ts";
import { canCheckCompose, readComposeProject, SET, type Project, type Service } from "./compose-project.ts";

const ROOT = join(import.meta.dirname, "..", "..");
const OURS = ["api", "worker", "tools", "migrate", "temporal-ui"];

const canCheck = canCheckCompose();
if (!canCheck) console.warn("SKIPPED, docker-compose.yml: its check needs Go 1.21.");

/** The environment of the process, with the secrets that it takes from files. */
function settingsOf(project: Project, { environment = {}, configs = [], secrets = [] }: Service) {
  const contents = new Map([
    ...configs.map(({ source, target }) => [target, project.configs[source]?.content] as const),
    ...secrets.map(
      ({ source, target }) =>
        [`/run/secrets/${target}`, SET[project.secrets[source]?.environment ?? ""]] as const,
    ),
  ]);
  return Object.fromEntries(
    Object.entries(environment).map(([name, value]) =>
      name.endsWith("_FILE") ? [name.slice(0, -"_FILE".length), contents.get(value)] : [name, value],
    ),
  );
}

describe.skipIf(!canCheck)("docker-compose.yml", () => {
  let project: Project;
  const of = (name: string): Service => {
    const service = project.services[name];
    if (service === undefined) throw new Error(`There is no service ${name}.`);
    return service;
  };
  const all = (): [string, Service][] => Object.entries(project.services);
  beforeAll(async () => {
    project = await readComposeProject(SET);
  }, 300_000);

  test("the page's file of secrets has all that must be set, is for its owner alone, and comes into no image and no commit", async () => {
    const page = await readFile(join(ROOT, "docs", "operations.md"), "utf8");
    const [, block = ""] = /^## In containers\n.*?^```sh\n(.*?)^docker compose up/ms.exec(page) ?? [];
    const folder = await mkdtemp(join(tmpdir(), "bedrock-compose-"));
    onTestFinished(() => rm(folder, { recursive: true }));
    await promisify(execFile)("bash", ["-euc", block], { cwd: folder });
    const file = join(folder, ".env");
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    const set = parseEnv(await readFile(file, "utf8")) as Record<string, string>;
    expect(Object.keys(set)).toEqual(expect.arrayContaining(Object.keys(SET)));
    const { services } = await readComposeProject(set);
    expect(services["tools"]?.volumes?.map(({ source }) => source)).toEqual([folder]);
    for (const ignored of [".dockerignore", ".gitignore"])
      expect((await readFile(join(ROOT, ignored), "utf8")).split("\n"), ignored).toContain(".env");
  });

  test.each(Object.keys(SET))("%s has no default: without it nothing starts", async (name) => {
    const others = Object.fromEntries(Object.entries(SET).filter(([key]) => key !== name));
    await expect(readComposeProject(others)).rejects.toThrow(`required variable ${name} is missing`);
  });

  test("the settings of API and workers are such as the product reads, and together the workers do everything", () => {
    const [api, worker, tools] = ["api", "worker", "tools"].map((name) =>
      loadServiceConfig(settingsOf(project, of(name))),
    );
    const roles = [...(worker?.workerRoles ?? []), ...(tools?.workerRoles ?? [])];
    expect(new Set(roles)).toEqual(new Set(WORKER_ROLES));
    expect(worker?.workerRoles).not.toContain("tools");
    // Conversations begin where tools run.
    expect(api?.toolHosts).toEqual([tools?.toolHost]);
    for (const config of [api, worker, tools]) {
      expect(config?.temporalAddress).toBe(api?.temporalAddress);
      expect(config?.scriptedModel).toBe(false);
    }
  });

  test("only the worker that asks the model has the provider's key, only who checks it the token, and only tools the files", () => {
    const having = (secret: string) =>
      all().flatMap(([name, { secrets = [] }]) =>
        secrets.some(({ source }) => source === secret) ? [name] : [],
      );
    expect(having("anthropic-api-key")).toEqual(["worker"]);
    expect(having("api-token")).toEqual(["api", "temporal-ui"]);
    expect(having("payload-key").sort()).toEqual(["api", "temporal-ui", "tools", "worker"]);
    const mounts = all().filter(([, { volumes }]) => volumes?.some(({ target }) => target === "/workspace"));
    expect(mounts.map(([name]) => name)).toEqual(["tools"]);
  });

  test("no environment of ours has a secret, and only the image's user can read their files", () => {
    for (const name of OURS) {
      const { environment, configs = [], secrets = [] } = of(name);
      const text = JSON.stringify(environment);
      for (const value of Object.values(SET)) expect(text, name).not.toContain(value);
      for (const file of [...configs, ...secrets]) expect(file).toMatchObject({ uid: "1000", mode: "0400" });
    }
  });

  test("each service has limits; ours have no rights, a root that is read-only, and no network with another part of ours", () => {
    for (const [name, { deploy, privileged, healthcheck, command }] of all()) {
      expect(deploy?.resources?.limits?.memory, name).toMatch(/^\d+$/);
      expect(deploy?.resources?.limits?.cpus, name).toBeGreaterThan(0);
      expect(deploy?.resources?.limits?.pids, name).toBeGreaterThan(0);
      expect(privileged, name).not.toBe(true);
      // What ends by itself needs no health check.
      const ends = name === "migrate" || /^temporal-(schema|namespace)$/.test(name);
      expect(healthcheck !== undefined || ends, `${name} ${command?.join(" ")}`).toBe(true);
    }
    for (const name of OURS) {
      expect(of(name)).toMatchObject({ read_only: true, cap_drop: ["ALL"], image: "bedrock" });
      expect(of(name).security_opt).toContain("no-new-privileges:true");
    }
    const parts = ["api", "worker", "tools", "temporal-ui"];
    const networks = parts.flatMap((name) => Object.keys(of(name).networks ?? {}));
    expect(new Set(networks).size).toBe(4);
  });

  test("Temporal's Web UI is reached by its guard alone, on whose port its page asks for payloads in clear", () => {
    const guard = of("temporal-ui");
    const behind = Object.entries(project.services).filter(([, { image }]) =>
      image.startsWith("temporalio/ui:"),
    );
    expect(behind.map(([, { ports }]) => ports)).toEqual([undefined]);
    const [[name, ui] = ["", guard]] = behind;
    const config = loadConfig(settingsOf(project, guard));
    expect(config.temporalUiAddress).toBe(`http://${name}:8080`);
    const published = guard.ports?.map(
      ({ host_ip, published, target }) => `http://${host_ip}:${published} ${target}`,
    );
    expect(published).toEqual([`http://127.0.0.1:${config.port} ${config.port}`]);
    expect(ui.environment?.["TEMPORAL_CODEC_ENDPOINT"]).toBe(`http://127.0.0.1:${config.port}/api/codec`);
    // No command of an agent runs where the UI can be reached.
    expect(
      Object.keys(ui.networks ?? {}).filter((network) => network in (of("tools").networks ?? {})),
    ).toEqual([]);
  });

  test("only loopback addresses of the machine are published", () => {
    const published = all().flatMap(([, { ports = [] }]) => ports);
    expect(published.length).toBeGreaterThan(0);
    for (const { host_ip } of published) expect(host_ip).toBe("127.0.0.1");
  });
});
