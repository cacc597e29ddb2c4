/** Owns: what goes wrong in a run, and how it is made to. */
import { readdirSync, readFileSync } from "node:fs";
import { connect } from "node:net";
import { setTimeout as pause } from "node:timers/promises";
import type { Product, ProcessName } from "../test/support/product.ts";
import type { TcpProxy } from "../test/support/tcp-proxy.ts";
import type { Random } from "./random.ts";

export const FAULTS = [
  "kill worker",
  "kill api",
  "kill temporal",
  "kill postgres",
  "freeze worker",
  "freeze api",
  "freeze temporal",
  "freeze postgres",
  "drop provider connections",
  "stall provider streams",
  "fill a client's socket",
] as const;
export type FaultName = (typeof FAULTS)[number];

export type World = {
  readonly product: Product;
  /** Between the product and the provider. */
  readonly provider: TcpProxy;
  /** Ids of the conversations there are now. */
  readonly conversations: () => readonly string[];
};

/** Longer than a heartbeat may stay away, or shorter: both happen. */
const FROZEN_MS = [300, 4_000] as const;

/** Resolves when the fault is over; what comes of it may still be going on. */
export async function inject(name: FaultName, world: World, chance: Random): Promise<void> {
  const { product, provider } = world;
  switch (name) {
    case "kill worker":
    case "kill api":
    case "kill temporal":
    case "kill postgres":
      return kill(product, processOf(name));
    case "freeze worker":
    case "freeze api":
    case "freeze temporal":
    case "freeze postgres":
      return freeze(product, processOf(name), chance.integer(...FROZEN_MS));
    case "drop provider connections":
      provider.drop();
      return;
    case "stall provider streams":
      await provider.hang();
      await pause(chance.integer(...FROZEN_MS));
      return provider.mend();
    case "fill a client's socket":
      return fill(world, chance);
  }
}

const processOf = (name: FaultName): ProcessName => {
  const found = /(worker|api|temporal|postgres)$/.exec(name)?.[1];
  if (found === undefined) throw new Error(name);
  return found as ProcessName;
};

/** Returns when another has taken its place. */
export async function kill(product: Product, name: ProcessName): Promise<void> {
  const pid = await presentPid(product, name);
  signal(pid, "SIGKILL");
  while ((await presentPid(product, name)) === pid) await pause(20);
}

/** Postgres with all its backends. */
async function freeze(product: Product, name: ProcessName, ms: number): Promise<void> {
  const pid = await presentPid(product, name);
  // Each backend has a session of its own.
  const whom = name === "postgres" ? [pid, ...childrenOf(pid)] : [pid];
  for (const each of whom) signal(each, "SIGSTOP");
  try {
    await pause(ms);
  } finally {
    for (const each of whom) signal(each, "SIGCONT");
  }
}

function childrenOf(parent: number): number[] {
  const pids = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
  return pids.map(Number).filter((pid) => {
    try {
      return /\) . (\d+) /.exec(readFileSync(`/proc/${pid}/stat`, "utf8"))?.[1] === String(parent);
    } catch {
      return false;
    }
  });
}

/** A client that asks for everything and reads nothing, until its socket is full; then it is gone. */
async function fill({ product, conversations }: World, chance: Random): Promise<void> {
  const ids = conversations();
  const { hostname, port } = new URL(product.url);
  const sockets = [0, 1, 2].map(() => {
    const id = ids[chance.integer(0, ids.length - 1)] ?? "";
    const socket = connect({ host: hostname, port: Number(port) });
    socket.on("error", () => undefined).pause();
    socket.write(`GET /api/conversations/${id}/events?after=0 HTTP/1.1\r\nhost: ${hostname}:${port}\r\n\r\n`);
    return socket;
  });
  await pause(1_000);
  for (const socket of sockets) socket.destroy();
}

/** Its file may be missing for the moment in which it is started again. */
async function presentPid(product: Product, name: ProcessName): Promise<number> {
  for (;;) {
    try {
      const pid = product.pidOf(name);
      process.kill(pid, 0);
      return pid;
    } catch {
      await pause(20);
    }
  }
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch {
    // It died first.
  }
}
