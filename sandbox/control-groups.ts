/**
 * Owns: the control groups that commands run in: their names, and which facilities this host offers, found out by
 * making some groups. `cgroup.kill` ends a command whatever it does. The kernel counts memory and processes, and sees
 * what no sum over processes shows. A missing facility is done without, silently: supervisors kill and watch instead.
 * Not here: making a group for a command, entering and removing it (control-groups.pl).
 */
import { randomUUID } from "node:crypto";
import {
  accessSync,
  closeSync,
  constants,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmdirSync,
  statSync,
  writeSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";
import { LIMITS, type Limits } from "./limits.ts";

/** A command's control group in one hierarchy, to be made below `parent`. */
export type ControlGroup = {
  readonly parent: string;
  /**
   * The file that lists the group's processes. A command is forked into a group of cgroup2, and enters others by
   * writing to this file.
   */
  readonly entry: "cgroup.procs" | "tasks";
  /** The file that counts kills for lack of memory; null if the group does not limit memory. */
  readonly events: string | null;
  /** Written to the group's files before a process enters. A file whose name follows a question mark need not exist. */
  readonly settings: readonly string[];
};

/** The control groups of one launcher. The launcher knows only those that this process names to it. */
export type ControlGroups = {
  /** One for each hierarchy; they hold the groups of the launcher's commands. */
  readonly directories: readonly string[];
  /** Groups of launchers whose worker has ended, or that ended without removing them. */
  readonly leftovers: readonly string[];
  /** The groups for one command. @param limits null: the groups are only for killing it */
  readonly of: (limits: Limits | null) => readonly ControlGroup[];
  /**
   * Kills all commands, or one that has no limits; kills none where the host does not offer it. The launcher kills a
   * command with limits: such a command cannot hinder it, and the group may be another command's by now.
   */
  readonly kill: (id?: string) => void;
  /** To be called when the launcher has ended. */
  readonly close: () => void;
};

type Facility = "kill" | "memory" | "processes";
type Version = 1 | 2;
/** A control group that can hold the groups of commands. */
type Place = {
  readonly directory: string;
  readonly version: Version;
  readonly facilities: ReadonlySet<Facility>;
};

const PREFIX = "bedrock";
const closed = new Set<string>();
let areDisabled = false;

/** From now on there are no groups, as on many hosts. For tests of what happens there. */
export const disableControlGroups = (): void => void (areDisabled = true);

/** Makes the groups of one launcher. */
export function openControlGroups(): ControlGroups {
  const owner = nameOfOwner();
  const name = `${owner ?? ""}-${randomUUID().slice(0, 8)}`;
  const places = areDisabled || owner === null ? [] : findPlaces(name);
  const killable = places.filter(({ facilities }) => facilities.has("kill"));
  return {
    directories: places.map(({ directory }) => directory),
    leftovers: places.flatMap(({ directory }) => leftoversIn(dirname(directory))),
    of: (limits) => places.flatMap((place) => groupsIn(place, limits)),
    kill: (id = "") => {
      for (const { directory } of killable) attempt(() => write(join(directory, id, "cgroup.kill"), "1"));
    },
    close: () => void closed.add(name),
  };
}

function groupsIn({ directory, version, facilities }: Place, limits: Limits | null): ControlGroup[] {
  const settings =
    limits === null ? [] : [...facilities].flatMap((facility) => settingsOf(facility, version, limits));
  if (settings.length === 0 && !facilities.has("kill")) return [];
  const counter = version === 2 ? "memory.events" : "memory.oom_control";
  const events = limits !== null && facilities.has("memory") ? counter : null;
  return [{ parent: directory, entry: entryOf(version), events, settings }];
}

const entryOf = (version: Version) => (version === 2 ? "cgroup.procs" : "tasks");

/** Memory that is swapped out counts, too. */
function settingsOf(facility: Facility, version: Version, { memoryBytes, processes }: Limits): string[] {
  switch (facility) {
    case "kill":
      return [];
    case "memory":
      return version === 2
        ? [`memory.max=${memoryBytes}`, "?memory.swap.max=0", "?memory.oom.group=1"]
        : [`memory.limit_in_bytes=${memoryBytes}`, `?memory.memsw.limit_in_bytes=${memoryBytes}`];
    case "processes":
      return [`pids.max=${processes}`];
  }
}

/**
 * The kernel has each controller only once: it counts memory and processes either in cgroup2 or in hierarchies of their
 * own.
 */
function findPlaces(name: string): Place[] {
  const places = [
    findUnified(name),
    ...(["memory", "pids"] as const).map((controller) => {
      const own = ownGroup(controller);
      const facility = controller === "pids" ? "processes" : controller;
      return own === null ? null : make(own.directory, name, 1, [facility]);
    }),
  ];
  return places.filter((place) => place !== null);
}

/**
 * A place below the group of this process. A group that holds processes, as ours mostly does, cannot limit memory below
 * it. Then the place is below the group above, if that group was given to us.
 */
function findUnified(name: string): Place | null {
  const own = ownGroup(null);
  if (own === null) return null;
  const all: readonly Facility[] = ["kill", "memory", "processes"];
  const below = make(own.directory, name, 2, all);
  if (below?.facilities.has("memory") === true || own.isRoot || !isGivenToUs(own.directory)) return below;
  const above = make(dirname(own.directory), name, 2, all);
  if (above === null) return below;
  const [best, other] = above.facilities.has("memory") ? [above, below] : [below, above];
  if (other !== null) attempt(() => rmdirSync(other.directory));
  return best;
}

/**
 * Whether the group above is delegated to us: it belongs to our user or, for root, holds no group but ours and is no
 * slice.
 */
function isGivenToUs(directory: string): boolean {
  const above = dirname(directory);
  const user = process.geteuid?.();
  if (user !== 0) return attempt(() => statSync(above).uid) === user;
  const groups = attempt(() =>
    readdirSync(above, { withFileTypes: true }).filter((entry) => entry.isDirectory()),
  );
  const isOurs = (name: string): boolean => name === basename(directory) || name.startsWith(`${PREFIX}-`);
  return !above.endsWith(".slice") && groups?.every(({ name }) => isOurs(name)) === true;
}

/** null: no facility works there. */
function make(base: string, name: string, version: Version, wanted: readonly Facility[]): Place | null {
  const directory = join(base, name);
  if (attempt(() => mkdirSync(directory)) === null) return null;
  if (version === 2) {
    for (const controller of ["+memory", "+pids"]) {
      attempt(() => write(join(base, "cgroup.subtree_control"), controller));
      attempt(() => write(join(directory, "cgroup.subtree_control"), controller));
    }
  }
  const facilities = new Set(wanted.filter((facility) => isHad(base, directory, version, facility)));
  if (facilities.size > 0) return { directory, version, facilities };
  attempt(() => rmdirSync(directory));
  return null;
}

/** Tries the facility with an empty group. */
function isHad(base: string, directory: string, version: Version, facility: Facility): boolean {
  const trial = join(directory, "trial");
  if (attempt(() => mkdirSync(trial)) === null) return false;
  const result = attempt(() => {
    for (const setting of settingsOf(facility, version, LIMITS)) {
      const [file = "", value = ""] = setting.split("=");
      if (!file.startsWith("?")) write(join(trial, file), value);
    }
    if (facility === "kill") accessSync(join(trial, "cgroup.kill"), constants.W_OK);
    // A process that enters a group leaves another one. The kernel checks the right to both in the group above them.
    for (const group of [base, trial]) accessSync(join(group, entryOf(version)), constants.W_OK);
    return version === 1 || readFileSync(join(trial, "cgroup.type"), "utf8") === "domain\n";
  });
  attempt(() => rmdirSync(trial));
  return result === true;
}

/**
 * The group of this process, in cgroup2 (`controller` is null) or in the hierarchy of a controller. Returns null if it
 * cannot be seen.
 */
function ownGroup(
  controller: string | null,
): { readonly directory: string; readonly isRoot: boolean } | null {
  const path = matches("/proc/self/cgroup", /^\d+:([^:]*):(.*)$/).find(([, controllers = ""]) =>
    isAmong(controllers, controller ?? ""),
  )?.[2];
  const mount = matches("/proc/self/mountinfo", /^\d+ \d+ \S+ (\S+) (\S+) .* - (cgroup2?) \S+ (\S+)$/).find(
    ([, , , type, options = ""]) =>
      controller === null ? type === "cgroup2" : type === "cgroup" && isAmong(options, controller),
  );
  const [, root = "", mountPoint = ""] = mount ?? [];
  // A container may see only a part of the hierarchy.
  const isWithin = path !== undefined && mount !== undefined && `${path}/`.startsWith(join(root, "/"));
  const below = isWithin ? join("/", path.slice(root === "/" ? 0 : root.length)) : null;
  return below === null || path?.startsWith("/..") === true
    ? null
    : { directory: join(mountPoint, below), isRoot: below === "/" };
}

const isAmong = (list: string, name: string): boolean => list.split(",").some((item) => item === name);

const matches = (file: string, line: RegExp): RegExpExecArray[] =>
  (attempt(() => readFileSync(file, "utf8")) ?? "")
    .split("\n")
    .map((text) => line.exec(text))
    .filter((match) => match !== null);

/**
 * A name for this process and its namespace. No other process has the same name until the next boot, when all groups
 * are new.
 */
function nameOfOwner(): string | null {
  const namespace = /\d+/.exec(attempt(() => readlinkSync("/proc/self/ns/pid")) ?? "")?.[0];
  const start = startOf(process.pid);
  return namespace === undefined || start === null ? null : [PREFIX, namespace, process.pid, start].join("-");
}

/** The start of a process, in ticks since the boot; null when it has ended. */
function startOf(pid: number): string | null {
  const stat = attempt(() => readFileSync(`/proc/${pid}/stat`, "utf8")) ?? "";
  // After the name, which may hold anything: the state, 18 numbers, the start.
  const [, state, start] = /^.*\) (\S)(?: -?\d+){18} (\d+) /s.exec(stat) ?? [];
  return start === undefined || state === "Z" || state === "X" ? null : start;
}

function leftoversIn(base: string): string[] {
  return (attempt(() => readdirSync(base)) ?? []).filter(isLeft).map((name) => join(base, name));
}

/**
 * A process in another namespace cannot be judged from here. A process's launchers end with it, so a process that has
 * ended leaves its groups behind.
 */
function isLeft(name: string): boolean {
  const [prefix, namespace = "", pid = "", start] = name.split("-");
  if (prefix !== PREFIX || !(nameOfOwner() ?? "").startsWith(`${PREFIX}-${namespace}-`)) return false;
  return Number(pid) === process.pid ? closed.has(name) : startOf(Number(pid)) !== start;
}

/** Never creates the file: if it does not exist, the host does not offer the facility. */
function write(path: string, text: string): void {
  const file = openSync(path, constants.O_WRONLY);
  try {
    writeSync(file, text);
  } finally {
    closeSync(file);
  }
}

/** null: the action failed, for whatever reason, and what it tried is not available. */
function attempt<T>(action: () => T): T | null {
  try {
    return action();
  } catch {
    return null;
  }
}
