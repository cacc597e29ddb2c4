/**
 * Owns: what tests need of a container engine where there is none: an image made by the Dockerfile's own steps, and
 * containers with the user, rights, files and mounts that are asked for. This machine's files lie below
 * everything in place of the base image, so its Node and its Perl are used. Control groups are not played.
 * Root is needed, as for an engine.
 */
import { spawn, execFile, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";
import { Copy, DockerfileParser, type Instruction, JSONInstruction } from "dockerfile-ast";
import { dyingWithParent } from "../../local/die-with-parent.ts";
import { underFilter } from "../support/seccomp.ts";

const run = promisify(execFile);
const ROOT = join(import.meta.dirname, "..", "..");

/** What engines deny to a container that has no capability, of the calls that our sandbox knows. */
const DENIED_BY_ENGINES = underFilter([
  ...(
    ["unshare", "setns", "mount", "umount2", "pivot_root", "open_tree", "move_mount", "fsopen"] as const
  ).map((call) => [call, 1] as const),
  ...(
    ["fsconfig", "fsmount", "fspick", "mount_setattr", "bpf", "perf_event_open", "userfaultfd"] as const
  ).map((call) => [call, 1] as const),
  ...(["add_key", "request_key", "keyctl", "open_by_handle_at", "fanotify_init"] as const).map(
    (call) => [call, 1] as const,
  ),
  ...(["io_uring_setup", "io_uring_enter", "io_uring_register"] as const).map((call) => [call, 1] as const),
  // Programs fall back to clone, whose flags a filter can see.
  ["clone3", 38],
]);

export type Image = {
  /** Its folder of changes to this machine's files, in the namespace `mounts`. */
  readonly layer: string;
  /** The command before one that runs where the image is mounted. */
  readonly mounts: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly command: readonly string[];
  readonly user: string;
  readonly workdir: string;
  readonly end: () => Promise<void>;
};

export type RunningContainer = {
  /** Resolves with the exit code, or -1 for a signal. */
  readonly exited: Promise<number>;
  readonly output: () => string;
  /** SIGTERM to the first process, as `docker stop`. */
  readonly stop: () => void;
  /** SIGKILL to all of it. */
  readonly kill: () => void;
};

/** Carries out the steps of the Dockerfile, each stage on a layer of its own. */
export async function buildImage(onProgress: (line: string) => void = () => undefined): Promise<Image> {
  const space = await makeMountSpace();
  const stages = new Map<string, Stage>();
  let stage: Stage | null = null;
  const file = DockerfileParser.parse(await readFile(join(ROOT, "Dockerfile"), "utf8"));
  for (const instruction of file.getInstructions()) {
    onProgress(instruction.toString());
    const args = instruction.getArguments().map((argument) => argument.getValue());
    if (instruction.getKeyword() === "FROM") {
      stage = await makeStage(space.under, stages.size);
      stages.set(args.at(-1) === args[0] ? "" : (args.at(-1) ?? ""), stage);
      continue;
    }
    if (stage === null) throw new Error("The Dockerfile begins with FROM.");
    await carryOut(instruction, args, stage, stages);
  }
  const last = stages.get("");
  if (last === undefined) throw new Error("The last stage has no name.");
  return { ...last, mounts: space.under, end: space.end };
}

type Stage = {
  readonly layer: string;
  readonly root: string;
  readonly under: readonly string[];
  env: Record<string, string>;
  command: readonly string[];
  user: string;
  workdir: string;
};

const SPACE = "/mnt";

/** A namespace of mounts that ends with this process. */
async function makeMountSpace() {
  const script = `mount -t tmpfs -o size=4g tmpfs ${SPACE}; echo ready; exec sleep infinity`;
  const { command, args } = dyingWithParent(
    { command: "unshare", args: ["--mount", "--propagation", "private", "sh", "-euc", script] },
    "SIGKILL",
  );
  const holder = spawn(command, args, { stdio: ["ignore", "pipe", "inherit"] });
  const exited = once(holder, "exit");
  for await (const line of createInterface(holder.stdout)) if (line === "ready") break;
  return {
    under: ["nsenter", `--mount=/proc/${holder.pid}/ns/mnt`, "--"],
    end: async () => {
      holder.kill("SIGKILL");
      await exited;
    },
  };
}

async function makeStage(under: readonly string[], number: number): Promise<Stage> {
  const folder = `${SPACE}/stage-${number}`;
  const root = `${folder}/root`;
  await sh(
    under,
    `mkdir -p ${folder}/layer ${folder}/work ${root}
     mount -t overlay overlay -o lowerdir=/,upperdir=${folder}/layer,workdir=${folder}/work ${root}
     mount --rbind /proc ${root}/proc; mount --rbind /dev ${root}/dev; mount -t tmpfs tmpfs ${root}/tmp
     # The user of the base image.
     chroot ${root} sh -euc 'id node >/dev/null 2>&1 || {
       groupadd --non-unique --gid 1000 node; useradd --non-unique --uid 1000 --gid node --create-home node; }'`,
  );
  return { layer: `${folder}/layer`, root, under, env: {}, command: [], user: "root", workdir: "/" };
}

async function carryOut(
  instruction: Instruction,
  args: readonly string[],
  stage: Stage,
  stages: ReadonlyMap<string, Stage>,
): Promise<void> {
  const { root, under } = stage;
  const inImage = (path: string): string => join(root, path.startsWith("/") ? "" : stage.workdir, path);
  switch (instruction.getKeyword()) {
    case "RUN": {
      const variables = Object.entries(stage.env).map(([name, value]) => `${name}=${value}`);
      const script = `cd ${stage.workdir}\n${instruction.getRawArgumentsContent() ?? ""}`;
      await run(...split([...under, "chroot", root, "env", ...variables, "sh", "-ec", script]), OUTPUT);
      return;
    }
    case "COPY": {
      const from = instruction instanceof Copy ? (instruction.getFromFlag()?.getValue() ?? null) : null;
      const source = from === null ? null : stages.get(from);
      if (source === undefined) throw new Error(`There is no stage ${from}.`);
      const [to = ""] = args.slice(-1);
      for (const path of args.filter((arg) => !arg.startsWith("--")).slice(0, -1))
        await copy(
          stage,
          source === null ? join(ROOT, path) : join(source.root, path),
          inImage(to),
          source === null && path === ".",
        );
      return;
    }
    case "WORKDIR":
      stage.workdir = args[0] ?? "/";
      await sh(under, `mkdir -p ${inImage("")}`);
      return;
    case "ENV":
      for (const arg of args) {
        const [name = "", value = ""] = arg.split("=");
        stage.env = { ...stage.env, [name]: value };
      }
      return;
    case "USER":
      stage.user = args[0] ?? "root";
      return;
    case "CMD":
      if (!(instruction instanceof JSONInstruction)) throw new Error("CMD is a list.");
      stage.command = instruction.getJSONStrings().map((text) => text.getJSONValue());
      return;
    case "VOLUME":
    case "EXPOSE":
      return;
    default:
      throw new Error(`Not played here: ${instruction.getKeyword()}.`);
  }
}

/** @param isContext the whole folder of the build, without what .dockerignore names */
async function copy(stage: Stage, from: string, to: string, isContext: boolean): Promise<void> {
  const ignored = isContext ? (await readFile(join(ROOT, ".dockerignore"), "utf8")).split("\n") : [];
  if (ignored.some((name) => /[*!/]/.test(name))) throw new Error(".dockerignore has more than names.");
  const isFolder = await readdir(from).catch(() => null);
  const names = isFolder?.filter((name) => !ignored.includes(name)) ?? null;
  const what = names === null ? [from] : names.map((name) => join(from, name));
  const cp = ["cp", "-r", "--no-dereference", "--preserve=mode,timestamps,links"];
  if (names !== null || to.endsWith("/")) await run(...split([...stage.under, "mkdir", "-p", to]));
  if (what.length > 0) await run(...split([...stage.under, ...cp, ...what, to]));
}

/** What a container is started with. */
export type Container = {
  /** null: the image's own. */
  readonly command: readonly string[] | null;
  readonly environment: Readonly<Record<string, string>>;
  /** Files with secrets and settings. */
  readonly files: readonly MountedFile[];
  /** Empty folders that its user can write to. */
  readonly emptyFolders: readonly string[];
  /** Folders of this machine, by their place in the container. */
  readonly folders: Readonly<Record<string, string>>;
  readonly isReadOnly: boolean;
  readonly hasNoCapabilities: boolean;
  readonly hasNoNewPrivileges: boolean;
};

export type MountedFile = {
  readonly path: string;
  readonly content: string;
  readonly uid: number;
  readonly gid: number;
  /** In octal digits. */
  readonly mode: string;
};

/** Where a container runs. */
export type Place = {
  /** The command before one that runs in the container's network; see hosts.ts. */
  readonly network: readonly string[];
  /** Names of other containers, with their addresses. */
  readonly names: Readonly<Record<string, string>>;
};

/** Starts a container, which ends with this process. */
export function startContainer(image: Image, container: Container, place: Place): RunningContainer {
  const files = container.files.map(
    ({ path, content, uid, gid, mode }) => `place '${path}' ${uid} ${gid} ${mode} <<'END'\n${content}\nEND`,
  );
  const hosts = ["127.0.0.1 localhost", ...Object.entries(place.names).map(([name, at]) => `${at} ${name}`)];
  const empty = container.emptyFolders.map(
    (path) => `mount -t tmpfs -o uid=1000,gid=1000,mode=0700 tmpfs "$root${path}"`,
  );
  const bound = Object.entries(container.folders).map(
    ([path, folder]) => `mount --bind '${folder}' "$root${path}"`,
  );
  const script = `
    root=$(mktemp -d ${SPACE}/container-XXXXXX); mkdir $root.layer $root.work
    ${
      container.isReadOnly
        ? `mount -t overlay overlay -o lowerdir=${image.layer}:/ $root`
        : `mount -t overlay overlay -o lowerdir=${image.layer}:/,upperdir=$root.layer,workdir=$root.work $root`
    }
    mount -t proc proc $root/proc; mount --rbind /dev $root/dev; mount -t tmpfs tmpfs $root/run
    place() { mkdir -p "$root$(dirname $1)"; install -m $4 -o $2 -g $3 /dev/stdin "$root$1.new"
      # Without the line's end that the shell adds.
      truncate -s -1 "$root$1.new"; mv "$root$1.new" "$root$1"; }
    ${[...empty, ...bound, ...files].join("\n    ")}
    printf '%s\\n' ${hosts.map((line) => `'${line}'`).join(" ")} > $root.hosts
    mount --bind $root.hosts $root/etc/hosts
    exec chroot $root "$@"`;
  const environment = {
    ...{ PATH: process.env["PATH"] ?? "", HOME: "/home/node" },
    ...image.env,
    ...container.environment,
  };
  const rights = [
    ...["--reuid", image.user, "--regid", image.user, "--clear-groups"],
    ...(container.hasNoCapabilities ? ["--bounding-set=-all", "--inh-caps=-all"] : []),
    ...(container.hasNoNewPrivileges ? ["--no-new-privs"] : []),
  ];
  const inside = [
    ...["setpriv", ...rights, "env", "-i"],
    ...Object.entries(environment).map(([name, value]) => `${name}=${value}`),
    ...[...DENIED_BY_ENGINES, "sh", "-c", 'cd "$0" && exec "$@"', image.workdir],
    ...(container.command ?? image.command),
  ];
  const isolated = ["unshare", "--mount", "--propagation", "private", "--pid", "--fork", "--kill-child"];
  const [command, args] = split([
    ...[...place.network, ...image.mounts, ...isolated],
    ...["sh", "-euc", script, "sh", ...inside],
  ]);
  const dying = dyingWithParent({ command, args }, "SIGKILL");
  return watched(spawn(dying.command, dying.args, { stdio: ["ignore", "pipe", "pipe"] }));
}

function watched(child: ChildProcess): RunningContainer {
  const { pid, stdout, stderr } = child;
  if (pid === undefined || stdout === null || stderr === null)
    throw new Error("The container did not start.");
  let output = "";
  for (const stream of [stdout, stderr])
    stream.setEncoding("utf8").on("data", (text: string) => (output += text));
  const exited = once(child, "exit").then(([code]) => (code as number | null) ?? -1);
  return {
    exited,
    output: () => output,
    stop: () => process.kill(firstOf(pid), "SIGTERM"),
    kill: () => void child.kill("SIGKILL"),
  };
}

/** The first process of the namespace that this one made: its only child. */
const firstOf = (pid: number): number =>
  Number(readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim());

const OUTPUT = { maxBuffer: 2 ** 26 };

const split = ([program = "", ...args]: readonly string[]): [string, string[]] => [program, args];

const sh = (under: readonly string[], script: string) =>
  run(...split([...under, "sh", "-euc", script]), OUTPUT);
