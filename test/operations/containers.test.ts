/**
 * Each command of the Dockerfile, of docker-compose.yml and of operations/kubernetes runs where there is no container
 * engine: as the user, with the files, and with the rights that they ask for.
 */
import { execFile } from "node:child_process";
import { once } from "node:events";
import { chown, copyFile, mkdir, mkdtemp, readFile, rm, stat } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
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
import { canCheckCompose, containerOf, readComposeProject, SET, type Project } from "./compose-project.ts";
import {
  buildImage,
  startContainer,
  type Container,
  type Image,
  type RunningContainer,
} from "./containers.ts";
import { canMakeHosts, makeHost, type Host } from "./hosts.ts";
import { containerOfPod, podsOf, readManifests, type KubernetesObject } from "./manifests.ts";

const run = promisify(execFile);
const ROOT = join(import.meta.dirname, "..", "..");
const canPlay = canCheckCompose() && canMakeHosts();
if (!canPlay) console.warn("SKIPPED, containers: they need root, ip (iproute2), and Go.");

/** A Temporal server for production is built once. */
const START_LIMIT_MS = 20 * 60_000;

/** What a site of our containers has under its own names. */
type Site = {
  readonly name: string;
  /** Hosts of tools, the first one is the API's default. */
  readonly toolHosts: readonly string[];
  readonly container: (part: string, folders: Container["folders"]) => Container;
  /** Whether the container's checks find it ready; `ask` makes a request of the API. */
  readonly isReady: (ask: (path: string) => Promise<boolean>, inside: Inside) => Promise<boolean>;
  /** Seconds that a part is given to end. */
  readonly grace: (part: string) => number;
};
/** Runs a command in a container of this part; resolves with its exit code. */
type Inside = (part: string, command: readonly string[]) => Promise<number>;

describe.skipIf(!canPlay)("containers", () => {
  const ends: (() => Promise<unknown>)[] = [];
  const defer = (end: () => Promise<unknown>): void => void ends.unshift(end);
  afterAll(async () => {
    for (const end of ends) await end();
  }, 60_000);

  let dir = "";
  let image: Image;
  let project: Project;
  let objects: readonly KubernetesObject[];
  let temporalAddress = "";
  let model: ScriptedServer;
  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), "bedrock-containers-"));
    defer(() => rm(dir, { recursive: true, force: true }));
    [project, objects, image] = await Promise.all([readComposeProject(SET), readManifests(), buildImage()]);
    defer(image.end);
    const temporal = await startProductionTemporal(await mkdtemp(join(dir, "temporal-")), () => undefined);
    defer(() => temporal.stop());
    temporalAddress = temporal.address;
    model = await startScriptedServer();
    defer(() => model.close());
  }, START_LIMIT_MS);

  const compose: Site = {
    name: "docker-compose.yml",
    toolHosts: ["tools"],
    container: (part, folders) => containerOf(project, part, folders),
    isReady: async (_, inside) => {
      for (const part of ["api", "worker", "tools"]) {
        const [kind, ...check] = project.services[part]?.healthcheck?.test ?? [];
        expect(kind).toBe("CMD");
        if ((await inside(part, check)) !== 0) return false;
      }
      return true;
    },
    grace: (part) => Number.parseInt(project.services[part]?.stop_grace_period ?? "10", 10),
  };
  const podOf = (part: string) => podsOf(objects).get(part.replace(/-\d+$/, ""));
  const kubernetes: Site = {
    name: "operations/kubernetes",
    toolHosts: ["tools-0", "tools-1"],
    container: (part, folders) => {
      const pod = podOf(part);
      if (pod === undefined) throw new Error(`There is no pod of ${part}.`);
      return containerOfPod(objects, pod, part, folders);
    },
    isReady: async (ask) => {
      const [container] = podOf("api")?.containers ?? [];
      const paths = [container?.livenessProbe, container?.readinessProbe].map(
        (probe) => probe?.httpGet?.path,
      );
      const answers = await Promise.all(paths.map((path) => ask(path ?? "/")));
      return answers.every((isGood) => isGood);
    },
    grace: (part) => podOf(part)?.terminationGracePeriodSeconds ?? 30,
  };

  describe.each([compose, kubernetes])("of $name", (site) => {
    let start: (part: string, changes?: Partial<Container>) => RunningContainer;
    let person: Person;
    let ask: (path: string) => Promise<boolean>;
    const workspaces = new Map<string, string>();
    const running = new Map<string, RunningContainer>();

    beforeAll(async () => {
      const dataDir = await mkdtemp(join(dir, "postgres-"));
      const postgres = await startPostgres({ dataDir, durable: false, port: await freePort() });
      defer(() => postgres.stop());
      // What the image of Postgres makes of its environment.
      const admin = openClient(postgres.url, "test");
      await admin.unsafe("create role bedrock login superuser; alter database bedrock owner to bedrock");
      await admin.end();
      // Each part has a network of its own, with Postgres, Temporal and the provider at its other end.
      const hosts = new Map<string, Host>();
      for (const part of ["api", "worker", "migrate", ...site.toolHosts]) {
        const host = await makeHost();
        defer(host.remove);
        const passOn = async (address: string, port: number): Promise<void> => {
          const { hostname, port: from } = new URL(address);
          const proxy = await startProxy({ host: hostname, port: Number(from) }, host.gateway, port);
          defer(() => proxy.cut());
        };
        await passOn(postgres.url, 5432);
        await passOn(`http://${temporalAddress}`, 7233);
        await passOn(model.url, 8080);
        hosts.set(part, host);
      }
      const hostOf = (part: string): Host => {
        const host = hosts.get(part);
        if (host === undefined) throw new Error(`There is no part ${part}.`);
        return host;
      };
      for (const part of site.toolHosts) {
        const workspace = await mkdtemp(join(dir, "workspace-"));
        await chown(workspace, 1000, 1000);
        workspaces.set(part, workspace);
      }
      start = (part, changes = {}) => {
        const host = hostOf(part);
        const names = { postgres: host.gateway, temporal: host.gateway };
        const container = site.container(part, { "/workspace": workspaces.get(part) ?? "" });
        const more = part === "worker" ? { ANTHROPIC_BASE_URL: `http://${host.gateway}:8080` } : {};
        const environment = { ...container.environment, ...more, TASK_QUEUE: site.name };
        return startContainer(
          image,
          { ...container, environment, ...changes },
          { network: host.under, names },
        );
      };
      const headers = { authorization: `Bearer ${SET["API_TOKEN"]}` };
      const requests = requestsBy((path, init) =>
        fetch(`http://${hostOf("api").address}:3000${path}`, {
          ...init,
          headers: { ...headers, ...(init?.headers as object) },
        }),
      );
      person = new Person(requests, "/workspace");
      ask = (path) =>
        requests.get(path).then(
          ({ ok }) => ok,
          () => false,
        );
    }, 60_000);

    test("the migration's command makes the tables, and can be repeated", async () => {
      for (let time = 0; time < 2; time++) {
        const container = start("migrate");
        expect(await container.exited, container.output()).toBe(0);
        expect(container.output()).toContain("migrated");
      }
    });

    test("API, worker and tools start and get ready", async () => {
      for (const part of ["api", "worker", ...site.toolHosts]) {
        const container = start(part);
        defer(async () => {
          container.kill();
          await container.exited;
        });
        running.set(part, container);
      }
      const inside: Inside = (part, command) => start(part, { command }).exited;
      await until(() => site.isReady(ask, inside));
    }, 120_000);

    test("a Restricted conversation cannot write; after the approval it writes, as the image's user; it finds no secret in /proc", async () => {
      for (const host of site.toolHosts) {
        const id = await person.create({ host });
        const look = toolCall("bash", {
          command: "id -u; cat /proc/*/environ 2>/dev/null | tr '\\0' ' '; true",
        });
        const write = () => toolCall("bash", { command: "echo hello > /workspace/file" });
        const upgrade = toolCall("request_mode_upgrade", { reason: "To write." });
        const script = [say(look), say(write()), say(upgrade), say(look), say(write()), say("Done.")];
        await person.say(id, { text: `go ${model.script(id, script)}` });
        await person.untilState(id, "awaiting_mode_approval");
        const { state, mode } = (await person.conversation(id)) as unknown as {
          readonly state: { readonly toolCall: { readonly id: string } };
          readonly mode: string;
        };
        expect(mode).toBe("restricted");
        await person.order("POST", at(id, "/approval"), {
          decision: "approve",
          toolCallId: state.toolCall.id,
        });
        await person.untilState(id, "idle");
        const results = (await person.messages(id)).flatMap((message) =>
          message.type === "tool" ? [message.content[0]] : [],
        );
        const statuses = ["completed", "failed", "completed", "completed", "completed"];
        expect(results.map(({ status }) => status)).toEqual(statuses);
        const shown = JSON.stringify([results[0], results[3]]);
        expect(shown).toContain("1000");
        for (const secret of Object.values(SET)) expect(shown).not.toContain(secret);
        const file = join(workspaces.get(host) ?? "", "file");
        expect(await readFile(file, "utf8")).toBe("hello\n");
        expect((await stat(file)).uid).toBe(1000);
      }
    });

    test("a tool host's folders can be written to, and the image cannot", async () => {
      const script = "touch /app/x /usr/x || touch /home/node/x /tmp/x /data/x /workspace/x";
      const container = start(site.toolHosts[0] ?? "", { command: ["sh", "-c", script] });
      expect(await container.exited, container.output()).toBe(0);
      expect(container.output()).toContain("Read-only file system");
    });

    test("each ends by itself within the time that it is given", async () => {
      for (const [part, container] of running) {
        const begun = performance.now();
        container.stop();
        await container.exited;
        expect(performance.now() - begun, part).toBeLessThan(site.grace(part) * 1_000);
      }
    });
  });

  test("the guard of Temporal's Web UI gets ready, and lets nobody through without the token", async () => {
    const asked: string[] = [];
    // In place of another maker's image.
    const ui = createServer(({ url = "" }, response) => {
      asked.push(url);
      response.end("the UI");
    });
    const host = await makeHost();
    defer(host.remove);
    ui.listen(8080, host.gateway);
    await once(ui, "listening");
    defer(() => new Promise((resolve) => ui.close(resolve)));
    const place = { network: host.under, names: { "temporal-ui-behind": host.gateway } };
    const guard = containerOf(project, "temporal-ui", {});
    const container = startContainer(image, guard, place);
    defer(async () => {
      container.kill();
      await container.exited;
    });
    const [, ...check] = project.services["temporal-ui"]?.healthcheck?.test ?? [];
    await until(async () => (await startContainer(image, { ...guard, command: check }, place).exited) === 0);
    const ask = (headers: Record<string, string>) => fetch(`http://${host.address}:8233/page`, { headers });
    expect((await ask({})).status).toBe(401);
    expect(asked).toEqual([]);
    const basic = Buffer.from(`anybody:${SET["API_TOKEN"]}`).toString("base64");
    expect(await (await ask({ authorization: `Basic ${basic}` })).text()).toBe("the UI");
    expect(asked).toEqual(["/page"]);
    container.stop();
    expect(await container.exited).toBe(0);
  }, 120_000);

  test("the command for Temporal's namespace finds the one that is there", async () => {
    const { command, environment } = project.services["temporal-namespace"] ?? {};
    const programs = join(dir, "programs");
    await mkdir(programs);
    await copyFile((await ensureTemporalBinary()).path, join(programs, "temporal"));
    const [hostname = "", port = ""] = temporalAddress.split(":");
    expect(environment?.["TEMPORAL_ADDRESS"]).toBe(`temporal:${port}`);
    const container = startContainer(
      image,
      {
        ...containerOf(project, "migrate", {}),
        command: command ?? null,
        environment: { ...environment, PATH: `/media:${process.env["PATH"]}` },
        folders: { "/media": programs },
      },
      { network: [], names: { temporal: hostname } },
    );
    expect(await container.exited, container.output()).toBe(0);
    expect(container.output()).toContain("default");
  });

  test("the image has the corrected packages, and neither tests nor what only builds", async () => {
    const inImage = async (...command: string[]): Promise<string> => {
      const [program = "", ...args] = [...image.mounts, ...command];
      return (await run(program, args, { maxBuffer: 2 ** 24 })).stdout;
    };
    const names = (await inImage("ls", "-A", `${image.layer}/app`)).split("\n");
    for (const name of ["worker.ts", "node_modules", "build"]) expect(names).toContain(name);
    for (const name of ["test", "docs", ".git", ".ci", "bench"]) expect(names).not.toContain(name);
    const packages = (await inImage("ls", `${image.layer}/app/node_modules`)).split("\n");
    expect(packages).toContain("hono");
    for (const name of ["vitest", "typescript", "eslint"]) expect(packages).not.toContain(name);
    const corrected = "node_modules/postgres/src/connection.js";
    expect(await inImage("cat", `${image.layer}/app/${corrected}`)).toBe(
      await readFile(join(ROOT, corrected), "utf8"),
    );
  });
});
