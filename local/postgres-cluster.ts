/** Owns: the folders of the embedded PostgreSQL: its data, created once, and its socket. */
import { createHash } from "node:crypto";
import { chmod, chown, lstat, mkdir, mkdtemp, readFile, rename, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runAs, type ServerUser } from "./postgres-user.ts";

/** The major version of the binaries; they cannot open a cluster of another one. */
const MAJOR = "18";

export type Cluster = {
  readonly folder: string;
  readonly sockets: string;
  readonly log: string;
  readonly durable: boolean;
  /** null: it listens on its socket only. */
  readonly port: number | null;
  readonly bin: string;
  readonly user: ServerUser;
};

/** The paths of a cluster; no file is touched yet. */
export function clusterIn({
  dataDir,
  ...settings
}: Pick<Cluster, "durable" | "port" | "bin" | "user"> & { readonly dataDir: string }): Cluster {
  return {
    ...settings,
    folder: join(dataDir, `pg${MAJOR}`),
    sockets: socketFolder(dataDir),
    log: join(dataDir, `pg${MAJOR}.log`),
  };
}

/** A socket's path may have 107 bytes (103 on macOS), so it is not in the data folder. */
function socketFolder(dataDir: string): string {
  const name = `bedrock-${createHash("sha256").update(dataDir).digest("hex").slice(0, 12)}`;
  const folder = join(tmpdir(), name);
  return Buffer.byteLength(folder) <= 80 ? folder : join("/tmp", name);
}

/**
 * Creates the cluster on the first run, and the socket's folder on each. Rejects, and touches nothing, when the
 * data folder holds another PostgreSQL's data or something else.
 */
export async function prepareCluster(cluster: Cluster, progress: (sentence: string) => void): Promise<void> {
  const { folder } = cluster;
  const found = await readFile(join(folder, "PG_VERSION"), "utf8").catch(() => null);
  if (found === null) {
    if (await exists(folder)) {
      throw new Error(
        `${folder} exists but holds no PostgreSQL cluster. Move it away, or set another DATA_DIR.`,
      );
    }
    progress("Creating the PostgreSQL cluster.");
    await createCluster(cluster);
  } else if (found.trim() !== MAJOR) {
    throw new Error(
      `${folder} belongs to PostgreSQL ${found.trim()}, this is ${MAJOR}. Set another DATA_DIR, or dump it with ` +
        `PostgreSQL ${found.trim()} and load it into a server that DATABASE_URL names.`,
    );
  } else {
    await cluster.user.own(folder);
  }
  await prepareSocketFolder(cluster);
}

async function createCluster(cluster: Cluster): Promise<void> {
  // Renamed when complete: an initdb that was killed leaves nothing that looks like a cluster.
  const draft = await mkdtemp(`${cluster.folder}.new-`);
  try {
    await cluster.user.own(draft);
    const { code, output } = await runAs(cluster.user, join(cluster.bin, "initdb"), [
      ...["-D", draft, "-U", "app", "-A", "trust", "-E", "UTF8"],
      ...["--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"],
      ...(cluster.durable ? [] : ["--no-sync"]),
    ]);
    if (code !== 0) throw new Error(`PostgreSQL's initdb failed:\n${output}`);
    await rename(draft, cluster.folder);
  } catch (error) {
    await rm(draft, { recursive: true, force: true });
    // Another process may have created it first.
    if (!(await exists(join(cluster.folder, "PG_VERSION")))) throw error;
  }
}

async function prepareSocketFolder({ sockets, user }: Cluster): Promise<void> {
  await mkdir(sockets, { mode: 0o700 }).catch((error: unknown) => {
    if (!(error instanceof Error && "code" in error && error.code === "EEXIST")) throw error;
  });
  // Other users may write to the folder above, so a folder that they made is not trusted.
  const found = await lstat(sockets);
  const own = process.getuid?.();
  if (!found.isDirectory() || (found.uid !== own && found.uid !== user.uid)) {
    throw new Error(`${sockets} belongs to somebody else. Remove it, or set TMPDIR to a folder of your own.`);
  }
  await chmod(sockets, 0o700);
  if (user.uid !== found.uid) await chown(sockets, user.uid, user.gid);
}

async function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}
