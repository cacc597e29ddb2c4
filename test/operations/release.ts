/**
 * Owns: an upgrade in a test: a release whose workflows take another course, the commands of docs/operations.md, and
 * which versions a conversation has run on.
 */
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync, symlinkSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";
import type { Client } from "@temporalio/client";
import { inject } from "vitest";
import { Sources, type Edit } from "../../chaos/sources.ts";
import { startTemporal } from "../../local/temporal/server.ts";
import type * as Bundle from "../../worker/bundle.ts";
import { startSystem } from "../support/system.ts";
import type { WorkerProcess } from "../support/worker-process.ts";

export const ROOT = join(import.meta.dirname, "..", "..");

type Defer = (end: () => Promise<unknown>) => void;

/** The next release calls tools in another order of commands, without `patched`: it cannot replay the other's runs. */
const OTHER_COURSE: Edit = {
  file: "workflows/operations.ts",
  from: "(input) => tools.execute({ ...input, config, operationId, call, mode }, committer),",
  to: `(input) =>
          sleep(1).then(() => tools.execute({ ...input, config, operationId, call, mode }, committer)),`,
};

/** The folder with the sources of the next release. */
export async function makeNextRelease(defer: Defer): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "bedrock-release-"));
  defer(() => rm(folder, { recursive: true, force: true }));
  const sources = new Sources(join(folder, "next"));
  sources.change([OTHER_COURSE]);
  return sources.root;
}

/** The bundle of a release's workflows. */
export async function bundleOf(root: string): Promise<string> {
  const { ensureWorkflowBundle } = (await import(join(root, "worker", "bundle.ts"))) as typeof Bundle;
  return ensureWorkflowBundle(join(root, "node_modules", ".cache", "workflows"));
}

const PAGE = readFileSync(join(ROOT, "docs", "operations.md"), "utf8");
const [, SECTION = ""] = /^## Upgrade without losing a turn\n(.*?)(?=^## |(?![\s\S]))/ms.exec(PAGE) ?? [];

/** The commands of the section, as they stand there; each is a block of its own. */
const COMMANDS: readonly string[] = [...SECTION.matchAll(/^( *)```sh\n(.*?)^ *```$/gms)].map(
  ([, indent = "", block = ""]) => block.replaceAll(new RegExp(`^${indent}`, "gm"), "").trimEnd(),
);

function theCommand(has: string): string {
  const [command, ...more] = COMMANDS.filter((each) => each.includes(has));
  if (command === undefined || more.length > 0)
    throw new Error(`The page has not one command with "${has}".`);
  return command;
}

/** What the page says to do, in the direction that it has. */
export const page = {
  migrate: theCommand("db/main.ts"),
  toolHost: theCommand("WORKER_ROLES=tools"),
  first: theCommand("WORKER_BUILD=1"),
  firstIsCurrent: theCommand("--build-id 1"),
  next: theCommand("WORKER_BUILD=2"),
  nextIsCurrent: theCommand("--build-id 2"),
  move: theCommand("moveToCurrentVersion"),
  giveUp: theCommand("workflow terminate"),
} as const;

const unknown = COMMANDS.filter((command) => !Object.values<string>(page).includes(command));
if (unknown.length > 0) throw new Error(`No test runs this command of the page: ${unknown.join("; ")}`);

/** The command of the way back: the builds are exchanged. */
export const reversed = (command: string): string =>
  command.replace(/(?<=bedrock:|BUILD=|--build-id )[12]/g, (build) => (build === "1" ? "2" : "1"));

export type Operator = {
  /** Runs a command to its end. Returns what it prints. */
  readonly run: (command: string) => Promise<string>;
  /** Starts a part; resolves when it says that it is ready. */
  readonly start: (command: string, root: string, env?: NodeJS.ProcessEnv) => Promise<WorkerProcess>;
};

/** @param env the settings of a part, and where the servers are */
export async function operatorWith(env: NodeJS.ProcessEnv, defer: Defer): Promise<Operator> {
  const home = await mkdtemp(join(tmpdir(), "bedrock-operator-"));
  defer(() => rm(home, { recursive: true, force: true }));
  symlinkSync(inject("temporalBinary"), join(home, "temporal"));
  const PATH = [home, dirname(process.execPath), process.env["PATH"]].join(delimiter);
  const settings = { PATH, HOME: home, ...env };
  return {
    async run(command) {
      const { stdout } = await promisify(execFile)("bash", ["-euo", "pipefail", "-c", command], {
        cwd: ROOT,
        env: settings,
      });
      return stdout;
    },
    async start(command, root, more = {}) {
      const DATA_DIR = await mkdtemp(join(home, "data-"));
      const child = spawn("bash", ["-c", `exec env ${command}`], {
        cwd: root,
        stdio: ["ignore", "pipe", "pipe"],
        env: { ...settings, DATA_DIR, ...more },
      });
      const exited = once(child, "exit").then(() => undefined);
      defer(async () => {
        child.kill("SIGKILL");
        await exited;
      });
      let output = "";
      for (const stream of [child.stdout, child.stderr])
        stream.setEncoding("utf8").on("data", (text: string) => (output += text));
      child.stderr.pipe(process.stderr);
      for await (const line of createInterface(child.stdout)) if (line.includes("worker ready")) break;
      // The interface pauses what it has read, and a full pipe would stop the worker.
      child.stdout.resume();
      const { pid = 0 } = child;
      return { pid, signal: (signal) => void child.kill(signal), exited, output: () => output };
    },
  };
}

/**
 * A system without workers, and its operator. It has a Temporal server of its own, where the names of the page are free.
 *
 * @param env settings of the system beside those of its servers
 */
export async function startSystemToUpgrade(env: NodeJS.ProcessEnv = {}) {
  const temporal = await startTemporal({ binary: inject("temporalBinary") });
  const system = await startSystem({ workers: 0, env: { TEMPORAL_ADDRESS: temporal.address, ...env } });
  const { config, model, defer } = system;
  defer(() => temporal.stop());
  const settings = {
    DATABASE_URL: config.databaseUrl,
    TEMPORAL_ADDRESS: config.temporalAddress,
    TASK_QUEUE: config.taskQueue,
    ANTHROPIC_API_KEY: "test-key",
    ANTHROPIC_BASE_URL: model.url,
  };
  return { system, operator: await operatorWith(settings, defer) };
}

/** The builds that have run the conversation, in their order, each run once. */
export async function buildsOf(client: Client, id: string): Promise<readonly string[]> {
  const { raw } = await client.workflow.getHandle(id).describe();
  const builds: string[] = [];
  let runId = raw.workflowExecutionInfo?.firstRunId;
  while (runId) {
    const { events } = await client.workflow.getHandle(id, runId).fetchHistory();
    const tasks = (events ?? []).flatMap((event) => event.workflowTaskCompletedEventAttributes ?? []);
    const ofRun = new Set(tasks.map(({ deploymentVersion }) => deploymentVersion?.buildId ?? "none"));
    builds.push([...ofRun].join(" and "));
    runId = events?.at(-1)?.workflowExecutionContinuedAsNewEventAttributes?.newExecutionRunId;
  }
  return builds;
}
