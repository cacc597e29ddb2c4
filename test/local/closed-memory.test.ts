/**
 * A command with the person's rights looks for the provider's key, the token and the key of payloads in all processes of
 * the same user. As root it would find them, so the product runs as another user here.
 */
import { spawn, spawnSync, type ChildProcess } from "node:child_process";
import { randomBytes, randomUUID } from "node:crypto";
import { once } from "node:events";
import {
  chmodSync,
  chownSync,
  copyFileSync,
  existsSync,
  linkSync,
  readFileSync,
  writeFileSync,
} from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { expect, inject, onTestFinished, test } from "vitest";
import { startProduct, type Product } from "../support/product.ts";
import { eventually, temporaryFolder } from "./support.ts";

const SLOW = 240_000;
const ROOT = join(import.meta.dirname, "..", "..");
const isRoot = process.getuid?.() === 0;
/** Nobody, if there is a choice. */
const USER = isRoot ? 65_534 : undefined;
const as = USER === undefined ? {} : { uid: USER, gid: USER };

const SECRETS = {
  ANTHROPIC_API_KEY: `sk-ant-${randomUUID()}`,
  API_TOKEN: `token-${randomUUID()}`,
  PAYLOAD_KEY: randomBytes(32).toString("base64"),
};
const HEADERS = { "content-type": "application/json", authorization: `Bearer ${SECRETS.API_TOKEN}` };

/** The other user may read these sources. */
const mayRead = spawnSync(process.execPath, ["-e", ""], { cwd: ROOT, ...as }).status === 0;
/** A kernel module that lets programs trace only what they have started. */
const yama = "/proc/sys/kernel/yama/ptrace_scope";
const mayTrace = !existsSync(yama) || readFileSync(yama, "utf8").startsWith("0");

/** A folder with Temporal's command line, where the other user can run it. */
function folderOf(program: string): string {
  const folder = temporaryFolder();
  const there = join(folder, "temporal");
  try {
    linkSync(program, there);
  } catch {
    copyFileSync(program, there);
  }
  chmodSync(there, 0o755);
  return folder;
}

function give(path: string): void {
  if (USER !== undefined) chownSync(path, USER, USER);
}

/** A process of the same user that holds the secrets and does not close itself. */
async function control(): Promise<ChildProcess> {
  const script = "process.stdout.write('x'); setInterval(() => undefined, 1e6)";
  const child = spawn(process.execPath, ["-e", script], {
    ...as,
    env: SECRETS,
    cwd: "/",
    stdio: ["ignore", "pipe", "ignore"],
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  await once(child.stdout, "data");
  return child;
}

/** Runs a command in an Unrestricted conversation; returns what it has printed. */
async function unrestricted(product: Product, command: string): Promise<string> {
  const ask = async (path: string, body?: object) => {
    const init = body === undefined ? {} : { method: "POST", body: JSON.stringify(body) };
    const response = await fetch(`${product.url}/api/conversations${path}`, { ...init, headers: HEADERS });
    const text = await response.text();
    expect(response.ok, text).toBe(true);
    return JSON.parse(text) as { mode: string; state: { kind: string; toolCall?: { id: string } } };
  };
  const id = randomUUID();
  await ask("", { id, cwd: product.cwd });
  if ((await ask(`/${id}`)).mode === "restricted") {
    await ask(`/${id}/messages`, { text: "write: note.txt hello" });
    const call = await eventually(
      "a question",
      async () => (await ask(`/${id}`)).state.toolCall ?? null,
      SLOW,
    );
    await ask(`/${id}/approval`, { decision: "approve", toolCallId: call.id });
    await eventually("rest", async () => (await ask(`/${id}`)).state.kind === "idle", SLOW);
  }
  expect((await ask(`/${id}`)).mode).toBe("unrestricted");
  await ask(`/${id}/messages`, { text: `run: ${command}` });
  return eventually(
    "the end of the command",
    async () => {
      const said = JSON.stringify(await ask(`/${id}/messages`));
      return said.includes("done\\n") && said;
    },
    SLOW,
  );
}

test.skipIf(!mayRead)(
  "no command finds a secret in a process of the product, by any way that another process of the user is open to",
  async () => {
    // Compiled here: the other user may not write among the sources.
    expect(spawnSync(process.execPath, ["local/run.mjs", "--compile"], { cwd: ROOT }).status).toBe(0);
    const home = temporaryFolder();
    give(home);
    const PATH = [folderOf(inject("temporalBinary")), dirname(process.execPath), process.env["PATH"]].join(
      delimiter,
    );
    const product = await startProduct({
      env: {
        ...SECRETS,
        PATH,
        HOME: home,
        XDG_CACHE_HOME: join(home, "cache"),
        NODE_OPTIONS: "--inspect=127.0.0.1:0",
      },
      ...(USER === undefined ? {} : { user: USER }),
    });
    onTestFinished(() => product.stop());
    const open = await control();

    const script = join(home, "attack.pl");
    copyFileSync(join(import.meta.dirname, "attack.pl"), script);
    const backwards = join(home, "secrets");
    const raw = Buffer.from(SECRETS.PAYLOAD_KEY, "base64");
    const lines = [
      ...Object.values(SECRETS).map((each) => Buffer.from(each)),
      ...(raw.includes(10) ? [] : [raw]),
    ];
    writeFileSync(
      backwards,
      Buffer.concat(lines.flatMap((line) => [Buffer.from(line).reverse(), Buffer.from("\n")])),
    );
    for (const file of [script, backwards]) give(file);
    const processes = {
      "npm start": product.pid,
      worker: product.pidOf("worker"),
      API: product.pidOf("api"),
    };
    const targets = [...Object.values(processes), open.pid ?? 0];
    const said = await unrestricted(product, `perl ${script} ${backwards} ${targets.join(" ")}`);

    const found = (pid: number): readonly string[] =>
      [...said.matchAll(new RegExp(`(opened|found) (\\w+) ${pid}\\\\n`, "g"))].map(
        ([, how, what]) => `${how} ${what}`,
      );
    // The ways work: this is what they find in a process that is not closed.
    expect(found(open.pid ?? 0)).toEqual(
      expect.arrayContaining([
        ...["opened environ", "found environ", "opened fd", "opened debugger"],
        ...(mayTrace ? ["opened mem", "found mem", "opened trace", "opened pidfd"] : []),
      ]),
    );
    for (const [name, pid] of Object.entries(processes)) expect(found(pid), name).toEqual([]);
    // This process has them, too, and may be of the same user.
    const others = [...said.matchAll(/found \w+ (\d+)/g)].map(([, pid]) => Number(pid));
    expect(new Set(others.filter((pid) => pid !== process.pid))).toEqual(new Set([open.pid]));
    // The signal has ended none of them.
    expect((await fetch(`${product.url}/readyz`, { headers: HEADERS })).status).toBe(200);
    expect([product.pidOf("worker"), product.pidOf("api")]).toEqual([processes.worker, processes.API]);
  },
  SLOW,
);
