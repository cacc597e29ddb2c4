/**
 * docker-compose.yml and the Dockerfile: valid, without default secrets, with least rights; and each command of them runs
 * where there is no container engine, as the user, with the files and under the limits that they ask for.
 */
import { execFile } from "node:child_process";
import { chown, copyFile, mkdir, mkdtemp, readFile, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { loadServiceConfig, WORKER_ROLES } from "../../config.ts";
import { openClient } from "../../db/connect.ts";
import { freePort } from "../../local/ports.ts";
import { startPostgres } from "../../local/postgres.ts";
import { say, toolCall } from "../../local/scripted/script.ts";
import { startScriptedServer, type ScriptedServer } from "../../local/scripted/server.ts";
import { ensureTemporalBinary } from "../../local/temporal/find.ts";
import { at, Person } from "../api/person.ts";
import { requestsBy } from "../api/support.ts";
import { startProductionTemporal } from "../support/production-temporal.ts";
import { startProxy } from "../support/tcp-proxy.ts";
import { until } from "../support/waiting.ts";
import { canCheckCompose, readComposeProject, SET, type Project, type Service } from "./compose-project.ts";
import {
  buildImage,
  startContainer,
  type Container,
  type ContainerOptions,
  type Image,
} from "./containers.ts";
import { canMakeHosts, makeHost } from "./hosts.ts";

const run = promisify(execFile);
const ROOT = join(import.meta.dirname, "..", "..");
const OURS = ["api", "worker", "tools", "migrate"];

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

  test("only the worker that asks the model has the provider's key, only the API has its token, and only tools the files", () => {
    const having = (secret: string) =>
      all().flatMap(([name, { secrets = [] }]) =>
        secrets.some(({ source }) => source === secret) ? [name] : [],
      );
    expect(having("anthropic-api-key")).toEqual(["worker"]);
    expect(having("api-token")).toEqual(["api"]);
    expect(having("payload-key").sort()).toEqual(["api", "tools", "worker"]);
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
    const networks = ["api", "worker", "tools"].flatMap((name) => Object.keys(of(name).networks ?? {}));
    expect(new Set(networks).size).toBe(3);
  });

  test("only loopback addresses of the machine are published", () => {
    const published = all().flatMap(([, { ports = [] }]) => ports);
    expect(published.length).toBeGreaterThan(0);
    for (const { host_ip } of published) expect(host_ip).toBe("127.0.0.1");
  });
});

const canPlay = canCheck && canMakeHosts();
if (!canPlay) console.warn("SKIPPED, containers: they need root, ip (iproute2), and Go.");

/** A Temporal server for production is built once. */
const START_LIMIT_MS = 20 * 60_000;

describe.skipIf(!canPlay)("the containers", () => {
  const ends: (() => Promise<unknown>)[] = [];
  const defer = (end: () => Promise<unknown>): void => void ends.unshift(end);
  afterAll(async () => {
    for (const end of ends) await end();
  }, 60_000);

  let image: Image;
  let project: Project;
  let model: ScriptedServer;
  let person: Person;
  let workspace = "";
  const running = new Map<string, Container>();
  let dir = "";
  type Changes = Partial<Pick<ContainerOptions, "command" | "environment" | "folders">>;
  let start: (name: string, changes?: Changes) => Promise<Container>;

  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), "bedrock-compose-"));
    defer(() => rm(dir, { recursive: true, force: true }));
    workspace = join(dir, "workspace");
    await mkdir(workspace);
    await chown(workspace, 1000, 1000);
    [project, image] = await Promise.all([readComposeProject(SET), buildImage()]);
    defer(image.end);
    const temporal = await startProductionTemporal(await mkdtemp(join(dir, "temporal-")), () => undefined);
    defer(() => temporal.stop());
    const postgres = await startPostgres({
      dataDir: join(dir, "postgres"),
      durable: false,
      port: await freePort(),
    });
    defer(() => postgres.stop());
    // What the image of Postgres makes of its environment.
    const admin = openClient(postgres.url, "test");
    await admin.unsafe("create role bedrock login superuser; alter database bedrock owner to bedrock");
    await admin.end();
    model = await startScriptedServer();
    defer(() => model.close());

    const host = await makeHost();
    defer(host.remove);
    const passOn = async (address: string, port: number): Promise<void> => {
      const { hostname, port: from } = new URL(address);
      const proxy = await startProxy({ host: hostname, port: Number(from) }, host.gateway, port);
      defer(() => proxy.cut());
    };
    await passOn(postgres.url, 5432);
    await passOn(`http://${temporal.address}`, 7233);
    await passOn(model.url, 8080);
    start = (name, changes = {}) => {
      const service = project.services[name];
      if (service === undefined) throw new Error(`There is no service ${name}.`);
      const mounts = service.volumes?.some(({ target }) => target === "/workspace");
      return startContainer(image, {
        ...{ project, service, set: SET, network: host.under },
        names: { postgres: host.gateway, temporal: host.gateway },
        folders: mounts ? { "/workspace": workspace } : {},
        environment: name === "worker" ? { ANTHROPIC_BASE_URL: `http://${host.gateway}:8080` } : {},
        ...changes,
      });
    };
    const requests = requestsBy((path, init) =>
      fetch(`http://${host.address}:3000${path}`, {
        ...init,
        headers: { authorization: `Bearer ${SET["API_TOKEN"]}`, ...(init?.headers as object) },
      }),
    );
    person = new Person(requests, "/workspace");
  }, START_LIMIT_MS);

  const isHealthy = async (name: string): Promise<boolean> => {
    const [kind, ...command] = project.services[name]?.healthcheck?.test ?? [];
    expect(kind).toBe("CMD");
    const check = await start(name, { command });
    return (await check.exited) === 0;
  };

  test("the namespace's command finds the one that is there", async () => {
    const { command, environment } = project.services["temporal-namespace"] ?? {};
    const programs = join(dir, "programs");
    await mkdir(programs);
    await copyFile((await ensureTemporalBinary()).path, join(programs, "temporal"));
    const container = await start("migrate", {
      command: command ?? [],
      environment: { ...environment, PATH: `/media:${process.env["PATH"]}` },
      folders: { "/media": programs },
    });
    expect(await container.exited, container.output()).toBe(0);
    expect(container.output()).toContain("default");
  });

  test("the migration's command makes the tables, and can be repeated", async () => {
    for (let time = 0; time < 2; time++) {
      const container = await start("migrate");
      expect(await container.exited, container.output()).toBe(0);
      expect(container.output()).toContain("migrated");
    }
  });

  test("API, worker and tools start and get healthy", async () => {
    for (const name of ["api", "worker", "tools"]) {
      const container = await start(name);
      defer(async () => {
        container.kill();
        await container.exited;
      });
      running.set(name, container);
    }
    await until(() => isHealthy("api"));
  }, 120_000);

  test("a Restricted conversation reads and cannot write; after the approval it writes, as the image's user", async () => {
    const id = await person.create();
    const look = toolCall("bash", {
      command: "id -u; cat /proc/*/environ 2>/dev/null | tr '\\0' '\\n'; true",
    });
    const write = () => toolCall("bash", { command: "echo hello > /workspace/file" });
    const ask = toolCall("request_mode_upgrade", { reason: "To write." });
    const script = [say(look), say(write()), say(ask), say(write()), say("Done.")];
    await person.say(id, { text: `go ${model.script(id, script)}` });
    await person.untilState(id, "awaiting_mode_approval");
    const { state, mode } = (await person.conversation(id)) as unknown as {
      readonly state: { readonly toolCall: { readonly id: string } };
      readonly mode: string;
    };
    expect(mode).toBe("restricted");
    await person.order("POST", at(id, "/approval"), { decision: "approve", toolCallId: state.toolCall.id });
    await person.untilState(id, "idle");
    const results = (await person.messages(id)).flatMap((message) =>
      message.type === "tool" ? [message.content[0]] : [],
    );
    expect(results.map(({ status }) => status)).toEqual(["completed", "failed", "completed", "completed"]);
    const shown = JSON.stringify(results[0]?.output);
    expect(shown).toContain("1000");
    for (const secret of Object.values(SET)) expect(shown).not.toContain(secret);
    expect(await readFile(join(workspace, "file"), "utf8")).toBe("hello\n");
    expect((await stat(join(workspace, "file"))).uid).toBe(1000);
  });

  test("nothing can be written to the image", async () => {
    const script = "touch /app/x /usr/x || touch /home/node/x /tmp/x /data/x /workspace/x";
    const container = await start("tools", { command: ["sh", "-c", script] });
    expect(await container.exited, container.output()).toBe(0);
    expect(container.output()).toContain("Read-only file system");
  });

  test("each ends by itself within the time that it is given", async () => {
    for (const [name, container] of running) {
      const limit = Number.parseInt(project.services[name]?.stop_grace_period ?? "10", 10) * 1_000;
      const begun = performance.now();
      container.stop();
      await container.exited;
      expect(performance.now() - begun, name).toBeLessThan(limit);
    }
  });

  test("the image has what it needs, and neither tests nor what only builds", async () => {
    const list = async (folder: string) =>
      (
        await run(image.mounts[0] ?? "", [...image.mounts.slice(1), "ls", "-A", `${image.layer}${folder}`])
      ).stdout.split("\n");
    const names = await list("/app");
    for (const name of ["worker.ts", "node_modules", "build"]) expect(names).toContain(name);
    for (const name of ["test", "docs", ".git", ".ci", "bench"]) expect(names).not.toContain(name);
    const packages = await list("/app/node_modules");
    expect(packages).toContain("hono");
    for (const name of ["vitest", "typescript", "eslint"]) expect(packages).not.toContain(name);
    // The corrections of packages are in it, too.
    const patched = await readFile(join(ROOT, "node_modules", "postgres", "src", "connection.js"), "utf8");
    const { stdout } = await run(image.mounts[0] ?? "", [
      ...image.mounts.slice(1),
      ...["cat", `${image.layer}/app/node_modules/postgres/src/connection.js`],
    ]);
    expect(stdout).toBe(patched);
  });
});
