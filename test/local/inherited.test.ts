/**
 * The shell hands `npm start` secrets in the environment and open files. A command with the person's rights can read
 * both of any of their processes, so no process of the product may have them.
 */
import { randomUUID } from "node:crypto";
import { mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { freshDatabase } from "../support/database.ts";
import { familyOf } from "../support/processes.ts";
import { startProduct, type Product } from "../support/product.ts";
import { eventually } from "./support.ts";

const SLOW = 240_000;
const CANARY = `canary-${randomUUID()}`;
const SECRETS = { key: `${CANARY}-key`, token: `${CANARY}-token`, password: `${CANARY}-password` };
const HEADERS = { "content-type": "application/json", authorization: `Bearer ${SECRETS.token}` };
/** Parts of the command lines of the processes that must be found. */
const PROCESSES = ["local/main.ts", "worker.ts", "api/main.ts", "server start-dev", "bedrock-launcher"];
/** One command in each mode; their seconds tell them apart. */
const COMMANDS = { restricted: "sleep 86401", unrestricted: "sleep 86402" };

const folder = mkdtempSync(join(tmpdir(), "bedrock-inherited-"));
const openFile = join(folder, "open");
let product: Product;

beforeAll(async () => {
  writeFileSync(openFile, "what another program keeps open");
  const databaseUrl = new URL(await freshDatabase());
  // The server checks no password.
  databaseUrl.password = SECRETS.password;
  product = await startProduct({
    env: {
      ANTHROPIC_API_KEY: SECRETS.key,
      API_TOKEN: SECRETS.token,
      DATABASE_URL: databaseUrl.href,
      TEMPORAL_UI: "true",
    },
    // Node sets close-on-exec on the first sixteen descriptors, and on later ones up to the first gap.
    inherits: new Map([3, 7, 15, 16, 40].map((fd) => [fd, openFile])),
  });
  for (const [mode, command] of Object.entries(COMMANDS)) {
    const id = await conversation(mode);
    await post(`/${id}/messages`, { text: `run: ${command}` });
    await eventually(command, () => processes().some(({ line }) => line.includes(command)), SLOW);
  }
}, SLOW);

afterAll(async () => {
  await product.stop();
  rmSync(folder, { recursive: true });
}, SLOW);

/** All processes of the product and of its commands. */
function processes(): readonly { readonly pid: number; readonly line: string }[] {
  return familyOf(product.pid).map((pid) => ({ pid, line: contentsOf(`/proc/${pid}/cmdline`) }));
}

/** Empty for a file that is gone or cannot be read. */
function contentsOf(file: string): string {
  try {
    return readFileSync(file, "latin1").replaceAll("\0", " ");
  } catch {
    return "";
  }
}

/** None where the process has closed them to this user. */
function descriptorsOf(pid: number): readonly string[] {
  try {
    return readdirSync(`/proc/${pid}/fd`);
  } catch {
    return [];
  }
}

async function post(path: string, body: object): Promise<void> {
  const url = `${product.url}/api/conversations${path}`;
  const response = await fetch(url, { method: "POST", headers: HEADERS, body: JSON.stringify(body) });
  expect(response.status, await response.text()).toBeLessThan(300);
}

type Shown = { readonly mode: string; readonly state: { kind: string; toolCall?: { id: string } } };

async function show(id: string): Promise<Shown> {
  const response = await fetch(`${product.url}/api/conversations/${id}`, { headers: HEADERS });
  return (await response.json()) as Shown;
}

/** Creates a conversation in this mode, with the person's approval if needed; resolves with its id. */
async function conversation(mode: string): Promise<string> {
  const id = randomUUID();
  await post("", { id, cwd: product.cwd });
  if (mode === "restricted" || (await show(id)).mode === mode) return id;
  await post(`/${id}/messages`, { text: "write: note.txt hello" });
  const asked = await eventually("a question", async () => (await show(id)).state.toolCall ?? null, SLOW);
  await post(`/${id}/approval`, { decision: "approve", toolCallId: asked.id });
  await eventually(mode, async () => (await show(id)).state.kind === "idle", SLOW);
  expect((await show(id)).mode).toBe(mode);
  return id;
}

test("every process is inspected, and the secrets have arrived where they are needed", async () => {
  const lines = processes().map(({ line }) => line);
  for (const part of [...PROCESSES, ...Object.values(COMMANDS)]) {
    expect(
      lines.some((line) => line.includes(part)),
      part,
    ).toBe(true);
  }
  expect((await fetch(`${product.url}/api/conversations`)).status).toBe(401);
  expect((await fetch(product.temporalUiUrl ?? "")).status).toBe(401);
  expect(JSON.stringify(product.model.requests.at(-1)?.headers)).toContain(SECRETS.key);
});

test("no secret stands in the environment or the command line of any process", () => {
  for (const { pid, line } of processes()) {
    expect(line).not.toContain(CANARY);
    expect(contentsOf(`/proc/${pid}/environ`), line).not.toContain(CANARY);
  }
});

test("no secret is written to the data folder", () => {
  const files = readdirSync(product.dataDir, { recursive: true, encoding: "utf8" });
  expect(files).toEqual(expect.arrayContaining(["logs/worker.log", "temporal/temporal.db"]));
  for (const file of files) expect(contentsOf(join(product.dataDir, file)), file).not.toContain(CANARY);
});

test("no process has a file open that the shell left open", () => {
  for (const { pid, line } of processes()) {
    const open = descriptorsOf(pid).map((fd) => {
      try {
        return readlinkSync(`/proc/${pid}/fd/${fd}`);
      } catch {
        return "closed meanwhile";
      }
    });
    expect(open, line).not.toContain(openFile);
  }
});
