/** Owns: what goes wrong in a run, and how it is made to. */
import { setTimeout as pause } from "node:timers/promises";
import { PROCESSES, type Product } from "../test/support/product.ts";
import type { TcpProxy } from "../test/support/tcp-proxy.ts";
import type { DeafClients } from "./deaf-clients.ts";
import { freeze, isPresent, kill, type Target } from "./processes.ts";
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
  readonly deaf: DeafClients;
  /** In which all commands run. */
  readonly cwd: string;
};

/** One that was drawn, and waits for its moment. */
export type Fault = {
  /** What it is to hit is there. */
  readonly isReady: () => boolean;
  /** Hits at once; resolves when it is over, with whether it took hold. What comes of it may still be going on. */
  readonly strike: () => Promise<boolean>;
};

/** Longer than a heartbeat may stay away, or shorter: both happen. */
const FROZEN_MS = [300, 3_500] as const;

export function drawFault(name: FaultName, world: World, chance: Random): Fault {
  const { product, provider, deaf } = world;
  const anytime = (strike: Fault["strike"]): Fault => ({ isReady: () => true, strike });
  switch (name) {
    case "kill worker":
    case "kill api":
    case "kill temporal":
    case "kill postgres":
      return onEach(targetsOf(name, world, chance), (target) => kill(target, "SIGKILL"));
    case "freeze worker":
    case "freeze api":
    case "freeze temporal":
    case "freeze postgres": {
      const ms = chance.integer(...FROZEN_MS);
      return onEach(targetsOf(name, world, chance), (target) => freeze(target, ms));
    }
    case "drop provider connections":
      return anytime(() => {
        provider.drop();
        return Promise.resolve(true);
      });
    case "stall provider streams": {
      const ms = chance.integer(...FROZEN_MS);
      return anytime(async () => {
        await provider.hang();
        await pause(ms);
        await provider.mend();
        return true;
      });
    }
    case "fill a client's socket":
      return { isReady: () => isPresent(() => product.pidOf("api")), strike: () => deaf.add() };
  }
}

function onEach(targets: readonly Target[], hit: (target: Target) => Promise<boolean>): Fault {
  return {
    isReady: () => targets.every(isPresent),
    strike: async () => (await Promise.all(targets.map(hit))).every(Boolean),
  };
}

/** One of them, or all: which, chance says. */
function targetsOf(name: FaultName, { product, workers }: World, chance: Random): readonly Target[] {
  const process = PROCESSES.find((each) => name.endsWith(` ${each}`));
  if (process === undefined) throw new Error(`"${name}" is of no process.`);
  if (process !== "worker") return [() => product.pidOf(process)];
  const which = chance.integer(0, 3);
  return workers.targets.filter((_target, n) => which >= 2 || which === n);
}
