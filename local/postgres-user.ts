/**
 * Owns: the user under which PostgreSQL runs. PostgreSQL refuses to run as root, but a container or a fresh machine
 * often has no other user.
 */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { chown, lstat, readdir, readFile, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { dyingWithParent, SCRIPT_FOLDER } from "./die-with-parent.ts";

export type ServerUser = {
  /** The owner of its files, as this process sees it. */
  readonly uid: number;
  readonly gid: number;
  /** Gives a folder and everything in it to the user. */
  own(folder: string): Promise<void>;
  /**
   * Spawns a detached process, so that Ctrl-C ends it only after everything else has ended. When this process ends, it
   * gets SIGINT: PostgreSQL then closes the connections and writes a checkpoint. Its output goes to `output`.
   */
  spawn(program: string, args: readonly string[], output: number | "pipe"): ChildProcess;
};

/**
 * This process's own user, unless that is root: then `postgres` or `nobody` if they can reach the given folders,
 * else root under another name in a user namespace.
 */
export async function chooseUser(folders: readonly string[]): Promise<ServerUser> {
  const uid = process.getuid?.() ?? 0;
  if (uid !== 0) {
    return { uid, gid: process.getgid?.() ?? uid, own: () => Promise.resolve(), spawn: spawner([]) };
  }
  const needed = [...folders, SCRIPT_FOLDER];
  for (const user of await unprivilegedUsers()) {
    const reached = await Promise.all(needed.map((folder) => reaches(user, folder)));
    if (!reached.every(Boolean)) continue;
    return { ...user, own: (folder) => ownAll(folder, user), spawn: spawner([], user) };
  }
  const namespace = ["unshare", "--user", "--map-user=65534", "--map-group=65534"];
  if (spawnSync("unshare", [...namespace.slice(1), "true"]).status === 0) {
    const root = { uid: 0, gid: 0 };
    return { ...root, own: (folder) => ownAll(folder, root), spawn: spawner(namespace) };
  }
  throw new Error(
    "PostgreSQL does not run as root, and no other user can reach " +
      `${needed.join(" and ")}. Start as another user, set DATA_DIR to a folder that others can enter, ` +
      "or set DATABASE_URL to a PostgreSQL server.",
  );
}

/** Runs a program to its end. */
export async function runAs(
  user: ServerUser,
  program: string,
  args: readonly string[],
): Promise<{ code: number | null; output: string }> {
  const child = user.spawn(program, args, "pipe");
  let output = "";
  child.stdout?.on("data", (chunk: Buffer) => (output += chunk.toString()));
  child.stderr?.on("data", (chunk: Buffer) => (output += chunk.toString()));
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code) => resolve({ code, output }));
  });
}

function spawner(prefix: readonly string[], user?: { uid: number; gid: number }): ServerUser["spawn"] {
  return (program, args, output) => {
    const last = dyingWithParent({ command: program, args }, "SIGINT");
    const [command = program, ...rest] = [...prefix, last.command, ...last.args];
    return spawn(command, rest, {
      // PostgreSQL changes into its data folder by itself, and its user may have no access to the current one.
      cwd: "/",
      detached: true,
      env: { PATH: process.env["PATH"], LC_ALL: "C", LANG: "C", TZ: "UTC" },
      stdio: ["ignore", output, output],
      ...user,
    });
  };
}

type Account = { readonly uid: number; readonly gid: number };

async function unprivilegedUsers(): Promise<Account[]> {
  const passwd = await readFile("/etc/passwd", "utf8").catch(() => "");
  const lines = passwd.split("\n").map((line) => line.split(":"));
  return ["postgres", "nobody"].flatMap((name) => {
    const line = lines.find((fields) => fields[0] === name);
    const [uid, gid] = [Number(line?.[2]), Number(line?.[3])];
    // On macOS the id of `nobody` is -2.
    return uid > 0 && gid > 0 ? [{ uid, gid }] : [];
  });
}

/** True if the user can enter this folder and every folder above it. */
async function reaches(user: Account, folder: string): Promise<boolean> {
  const { mode, uid, gid } = await stat(folder);
  const enter = uid === user.uid ? 0o100 : gid === user.gid ? 0o010 : 0o001;
  if ((mode & enter) === 0) return false;
  const above = dirname(folder);
  return above === folder || reaches(user, above);
}

async function ownAll(path: string, user: Account): Promise<void> {
  const found = await lstat(path);
  // The folder itself comes last, so that an interrupted change is resumed.
  if (found.uid === user.uid && found.gid === user.gid) return;
  if (found.isDirectory()) {
    for (const name of await readdir(path)) await ownAll(join(path, name), user);
  }
  if (!found.isSymbolicLink()) await chown(path, user.uid, user.gid);
}
