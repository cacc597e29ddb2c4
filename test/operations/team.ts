/**
 * Owns: Bedrock as a team runs it (docs/operations.md): a Temporal server for production, a Postgres with a standby,
 * two APIs behind nginx, a worker for conversations and requests, and two tool hosts, which reach Temporal and Postgres alone. Each part
 * can be killed and started again. `stop` ends all of it.
 */
import { execFileSync, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdtemp, mkdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { migrate } from "../../db/migrate.ts";
import { freePort } from "../../local/ports.ts";
import { startScriptedServer, type ScriptedServer } from "../../local/scripted/server.ts";
import { dyingWithParent } from "../../local/die-with-parent.ts";
import { startProductionTemporal } from "../support/production-temporal.ts";
import { startProxy } from "../support/tcp-proxy.ts";
import { API, spawnPart, WORKER, type Program } from "../support/worker-process.ts";
import { until } from "../support/waiting.ts";
import { canMakeHosts, makeHost, type Host } from "./hosts.ts";
import { partOf, runningOf, type Part } from "./part.ts";
import { PostgresPair } from "./postgres-pair.ts";

const runs = (program: string, ...args: string[]): boolean => {
  try {
    execFileSync(program, args, { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
};
/** Whether this machine can have several hosts. */
export const isTeamPossible = runs("nginx", "-v") && runs("go", "version") && canMakeHosts();
if (!isTeamPossible) console.warn("SKIPPED, several hosts: they need root, ip (iproute2), nginx, and Go.");

export const TOKEN = "the-token-of-this-team";

export type ToolHost = Pick<Host, "gateway" | "cut" | "mend"> & {
  readonly name: string;
  readonly worker: Part;
};

export type Team = {
  /** Of the proxy. */
  readonly url: string;
  readonly model: ScriptedServer;
  readonly postgres: PostgresPair;
  /** With both servers of Postgres. */
  readonly databaseUrl: string;
  readonly temporalAddress: string;
  readonly payloadKey: Uint8Array;
  readonly cwd: string;
  readonly apis: readonly [Part, Part];
  readonly hosts: readonly [ToolHost, ToolHost];
  /** The worker of conversations and requests. */
  readonly driver: Part;
  /** Starts one more of them; `env` adds to the settings of the first. */
  readonly startDriver: (more?: DriverOptions) => Promise<Part>;
  readonly nginx: Part;
  /** What a host may reach, and what not, as `address/port`. */
  readonly reachable: (host: Pick<Host, "gateway">) => readonly string[];
  readonly unreachable: readonly string[];
  readonly stop: () => Promise<void>;
};

export type TeamOptions = {
  /** An empty folder for everything; one of its own unless given. */
  readonly dir?: string;
  /** The sources of APIs and workers; this checkout unless given. */
  readonly root?: string;
  /** Gets what APIs and workers write to stderr; our own stderr unless given. */
  readonly log?: string;
  /** null: the APIs ask for none. */
  readonly token?: string | null;
  /** false: the standby of Postgres may be behind what was answered. */
  readonly synchronous?: boolean;
  /** true: Temporal's databases are on the same Postgres, and fail over with it. Else they have one of their own. */
  readonly oneDatabase?: boolean;
};

export type DriverOptions = { readonly root?: string; readonly env?: NodeJS.ProcessEnv };

/** Those of a tool host's gateway. */
const POSTGRES_PORTS = [5432, 5433] as const;
const TEMPORAL_PORT = 7233;

export async function startTeam(options: TeamOptions = {}): Promise<Team> {
  const ends: (() => Promise<unknown>)[] = [];
  const stop = async (): Promise<void> => {
    for (const end of ends.splice(0).reverse()) await end();
  };
  try {
    return { ...(await start(options, (end) => void ends.push(end))), stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** @param defer gets what ends each part that was started */
async function start(
  { dir: given, root, log, token = TOKEN, synchronous = true, oneDatabase = false }: TeamOptions,
  defer: (end: () => Promise<unknown>) => void,
): Promise<Omit<Team, "stop">> {
  const dir = given ?? (await mkdtemp(join(tmpdir(), "bedrock-team-")));
  if (given === undefined) defer(() => rm(dir, { recursive: true, force: true }));
  const cwd = join(dir, "work");
  await mkdir(cwd, { recursive: true });
  const postgres = await PostgresPair.start(join(dir, "postgres"), { synchronous });
  defer(() => postgres.stop());
  const temporal = await startProductionTemporal(
    await mkdtemp(join(dir, "temporal-")),
    () => undefined,
    {},
    oneDatabase ? postgres.stablePort : null,
  );
  defer(() => temporal.stop());
  const databaseUrl = urlOf(postgres.ports.map((port) => `127.0.0.1:${port}`));
  await migrate(databaseUrl);
  const model = await startScriptedServer();
  defer(() => model.close());

  const sources = { ...(root === undefined ? {} : { root }), ...(log === undefined ? {} : { log }) };
  const started = async (
    name: string,
    program: Program,
    env: NodeJS.ProcessEnv,
    under: readonly string[] = [],
  ): Promise<Part> => {
    const part = partOf(name, () => spawnPart({ ...program, ...sources }, env, under));
    defer(() => part.end("SIGKILL"));
    await part.start();
    return part;
  };
  const payloadKey = randomBytes(32);
  const PAYLOAD_KEY = payloadKey.toString("base64");
  const near = { DATABASE_URL: databaseUrl, TEMPORAL_ADDRESS: temporal.address, PAYLOAD_KEY };
  const names = ["build-1", "build-2"] as const;
  const toolHost = async (name: string): Promise<ToolHost> => {
    const host = await makeHost();
    defer(host.remove);
    const passOn = async (target: { host: string; port: number }, port: number): Promise<void> => {
      const proxy = await startProxy(target, host.gateway, port);
      defer(() => proxy.cut());
    };
    for (const [n, port] of postgres.ports.entries())
      await passOn({ host: "127.0.0.1", port }, POSTGRES_PORTS[n] ?? 0);
    const { hostname, port } = new URL(`http://${temporal.address}`);
    await passOn({ host: hostname, port: Number(port) }, TEMPORAL_PORT);
    const far = urlOf(POSTGRES_PORTS.map((each) => `${host.gateway}:${each}`));
    const env = {
      ...{ WORKER_ROLES: "tools", TOOL_HOST: name, SCRIPTED_MODEL: "0", DATA_DIR: join(dir, name) },
      ...{ DATABASE_URL: far, TEMPORAL_ADDRESS: `${host.gateway}:${TEMPORAL_PORT}`, PAYLOAD_KEY },
    };
    const worker = await started(`tools of ${name}`, WORKER, env, host.under);
    const { gateway, cut, mend } = host;
    return { gateway, cut, mend, name, worker };
  };
  let drivers = 0;
  const startDriver = ({ root: other, env }: DriverOptions = {}) =>
    started(
      `driver ${++drivers}`,
      { ...WORKER, ...(other === undefined ? {} : { root: other }) },
      {
        ...near,
        ...{ WORKER_ROLES: "conversations,requests", DATA_DIR: join(dir, "driver") },
        ...{ ANTHROPIC_API_KEY: "test-key", ANTHROPIC_BASE_URL: model.url },
        ...env,
      },
    );
  const startApi = async () => {
    const port = await freePort();
    const env = {
      ...near,
      ...(token === null ? {} : { API_TOKEN: token }),
      ...{ PORT: String(port), SCRIPTED_MODEL: "0", DATA_DIR: join(dir, `api-${port}`) },
      ...{ TOOL_HOST: names[0], TOOL_HOSTS: names[1] },
    };
    return { part: await started(`api ${port}`, API, env), port };
  };
  const [driver, hosts, apis] = await Promise.all([
    startDriver(),
    Promise.all([toolHost(names[0]), toolHost(names[1])]),
    Promise.all([startApi(), startApi()]),
  ]);
  const { url, nginx } = await startNginx(
    dir,
    apis.map(({ port }) => port),
  );
  defer(() => nginx.end("SIGTERM"));
  const { address: temporalAddress } = temporal;
  return {
    ...{ url, model, postgres, databaseUrl, temporalAddress, payloadKey },
    ...{ cwd, hosts, driver, startDriver, nginx },
    apis: [apis[0].part, apis[1].part],
    reachable: ({ gateway }) => [...POSTGRES_PORTS, TEMPORAL_PORT].map((port) => `${gateway}/${port}`),
    unreachable: [
      ...postgres.ports.map((port) => `127.0.0.1/${port}`),
      ...[url, model.url, `http://${temporalAddress}`].map((address) => {
        const { hostname, port } = new URL(address);
        return `${hostname}/${port}`;
      }),
    ],
  };
}

/** Several servers, as `address:port`: the product finds the primary among them. */
const urlOf = (servers: readonly string[]): string => `postgres://app@${servers.join(",")}/bedrock`;

/** An API that does not answer is left out for a second; streams pass as they come. */
async function startNginx(dir: string, apis: readonly number[]) {
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
  const url = `http://127.0.0.1:${port}`;
  const answers = () =>
    until(() =>
      fetch(`${url}/healthz`).then(
        ({ ok }) => ok || null,
        () => null,
      ),
    );
  const { command, args } = dyingWithParent({ command: "nginx", args: ["-c", file, "-p", dir] }, "SIGTERM");
  const nginx = partOf("nginx", () =>
    runningOf(spawn(command, args, { stdio: ["ignore", "inherit", "inherit"] }), answers),
  );
  await nginx.start();
  return { url, nginx };
}
