/** Owns: the targets of the attacks: files, listeners and a process that must not notice anything. */
import { spawn, type ChildProcess } from "node:child_process";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { createServer, type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { runCommand, type Command, type CommandResult } from "../../sandbox/command.ts";
import type { Confinement } from "../../sandbox/confinement.ts";
import { commandEnvironment } from "../../sandbox/environment.ts";
import { isDead } from "../support/processes.ts";
import { until } from "../support/waiting.ts";

const WAITING =
  'socket(S, AF_UNIX, SOCK_DGRAM, 0); bind(S, sockaddr_un($ARGV[0])); chmod(0777, $ARGV[0]); open(R, ">", "$ARGV[0].ready"); close R; sleep 300';

export class Arena {
  readonly dir = realpathSync(mkdtempSync(join(tmpdir(), "bedrock-arena-")));
  /** Stands for the server's data folder. Commands must not read it, although its mode lets everybody do so. */
  readonly own = join(this.dir, "own");
  readonly #datagrams = join(this.dir, "datagrams");
  /** A process that waits for datagrams at a path. */
  readonly victim: ChildProcess = spawn("perl", ["-MSocket", "-e", WAITING, this.#datagrams], {
    env: { ...process.env, SECRET: "the key" },
    stdio: "ignore",
  });
  tcpPort = 0;
  udpPort = 0;
  /** Connections and datagrams that came in. */
  heard = 0;

  static async open(): Promise<Arena> {
    const arena = new Arena();
    await arena.#furnish();
    return arena;
  }

  /** The state of the directory: names, modes, sizes, times, contents, attributes of the directory itself. */
  snapshot(): string {
    const names = readdirSync(this.dir, { recursive: true, encoding: "utf8" }).sort();
    return JSON.stringify(
      names.map((name) => {
        const path = join(this.dir, name);
        const { mode, size, mtimeMs, uid } = lstatSync(path);
        return [name, mode, size, mtimeMs, uid, lstatSync(path).isFile() ? readFileSync(path, "utf8") : null];
      }),
    );
  }

  get victimIsAlive(): boolean {
    return !isDead(this.victim.pid ?? 0);
  }

  /** Runs a script in the directory. The arena's addresses are in its environment. */
  run(
    script: string,
    confinement: Confinement | null,
    changes: Partial<Pick<Command, "timeoutMs" | "signal" | "onOutput">> = {},
  ): Promise<CommandResult> {
    return runCommand({
      argv: ["bash", "-c", script],
      cwd: this.dir,
      env: {
        ...commandEnvironment(),
        VICTIM: String(this.victim.pid),
        TCP: String(this.tcpPort),
        UDP: String(this.udpPort),
        UNIX: join(this.dir, "socket"),
        DATAGRAMS: this.#datagrams,
        ABSTRACT: this.dir,
        OWN: this.own,
        // The repository may belong to another user than that of the test.
        GIT_CONFIG_COUNT: "1",
        GIT_CONFIG_KEY_0: "safe.directory",
        GIT_CONFIG_VALUE_0: "*",
      },
      confinement,
      signal: new AbortController().signal,
      timeoutMs: 20_000,
      limitBytes: 100_000,
      ...changes,
    });
  }

  async #furnish(): Promise<void> {
    chmodSync(this.dir, 0o777);
    for (const name of ["one", "two", "three"]) {
      writeFileSync(join(this.dir, name), `the contents of ${name}`);
      chmodSync(join(this.dir, name), 0o666);
    }
    mkdirSync(join(this.dir, "folder"));
    chmodSync(join(this.dir, "folder"), 0o777);
    mkdirSync(this.own);
    writeFileSync(join(this.own, "file"), "the secret");
    writeFileSync(join(this.own, "program"), "#!/bin/sh\necho SUCCESS\n");
    chmodSync(join(this.own, "program"), 0o755);
    symlinkSync(this.own, join(this.dir, "link"));
    const hear = (): void => {
      this.heard++;
    };
    const servers = [createServer(hear), createServer(hear), createServer(hear)] as const;
    const [tcp, path, abstract] = servers;
    tcp.listen(0, "127.0.0.1");
    path.listen(join(this.dir, "socket"));
    abstract.listen(`\0${this.dir}`);
    await Promise.all(servers.map((server) => once(server, "listening")));
    chmodSync(join(this.dir, "socket"), 0o777);
    await until(() => existsSync(`${this.#datagrams}.ready`));
    rmSync(`${this.#datagrams}.ready`);
    const udp = createSocket("udp4", hear).bind(0, "127.0.0.1");
    await once(udp, "listening");
    this.tcpPort = (tcp.address() as AddressInfo).port;
    this.udpPort = udp.address().port;
    onTestFinished(() => {
      for (const server of servers) server.close();
      udp.close();
      this.victim.kill("SIGKILL");
      rmSync(this.dir, { recursive: true, force: true });
    });
  }
}
