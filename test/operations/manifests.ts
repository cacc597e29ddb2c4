/** Owns: operations/kubernetes as a cluster understands it: the objects, checked against the schemas of a release. */
import { execFile } from "node:child_process";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { parseAllDocuments } from "yaml";
import { pythonTool } from "../support/python-tools.ts";
import { SET } from "./compose-project.ts";
import type { Container } from "./containers.ts";

const run = promisify(execFile);
export const FOLDER = join(import.meta.dirname, "..", "..", "operations", "kubernetes");

type Probe = { readonly httpGet?: { readonly path: string; readonly port: string } };

export type PodContainer = {
  readonly name: string;
  readonly image: string;
  readonly args?: readonly string[];
  readonly env?: readonly {
    readonly name: string;
    readonly value?: string;
    readonly valueFrom?: ValueFrom;
  }[];
  readonly envFrom?: readonly { readonly configMapRef: { readonly name: string } }[];
  readonly ports?: readonly { readonly name: string; readonly containerPort: number }[];
  readonly livenessProbe?: Probe;
  readonly readinessProbe?: Probe;
  readonly securityContext?: {
    readonly allowPrivilegeEscalation?: boolean;
    readonly readOnlyRootFilesystem?: boolean;
    readonly capabilities?: { readonly drop?: readonly string[] };
  };
  readonly resources?: { readonly limits?: { readonly memory?: string } };
  readonly volumeMounts?: readonly { readonly name: string; readonly mountPath: string }[];
};

type ValueFrom = {
  readonly fieldRef?: { readonly fieldPath: string };
  readonly secretKeyRef?: { readonly name: string; readonly key: string };
};

type Volume = {
  readonly name: string;
  readonly emptyDir?: object;
  readonly secret?: {
    readonly secretName: string;
    readonly defaultMode: number;
    readonly items: readonly { readonly key: string; readonly path: string }[];
  };
};

export type Pod = {
  readonly securityContext?: {
    readonly runAsNonRoot?: boolean;
    readonly runAsUser?: number;
    readonly fsGroup?: number;
    readonly seccompProfile?: { readonly type: string };
  };
  readonly automountServiceAccountToken?: boolean;
  readonly terminationGracePeriodSeconds?: number;
  readonly containers: readonly [PodContainer];
  readonly volumes?: readonly Volume[];
};

export type KubernetesObject = {
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string };
  readonly data?: Readonly<Record<string, string>>;
  readonly spec?: { readonly replicas?: number; readonly template?: { readonly spec: Pod } };
};

/** All objects, in the order of the files. */
export async function readManifests(): Promise<readonly KubernetesObject[]> {
  const names = (await readdir(FOLDER)).sort();
  const files = await Promise.all(names.map((name) => readFile(join(FOLDER, name), "utf8")));
  // YAML 1.1, as kubectl reads it: 0440 is octal.
  return files.flatMap((text) =>
    parseAllDocuments(text, { version: "1.1" }).map((document) => document.toJS() as KubernetesObject),
  );
}

/**
 * What the check says of all files, a line each. null: this machine has no Python for it.
 *
 * @throws with its lines when an object does not fit, or has a field that Kubernetes does not know
 */
export async function checkManifests(): Promise<readonly string[] | null> {
  const check = await pythonTool("kubernetes-validate==1.37.0", "kubernetes-validate");
  if (check === null) return null;
  const files = (await readdir(FOLDER)).map((name) => join(FOLDER, name));
  const { stdout, stderr } = await run(check, ["--strict", ...files]);
  return `${stdout}${stderr}`.trim().split("\n");
}

/** The pods by the names of what makes them. */
export const podsOf = (objects: readonly KubernetesObject[]): ReadonlyMap<string, Pod> =>
  new Map(
    objects.flatMap(({ metadata, spec }) =>
      spec?.template === undefined ? [] : [[metadata.name, spec.template.spec] as const],
    ),
  );

/** The Secret `bedrock` as docs/operations.md makes it. */
export const SECRETS: Readonly<Record<string, string>> = {
  "database-url": "postgres://bedrock:apassword@postgres:5432/bedrock",
  "payload-key": SET["PAYLOAD_KEY"] ?? "",
  "api-token": SET["API_TOKEN"] ?? "",
  "anthropic-api-key": SET["ANTHROPIC_API_KEY"] ?? "",
};

/**
 * The container of a pod. Mounted secrets belong to root and to the pod's group.
 *
 * @param name of the pod itself
 */
export function containerOfPod(
  objects: readonly KubernetesObject[],
  pod: Pod,
  name: string,
  folders: Container["folders"],
): Container {
  const [container] = pod.containers;
  const shared = (container.envFrom ?? []).map(
    ({ configMapRef }) =>
      objects.find(({ kind, metadata }) => kind === "ConfigMap" && metadata.name === configMapRef.name)?.data,
  );
  const own = (container.env ?? []).map(({ name: key, value, valueFrom }) => {
    const found = value ?? (valueFrom?.fieldRef?.fieldPath === "metadata.name" ? name : undefined);
    if (found === undefined) throw new Error(`${key} has no value.`);
    return [key, found] as const;
  });
  const mounted = (container.volumeMounts ?? []).map(({ name: of, mountPath }) => ({
    mountPath,
    volume: pod.volumes?.find((volume) => volume.name === of),
  }));
  const { securityContext } = container;
  return {
    command: container.args ?? null,
    environment: Object.fromEntries([...shared.flatMap((data) => Object.entries(data ?? {})), ...own]),
    files: mounted.flatMap(({ mountPath, volume }) =>
      (volume?.secret?.items ?? []).map(({ key, path }) => ({
        path: join(mountPath, path),
        content: SECRETS[key] ?? "",
        uid: 0,
        gid: pod.securityContext?.fsGroup ?? 0,
        mode: (volume?.secret?.defaultMode ?? 0).toString(8),
      })),
    ),
    emptyFolders: mounted.flatMap(({ mountPath, volume }) => (volume?.emptyDir ? [mountPath] : [])),
    folders: Object.fromEntries(
      mounted.flatMap(({ mountPath, volume }) =>
        volume === undefined ? [[mountPath, folders[mountPath] ?? ""]] : [],
      ),
    ),
    isReadOnly: securityContext?.readOnlyRootFilesystem === true,
    hasNoCapabilities: securityContext?.capabilities?.drop?.includes("ALL") === true,
    hasNoNewPrivileges: securityContext?.allowPrivilegeEscalation === false,
  };
}
