/**
 * Measures: the cost of the supervisor and the sandbox for a command, beside a bare spawn; the death of a large tree.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { runCommand, type CommandResult } from "../sandbox/command.ts";
import type { Confinement } from "../sandbox/confinement.ts";
import { commandEnvironment } from "../sandbox/environment.ts";
import { confine } from "../sandbox/host.ts";

export type Spawns = {
  readonly bare: readonly number[];
  readonly unrestricted: readonly number[];
  readonly restricted: readonly number[];
};

/** Milliseconds of `bash -c true`, the three ways in turn; null where there is no sandbox. */
export async function spawns(count: number): Promise<Spawns | null> {
  const samples = { bare: [] as number[], unrestricted: [] as number[], restricted: [] as number[] };
  for (let n = -5; n < count; n++) {
    const bare = await timed(async () => {
      await once(spawn("bash", ["-c", "true"], { stdio: ["ignore", "pipe", "pipe"] }), "close");
    });
    const unrestricted = await timed(() => run("true", null));
    const restricted = await timed(async () => {
      const confinement = await confine();
      if (typeof confinement !== "string") await run("true", confinement);
    });
    if (typeof (await confine()) === "string") return null;
    if (n < 0) continue;
    samples.bare.push(bare);
    samples.unrestricted.push(unrestricted);
    samples.restricted.push(restricted);
  }
  return samples;
}

/** Milliseconds from the abort of a Restricted command with 250 processes to its result, after the last death. */
export async function deathsOfLargeTrees(count: number): Promise<number[]> {
  const samples: number[] = [];
  const tree = "for n in $(seq 248); do sleep 300 & done; echo up; wait";
  for (let n = 0; n < count; n++) {
    const confinement = await confine();
    if (typeof confinement === "string") return [];
    const controller = new AbortController();
    let told = 0;
    await run(tree, confinement, controller.signal, (text) => {
      if (!text.includes("up") || told > 0) return;
      told = performance.now();
      controller.abort();
    });
    samples.push(performance.now() - told);
  }
  return samples;
}

/** Commands that users let an agent run in a repository. */
const ORDINARY = [
  "git status",
  "git log -100 --stat",
  "rg -c sandbox .",
  "node -e 'console.log(1)'",
  "python3 -c 'print(1)'",
  "npm ls --depth=0",
  "ps -e",
  "seq 40 | xargs -P4 -n1 echo",
] as const;

export type Work = {
  readonly command: string;
  readonly unrestricted: readonly number[];
  readonly restricted: readonly number[];
  /** Restricted runs with an exit code other than 0. */
  readonly failed: number;
};

/** Milliseconds of ordinary commands in this repository, Unrestricted and Restricted in turn. */
export async function ordinaryWork(count: number): Promise<Work[]> {
  const work: Work[] = [];
  for (const command of ORDINARY) {
    const [unrestricted, restricted]: [number[], number[]] = [[], []];
    let failed = 0;
    for (let n = 0; n < count; n++) {
      const confinement = await confine();
      if (typeof confinement === "string") return [];
      unrestricted.push(await timed(() => run(command, null)));
      restricted.push(
        await timed(async () => {
          if ((await run(command, confinement)).exitCode !== 0) failed++;
        }),
      );
    }
    work.push({ command, unrestricted, restricted, failed });
  }
  return work;
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const started = performance.now();
  await work();
  return performance.now() - started;
}

function run(
  script: string,
  confinement: Confinement | null,
  signal: AbortSignal = new AbortController().signal,
  onOutput: (text: string) => void = () => undefined,
): Promise<CommandResult> {
  return runCommand({
    argv: ["bash", "-c", script],
    cwd: join(import.meta.dirname, ".."),
    env: commandEnvironment(),
    confinement,
    signal,
    timeoutMs: 60_000,
    limitBytes: 10_000,
    onOutput: (_stream, text) => onOutput(text),
  });
}
