/** Measures: `bedrock` as a person types it, from the start of its process to the first byte that it writes. */
import { spawn } from "node:child_process";
import { join } from "node:path";
import { say } from "../local/scripted/script.ts";
import type { Product } from "../test/support/product.ts";

const ROOT = join(import.meta.dirname, "..");
const PROGRAM = join(ROOT, "cli", "bedrock.mjs");

const COMMANDS = ["--help", "list", "run"] as const;
type Command = (typeof COMMANDS)[number];

/** Milliseconds, by command. */
export type FirstBytes = Readonly<Record<Command, readonly number[]>> & {
  /** `node -e 0`, to its end: the least that a program of Node can take here. */
  readonly node: readonly number[];
};

/** The commands in turn, so that a slow moment of the machine is in the figures of all of them. */
export async function firstBytes(product: Product, cwd: string, count: number): Promise<FirstBytes> {
  const samples = {
    "--help": [] as number[],
    list: [] as number[],
    run: [] as number[],
    node: [] as number[],
  };
  const tag = product.model.script("first-byte", [say("Done.")]);
  const args = { "--help": ["--help"], list: ["list"], run: ["run", "--cwd", cwd, "Go.", tag] };
  // The first ones compile the program and fill the caches of files.
  for (let n = -3; n < count; n++) {
    for (const command of COMMANDS) {
      const { firstByte } = await timesOf([PROGRAM, ...args[command]], product.url);
      if (firstByte === null) throw new Error(`bedrock ${command} wrote nothing.`);
      if (n >= 0) samples[command].push(firstByte);
    }
    const { end } = await timesOf(["-e", "0"], product.url);
    if (n >= 0) samples.node.push(end);
  }
  return samples;
}

type Times = { readonly firstByte: number | null; readonly end: number };

function timesOf(args: readonly string[], url: string): Promise<Times> {
  const env = { ...process.env, BEDROCK_URL: url };
  return new Promise((resolve, reject) => {
    const startedAt = performance.now();
    const child = spawn(process.execPath, args, { cwd: ROOT, env, stdio: ["ignore", "pipe", "pipe"] });
    let firstByte: number | null = null;
    for (const stream of [child.stdout, child.stderr])
      stream.on("data", () => (firstByte ??= performance.now() - startedAt));
    child.once("error", reject);
    child.once("close", () => resolve({ firstByte, end: performance.now() - startedAt }));
  });
}
