/** operations/kubernetes fits the schemas of Kubernetes, and gives each part what it needs and no more. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { WORKER_ROLES } from "../../config.ts";
import { checkManifests, containerOfPod, podsOf, readManifests, type Pod } from "./manifests.ts";

const objects = await readManifests();
const pods = podsOf(objects);
const ours = ["api", "worker", "tools", "migrate"];
const compose = parse(await readFile(join(import.meta.dirname, "..", "..", "docker-compose.yml"), "utf8"), {
  merge: true,
}) as {
  readonly services: Readonly<
    Record<string, { readonly image: string; readonly command?: readonly string[] }>
  >;
  readonly configs: { readonly "temporal-settings": { readonly content: string } };
};

const podOf = (name: string): Pod => {
  const pod = pods.get(name);
  if (pod === undefined) throw new Error(`There is no pod of ${name}.`);
  return pod;
};
const settingsOf = (name: string) => containerOfPod(objects, podOf(name), `${name}-0`, {}).environment;

test("every object fits its schema, and has no field that Kubernetes does not know", async ({ skip }) => {
  const lines = await checkManifests();
  skip(lines === null, "the check needs Python 3 with venv");
  expect(lines?.filter((line) => line.includes(" passed ")).length).toBe(objects.length);
}, 120_000);

test("all objects are in one namespace, which admits nothing that is privileged", () => {
  for (const { kind, metadata } of objects)
    if (kind !== "Namespace") expect(metadata.namespace, metadata.name).toBe("bedrock");
  const namespace = objects.find(({ kind }) => kind === "Namespace");
  expect(namespace?.metadata).toMatchObject({
    labels: { "pod-security.kubernetes.io/enforce": "restricted" },
  });
  for (const [name, { securityContext, automountServiceAccountToken, containers }] of pods) {
    expect(securityContext, name).toMatchObject({
      ...{ runAsNonRoot: true, runAsUser: 1000, seccompProfile: { type: "RuntimeDefault" } },
    });
    // A command of an agent must not find an account of the cluster.
    expect(automountServiceAccountToken, name).toBe(false);
    const [container] = containers;
    const least = { allowPrivilegeEscalation: false, capabilities: { drop: ["ALL"] } };
    expect(container.securityContext, name).toMatchObject(least);
    expect(container.resources?.limits?.memory, name).toBeDefined();
  }
  for (const name of ours)
    expect(podOf(name).containers[0].securityContext?.readOnlyRootFilesystem, name).toBe(true);
});

test("each part has the secrets that it needs, as files that others cannot read", () => {
  const secretsOf = (name: string): readonly string[] =>
    (podOf(name).volumes ?? []).flatMap(({ secret }) => secret?.items.map(({ key }) => key) ?? []);
  expect(secretsOf("api")).toEqual(["database-url", "payload-key", "api-token"]);
  expect(secretsOf("worker")).toEqual(["database-url", "payload-key", "anthropic-api-key"]);
  expect(secretsOf("tools")).toEqual(["database-url", "payload-key"]);
  expect(secretsOf("migrate")).toEqual(["database-url"]);
  for (const name of ours)
    for (const { secret } of podOf(name).volumes ?? [])
      if (secret !== undefined) expect(secret.defaultMode).toBe(0o440);
});

test("the workers do everything together, and people may begin on each tool host", () => {
  const roles = ["worker", "tools"].flatMap((name) => settingsOf(name)["WORKER_ROLES"]?.split(",") ?? []);
  expect(new Set(roles)).toEqual(new Set(WORKER_ROLES));
  const { replicas = 0 } = objects.find(({ kind }) => kind === "StatefulSet")?.spec ?? {};
  const { TOOL_HOST, TOOL_HOSTS } = settingsOf("api");
  const made = Array.from({ length: replicas }, (_, number) => `tools-${number}`);
  expect([TOOL_HOST, ...(TOOL_HOSTS?.split(",") ?? [])]).toEqual(made);
  expect(settingsOf("tools")["TOOL_HOST"]).toBe("tools-0");
});

test("Temporal's server is that of docker-compose.yml: release, settings, schema, namespace", () => {
  const settings = objects.find(({ kind, metadata }) => kind === "ConfigMap" && metadata.name === "temporal");
  expect(parse(settings?.data?.["dynamic-config.yaml"] ?? "")).toEqual(
    parse(compose.configs["temporal-settings"].content),
  );
  for (const name of ["temporal", "temporal-schema", "temporal-namespace"]) {
    const [container] = podOf(name).containers;
    expect(container.image).toBe(compose.services[name]?.image);
    expect(container.args).toEqual(
      compose.services[name]?.command?.map((part) => part.replaceAll("$$", "$")),
    );
  }
});

test("the probes of the API ask what it has for them: a missing Postgres takes it out of service, and does not restart it", () => {
  const [{ livenessProbe, readinessProbe }] = podOf("api").containers;
  expect(livenessProbe?.httpGet?.path).toBe("/healthz");
  expect(readinessProbe?.httpGet?.path).toBe("/readyz");
});
