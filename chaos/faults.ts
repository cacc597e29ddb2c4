/** Owns: what goes wrong in a run, and how it is made to. */
import { connect } from "node:net";
import { setTimeout as pause } from "node:timers/promises";
import { PROCESSES, type Product } from "../test/support/product.ts";
import type { TcpProxy } from "../test/support/tcp-proxy.ts";
import { freeze, kill, type Target } from "./processes.ts";
import type { Random } from "./random.ts";
import type { Workers } from "./workers.ts";

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
  readonly workers: Workers;
  /** Between the product and the provider. */
  readonly provider: TcpProxy;
  /** Ids of the conversations there are now. */
  readonly conversations: () => readonly string[];
};

/** Longer than a heartbeat may stay away, or shorter: both happen. */
const FROZEN_MS = [300, 3_500] as const;

/** Resolves when the fault is over; what comes of it may still be going on. */
export async function inject(name: FaultName, world: World, chance: Random): Promise<void> {
  const { provider } = world;
  switch (name) {
    case "kill worker":
    case "kill api":
    case "kill temporal":
    case "kill postgres":
      await Promise.all(targetsOf(name, world, chance).map((target) => kill(target, "SIGKILL")));
      return;
    case "freeze worker":
    case "freeze api":
    case "freeze temporal":
    case "freeze postgres":
      await Promise.all(
        targetsOf(name, world, chance).map((target) => freeze(target, chance.integer(...FROZEN_MS))),
      );
      return;
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

/** One of them, or all: which, chance says. */
function targetsOf(name: FaultName, { product, workers }: World, chance: Random): readonly Target[] {
  const process = PROCESSES.find((each) => name.endsWith(` ${each}`));
  if (process === undefined) throw new Error(`"${name}" is of no process.`);
  if (process !== "worker") return [() => product.pidOf(process)];
  const which = chance.integer(0, 3);
  return workers.targets.filter((_target, n) => which >= 2 || which === n);
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
