/**
 * Owns: Bedrock as a team runs it (docs/operations.md): a Temporal server for production and a Postgres, two APIs behind
 * nginx, a worker for conversations and requests, and two tool hosts, which reach Temporal and Postgres alone.
 */
import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdtemp, mkdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll } from "vitest";
import { migrate } from "../../db/migrate.ts";
import { freePort } from "../../local/ports.ts";
import { startPostgres } from "../../local/postgres.ts";
import { startScriptedServer, type ScriptedServer } from "../../local/scripted/server.ts";
import { dyingWithParent } from "../../local/die-with-parent.ts";
import { startProductionTemporal } from "../support/production-temporal.ts";
import { startProxy } from "../support/tcp-proxy.ts";
import { spawnPart, spawnWorker, type WorkerProcess } from "../support/worker-process.ts";
import { until } from "../support/waiting.ts";
import { makeHost, type Host } from "./hosts.ts";

export const TOKEN = "the-token-of-this-team";

export type ToolHost = Omit<Host, "remove"> & { readonly name: string };

export type Team = {
  /** Of the proxy. */
  readonly url: string;
  readonly model: ScriptedServer;
  readonly cwd: string;
  readonly apis: readonly WorkerProcess[];
  readonly hosts: readonly [ToolHost, ToolHost];
  /** What a host may reach, and what not, as `address/port`. */
  readonly reachable: (host: Host | ToolHost) => readonly string[];
  readonly unreachable: readonly string[];
  /** Starts one more worker of conversations and requests. */
  readonly startDriver: () => Promise<WorkerProcess>;
  readonly driver: WorkerProcess;
};

const ends: (() => Promise<unknown>)[] = [];
afterAll(async () => {
  for (const end of ends) await end();
}, 60_000);
const defer = (end: () => Promise<unknown>): void => void ends.unshift(end);

const POSTGRES_PORT = 5432;
const TEMPORAL_PORT = 7233;

export async function startTeam(): Promise<Team> {
  const dir = await mkdtemp(join(tmpdir(), "bedrock-team-"));
  defer(() => rm(dir, { recursive: true, force: true }));
  const cwd = join(dir, "work");
  await mkdir(cwd);
  const temporal = await startProductionTemporal(await mkdtemp(join(dir, "temporal-")), () => undefined);
  defer(() => temporal.stop());
  const dataDir = join(dir, "postgres");
  const postgres = await startPostgres({ dataDir, durable: true, port: await freePort() });
  defer(() => postgres.stop());
  await migrate(postgres.url);
  const model = await startScriptedServer();
  defer(() => model.close());

  const started = async (child: WorkerProcess & { readonly ready: Promise<void> }) => {
    defer(async () => {
      child.signal("SIGKILL");
      await child.exited;
    });
    await child.ready;
    return child;
  };
  const PAYLOAD_KEY = randomBytes(32).toString("base64");
  const near = { DATABASE_URL: postgres.url, TEMPORAL_ADDRESS: temporal.address, PAYLOAD_KEY };
  const names = ["build-1", "build-2"] as const;
  const toolHost = async (name: string): Promise<ToolHost> => {
    const host = await makeHost();
    defer(host.remove);
    const passOn = async (target: URL, port: number): Promise<void> => {
      const proxy = await startProxy(
        { host: target.hostname, port: Number(target.port) },
        host.gateway,
        port,
      );
      defer(() => proxy.cut());
    };
    await passOn(new URL(postgres.url), POSTGRES_PORT);
    await passOn(new URL(`http://${temporal.address}`), TEMPORAL_PORT);
    const far = new URL(postgres.url);
    far.host = `${host.gateway}:${POSTGRES_PORT}`;
    const env = {
      ...{ WORKER_ROLES: "tools", TOOL_HOST: name, SCRIPTED_MODEL: "0", DATA_DIR: join(dir, name) },
      ...{ DATABASE_URL: far.href, TEMPORAL_ADDRESS: `${host.gateway}:${TEMPORAL_PORT}`, PAYLOAD_KEY },
    };
    await started(spawnWorker(env, host.under));
    return { ...host, name };
  };
  const startDriver = () =>
    started(
      spawnWorker({
        ...near,
        ...{ WORKER_ROLES: "conversations,requests", DATA_DIR: join(dir, "driver") },
        ...{ ANTHROPIC_API_KEY: "test-key", ANTHROPIC_BASE_URL: model.url },
      }),
    );
  const startApi = async () => {
    const port = await freePort();
    const env = {
      ...near,
      ...{ PORT: String(port), API_TOKEN: TOKEN, SCRIPTED_MODEL: "0", DATA_DIR: join(dir, `api-${port}`) },
      ...{ TOOL_HOST: names[0], TOOL_HOSTS: names[1] },
    };
    const child = await started(spawnPart({ program: "api/main.ts", ready: "api ready" }, env));
    return { ...child, port };
  };
  const [driver, hosts, apis] = await Promise.all([
    startDriver(),
    Promise.all([toolHost(names[0]), toolHost(names[1])]),
    Promise.all([startApi(), startApi()]),
  ]);
  const url = await startNginx(
    dir,
    apis.map(({ port }) => port),
  );
  return {
    ...{ url, model, cwd, apis, hosts, driver, startDriver },
    reachable: ({ gateway }) => [`${gateway}/${POSTGRES_PORT}`, `${gateway}/${TEMPORAL_PORT}`],
    unreachable: [url, model.url, postgres.url, `http://${temporal.address}`].map((address) => {
      const { hostname, port } = new URL(address);
      return `${hostname}/${port}`;
    }),
  };
}

/** Resolves with its address. An API that does not answer is left out for a second; streams pass as they come. */
async function startNginx(dir: string, apis: readonly number[]): Promise<string> {
  const port = await freePort();
  const file = join(dir, "nginx.conf");
  await writeFile(
    file,
    `daemon off; error_log stderr crit; pid ${dir}/nginx.pid;
events { worker_connections 512; }
http {
  access_log off;
  ${["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map((kind) => `${kind}_temp_path ${dir}/${kind};`).join(" ")}
  upstream bedrock {
    ${apis.map((api) => `server 127.0.0.1:${api} max_fails=1 fail_timeout=1s;`).join(" ")}
    keepalive 16;
  }
  server {
    listen 127.0.0.1:${port};
    client_max_body_size 64m;
    location / {
      proxy_pass http://bedrock;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_set_header Host $http_host;
      proxy_buffering off;
      proxy_read_timeout 1h;
    }
  }
}
`,
  );
  const { command, args } = dyingWithParent({ command: "nginx", args: ["-c", file, "-p", dir] }, "SIGTERM");
  const nginx = spawn(command, args, { stdio: ["ignore", "inherit", "inherit"] });
  defer(async () => {
    if (nginx.exitCode !== null || nginx.signalCode !== null) return;
    const exited = once(nginx, "exit");
    nginx.kill("SIGTERM");
    await exited;
  });
  const url = `http://127.0.0.1:${port}`;
  await until(() =>
    fetch(`${url}/healthz`).then(
      ({ ok }) => ok || null,
      () => null,
    ),
  );
  return url;
}
