/**
 * Owns: docker-compose.yml as Docker Compose understands it. The library of Docker Compose (compose/main.go) checks it
 * against the schema, and fills in the settings of the environment.
 */
import { execFile, execFileSync } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import type { Container } from "./containers.ts";

const run = promisify(execFile);
const ROOT = join(import.meta.dirname, "..", "..");

type File = {
  readonly source: string;
  readonly target: string;
  readonly uid: string;
  readonly gid: string;
  readonly mode: string;
};

export type Service = {
  readonly image: string;
  readonly build?: { readonly dockerfile: string };
  readonly command: readonly string[] | null;
  readonly environment?: Readonly<Record<string, string>>;
  readonly configs?: readonly File[];
  readonly secrets?: readonly File[];
  readonly volumes?: readonly { readonly source: string; readonly target: string }[];
  readonly tmpfs?: readonly string[];
  readonly networks?: Readonly<Record<string, unknown>>;
  readonly ports?: readonly {
    readonly host_ip?: string;
    readonly published?: string;
    readonly target: number;
  }[];
  readonly healthcheck?: { readonly test: readonly string[] };
  readonly read_only?: boolean;
  readonly cap_drop?: readonly string[];
  readonly security_opt?: readonly string[];
  readonly privileged?: boolean;
  readonly stop_grace_period?: string;
  readonly restart?: string;
  readonly deploy?: {
    readonly resources?: {
      readonly limits?: { readonly cpus?: number; readonly memory?: string; readonly pids?: number };
    };
  };
};

export type Project = {
  readonly services: Readonly<Record<string, Service>>;
  readonly secrets: Readonly<Record<string, { readonly environment?: string }>>;
  readonly configs: Readonly<Record<string, { readonly content?: string }>>;
};

/** The environment of a person who starts it: what must be set. */
export const SET: Readonly<Record<string, string>> = {
  POSTGRES_PASSWORD: "apassword",
  API_TOKEN: "the-token-of-this-installation",
  ANTHROPIC_API_KEY: "the-key-of-the-provider",
  PAYLOAD_KEY: Buffer.alloc(32, 1).toString("base64"),
};

/** Go 1.21 fetches the release that the check asks for by itself. */
export function canCheckCompose(): boolean {
  try {
    const [, minor = "0"] = /go1\.(\d+)/.exec(execFileSync("go", ["version"], { encoding: "utf8" })) ?? [];
    return Number(minor) >= 21;
  } catch {
    return false;
  }
}

/**
 * The project with all settings filled in.
 *
 * @throws what Docker Compose says when the file does not fit its schema, or a setting is missing
 */
export async function readComposeProject(set: Readonly<Record<string, string>>): Promise<Project> {
  const { stdout } = await run("go", ["run", ".", join(ROOT, "docker-compose.yml")], {
    cwd: join(import.meta.dirname, "compose"),
    env: {
      ...{ PATH: process.env["PATH"], HOME: process.env["HOME"], GOPROXY: process.env["GOPROXY"] },
      ...{ GOFLAGS: "-mod=readonly", GOTOOLCHAIN: "auto", CGO_ENABLED: "0" },
      ...set,
    },
    maxBuffer: 2 ** 24,
  });
  return JSON.parse(stdout) as Project;
}

/** The container of a service. A folder of this machine takes the place of each volume. */
export function containerOf(project: Project, name: string, folders: Container["folders"]): Container {
  const service = project.services[name];
  if (service === undefined) throw new Error(`There is no service ${name}.`);
  const { configs = [], secrets = [], volumes = [], tmpfs = [] } = service;
  const placed = [
    ...configs.map((file) => ({ file, content: project.configs[file.source]?.content })),
    ...secrets.map((file) => ({ file, content: SET[project.secrets[file.source]?.environment ?? ""] })),
  ];
  return {
    command: service.command,
    environment: service.environment ?? {},
    files: placed.map(({ file: { source, target, uid, gid, mode }, content }) => {
      if (content === undefined) throw new Error(`${source} has no content.`);
      const path = target.startsWith("/") ? target : `/run/secrets/${target}`;
      return { path, content, uid: Number(uid), gid: Number(gid), mode };
    }),
    emptyFolders: tmpfs.map((each) => each.split(":")[0] ?? ""),
    folders: Object.fromEntries(volumes.map(({ target }) => [target, folders[target] ?? ""])),
    isReadOnly: service.read_only === true,
    hasNoCapabilities: service.cap_drop?.includes("ALL") === true,
    hasNoNewPrivileges: service.security_opt?.includes("no-new-privileges:true") === true,
  };
}
