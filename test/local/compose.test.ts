/** docker-compose.yml: its settings are read by the product, and each part has the secrets that it needs, and no other. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { loadServiceConfig, WORKER_ROLES } from "../../config.ts";

const ROOT = join(import.meta.dirname, "..", "..");

type Service = {
  readonly environment: Readonly<Record<string, string>>;
  readonly command?: readonly string[];
  readonly volumes?: readonly string[];
  readonly healthcheck?: { readonly test: readonly string[] };
  readonly image?: string;
};

/** What a person must set. */
const SET: Readonly<Record<string, string>> = {
  POSTGRES_PASSWORD: "a-password",
  API_TOKEN: "a-token",
  ANTHROPIC_API_KEY: "a-key",
  PAYLOAD_KEY: Buffer.alloc(32, 1).toString("base64"),
};

function services(): ReadonlyMap<string, Service> {
  const text = readFileSync(join(ROOT, "docker-compose.yml"), "utf8");
  // A value that must be set has no default; `$$` is for the container's shell.
  const filled = text.replace(
    /(?<!\$)\$\{(\w+)(:\?|:-([^}]*))?\}/g,
    (_, name: string, rest = "", fallback = "") => {
      const value = SET[name];
      if (value === undefined && String(rest).startsWith(":?"))
        throw new Error(`${name} is to be set, and not known.`);
      return value ?? String(fallback);
    },
  );
  const file = parse(filled, { merge: true }) as { readonly services: Readonly<Record<string, Service>> };
  return new Map(Object.entries(file.services));
}

const all = services();
const of = (name: string): Service => {
  const service = all.get(name);
  if (service === undefined) throw new Error(`There is no service ${name}.`);
  return service;
};

test("the settings of API and workers are such as the product reads, and together the workers do everything", () => {
  const [api, worker, tools] = ["api", "worker", "tools"].map((name) =>
    loadServiceConfig(of(name).environment),
  );
  expect(new Set([...(worker?.workerRoles ?? []), ...(tools?.workerRoles ?? [])])).toEqual(
    new Set(WORKER_ROLES),
  );
  expect(worker?.workerRoles).not.toContain("tools");
  // Conversations begin where tools run.
  expect(api?.toolHosts).toEqual([tools?.toolHost]);
  for (const config of [api, worker, tools]) {
    expect(config?.payloadKeys).toEqual(api?.payloadKeys);
    expect(config?.databaseUrl).toBe(api?.databaseUrl);
    expect(config?.temporalAddress).toBe(api?.temporalAddress);
    expect(config?.scriptedModel).toBe(false);
  }
});

test("only the worker that asks the model has the provider's key, only the API has its token, and only tools the files", () => {
  const having = (key: string) =>
    [...all].flatMap(([name, { environment }]) => (environment[key] ? [name] : []));
  expect(having("ANTHROPIC_API_KEY")).toEqual(["worker"]);
  expect(having("API_TOKEN")).toEqual(["api"]);
  const mounts = [...all].filter(([, { volumes }]) =>
    volumes?.some((volume) => volume.endsWith(":/workspace")),
  );
  expect(mounts.map(([name]) => name)).toEqual(["tools"]);
});

test("there is no default for a secret, and each program that is started exists", () => {
  const text = readFileSync(join(ROOT, "docker-compose.yml"), "utf8");
  for (const secret of ["POSTGRES_PASSWORD", "API_TOKEN", "ANTHROPIC_API_KEY"])
    expect(text.match(new RegExp(`\\$\\{${secret}(?!:\\?\\})`, "g"))).toBeNull();
  for (const name of ["worker", "tools"]) {
    const [, ...files] = of(name).command ?? [];
    expect(files.length).toBeGreaterThan(0);
    for (const file of files) expect(existsSync(join(ROOT, file)), file).toBe(true);
  }
});
