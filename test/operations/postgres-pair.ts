/**
 * Owns: a Postgres with a standby (docs/operations.md): a commit is answered when both have it. What an operator or a
 * cluster manager does is done by a test: it ends the primary for good, promotes the standby, and builds a new standby.
 */
import { copyFile, mkdir, readdir, rm, writeFile, appendFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { openClient } from "../../db/connect.ts";
import { freePort } from "../../local/ports.ts";
import { startPostgres, type RunningPostgres } from "../../local/postgres.ts";
import { familyOf, isDead } from "../support/processes.ts";
import { startProxy, type TcpProxy } from "../support/tcp-proxy.ts";
import { until } from "../support/waiting.ts";

/** One of the two servers; it keeps its port whatever its role is. */
type Member = { readonly name: string; readonly port: number; readonly dataDir: string };
type Server = { readonly member: Member; readonly postgres: RunningPostgres };
/** A standby, and the network from its primary. */
type Standby = Server & { readonly network: TcpProxy };

export type PairOptions = {
  /** false: a commit is answered when the primary alone has it. */
  readonly synchronous: boolean;
};

const SETTINGS = {
  max_connections: "300",
  // A standby that is being built gets what was written meanwhile.
  wal_keep_size: "512MB",
  wal_retrieve_retry_interval: "200ms",
} as const;

export class PostgresPair {
  readonly #options: PairOptions;
  readonly #members: readonly [Member, Member];
  readonly #stable: TcpProxy;
  #primary: Server;
  #standby: Standby | null = null;

  private constructor(
    members: readonly [Member, Member],
    primary: Server,
    stable: TcpProxy,
    options: PairOptions,
  ) {
    this.#members = members;
    this.#stable = stable;
    this.#primary = primary;
    this.#options = options;
  }

  /** @param dir an empty folder that other users can enter */
  static async start(dir: string, options: PairOptions): Promise<PostgresPair> {
    const member = async (name: string): Promise<Member> => ({
      name,
      port: await freePort(),
      dataDir: join(dir, name),
    });
    const members = [await member("a"), await member("b")] as const;
    const [first] = members;
    const empty = await serve(first);
    for (const [name, value] of Object.entries(SETTINGS)) await set(first, name, value);
    await empty.stop();
    const stable = await startProxy({ host: "127.0.0.1", port: first.port });
    const primary = { member: first, postgres: await serve(first) };
    const pair = new PostgresPair(members, primary, stable, options);
    await pair.buildStandby();
    return pair;
  }

  /** The ports of both servers, which do not change. */
  get ports(): readonly [number, number] {
    const [a, b] = this.#members;
    return [a.port, b.port];
  }

  /** A port that leads to the primary, for programs that know one address only. */
  get stablePort(): number {
    return this.#stable.port;
  }

  get primary(): { readonly port: number; readonly pid: number } {
    const { member, postgres } = this.#primary;
    return { port: member.port, pid: postgres.pid };
  }

  get hasStandby(): boolean {
    return this.#standby !== null;
  }

  /**
   * The standby hears nothing more for `lagMs` milliseconds. Then the primary dies by `kill -9`, and the standby is
   * promoted. The new primary has no standby, and answers a commit when it alone has it.
   */
  async failOver(lagMs: number): Promise<void> {
    const standby = this.#standby;
    if (standby === null) throw new Error("There is no standby.");
    this.#standby = null;
    await standby.network.hang();
    await pause(lagMs);
    await this.killPrimary();
    await standby.network.cut();
    await ask(standby.member, (sql) => sql`select pg_promote(true, 60)`);
    this.#primary = standby;
    this.#stable.lead({ host: "127.0.0.1", port: standby.member.port });
  }

  /** Resolves when no process of it is left: the old primary answers nobody when the new one begins. */
  async killPrimary(): Promise<void> {
    const { pid } = this.#primary.postgres;
    const family = familyOf(pid);
    process.kill(pid, "SIGKILL");
    await until(() => family.every(isDead));
  }

  /** Commits wait until there is a standby again. */
  async killStandby(): Promise<void> {
    const standby = this.#standby;
    this.#standby = null;
    standby?.postgres.kill();
    await standby?.postgres.ended;
    await standby?.network.cut();
  }

  /** Starts the primary that was killed: it recovers. */
  async restartPrimary(): Promise<void> {
    const { member } = this.#primary;
    this.#primary = { member, postgres: await serve(member) };
  }

  /** Builds a standby in the place of the server that is away. Resolves when commits wait for it. */
  async buildStandby(): Promise<void> {
    const primary = this.#primary.member;
    const [a, b] = this.#members;
    const member = primary === a ? b : a;
    await rm(member.dataDir, { recursive: true, force: true });
    await copyData(primary, member);
    const network = await startProxy({ host: "127.0.0.1", port: primary.port });
    const source = `host=127.0.0.1 port=${network.port} user=app application_name=${member.name}`;
    const folder = dataOf(member);
    await writeFile(join(folder, "standby.signal"), "");
    await appendFile(
      join(folder, "postgresql.auto.conf"),
      `primary_conninfo = '${source}'\nsynchronous_standby_names = ''\n`,
    );
    this.#standby = { member, network, postgres: await serve(member) };
    if (this.#options.synchronous) await set(primary, "synchronous_standby_names", member.name);
    const wanted = this.#options.synchronous ? "sync" : "async";
    await until(() =>
      ask(primary, async (sql) => {
        const [row] = await sql<{ state: string }[]>`
          select sync_state as state from pg_stat_replication where state = 'streaming'`;
        return row?.state === wanted;
      }),
    );
  }

  /**
   * The mistake that an operator must not make: the server that was primary before the last fail-over runs as a primary,
   * beside the new one. End it before anything else.
   */
  startOldPrimary(): Promise<RunningPostgres> {
    const [a, b] = this.#members;
    return serve(this.#primary.member === a ? b : a);
  }

  async stop(): Promise<void> {
    await this.#stable.cut();
    // A primary that stops waits for no commit, but for its standby to have everything.
    await this.#primary.postgres.stop();
    await this.#standby?.network.cut();
    await this.#standby?.postgres.stop();
  }
}

const serve = ({ dataDir, port }: Member): Promise<RunningPostgres> =>
  startPostgres({ dataDir, durable: true, port });

const dataOf = ({ dataDir }: Member): string => join(dataDir, "pg18");

async function ask<T>(
  { port }: Member,
  question: (sql: ReturnType<typeof openClient>) => Promise<T>,
): Promise<T> {
  // One that is to be promoted takes no writes yet, so the driver is told to take any.
  const sql = openClient(`postgres://app@127.0.0.1:${port}/postgres`, "operator", "any");
  try {
    return await question(sql);
  } finally {
    await sql.end({ timeout: 1 });
  }
}

async function set(member: Member, name: string, value: string): Promise<void> {
  await ask(member, async (sql) => {
    await sql.unsafe(`alter system set ${name} = '${value}'`);
    await sql`select pg_reload_conf()`;
  });
}

/** What stands for the moment only, and what a server that starts makes itself. */
const LEFT_OUT = /^(postmaster\.(pid|opts)|pg_internal\.init|pgsql_tmp.*)$/;
const EMPTIED = ["pg_wal", "pg_replslot", "pg_stat_tmp", "pg_notify", "pg_subtrans", "pg_dynshmem"];

/** A base backup of files, as pg_basebackup makes one by the protocol. */
async function copyData(from: Member, to: Member): Promise<void> {
  await mkdir(to.dataDir, { recursive: true });
  await ask(from, async (sql) => {
    await sql`select pg_backup_start('standby', true)`;
    await copyFolder(dataOf(from), dataOf(to));
    const [backup] = await sql<{ labelfile: string }[]>`select labelfile from pg_backup_stop(false)`;
    await writeFile(join(dataOf(to), "backup_label"), backup?.labelfile ?? "");
  });
}

async function copyFolder(from: string, to: string): Promise<void> {
  await mkdir(to, { recursive: true, mode: 0o700 });
  for (const entry of await readdir(from, { withFileTypes: true })) {
    const [source, target] = [join(from, entry.name), join(to, entry.name)];
    if (LEFT_OUT.test(entry.name)) continue;
    if (!entry.isDirectory()) await copyFile(source, target).catch(unlessGone);
    else if (EMPTIED.includes(entry.name)) await mkdir(target, { recursive: true, mode: 0o700 });
    else await copyFolder(source, target);
  }
}

/** The server removes files of tables meanwhile; the log of writes has what came of them. */
function unlessGone(error: unknown): void {
  if (!(error instanceof Error && "code" in error && error.code === "ENOENT")) throw error;
}
