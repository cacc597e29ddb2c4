/** Owns: the faults of a run, and how each is caused. */
import { setTimeout as pause } from "node:timers/promises";
import { PROCESSES, type Product } from "../test/support/product.ts";
import type { TcpProxy } from "../test/support/tcp-proxy.ts";
import type { DeafClients } from "./deaf-clients.ts";
import { exhaust } from "./connections.ts";
import { freeze, isPresent, kill, killOnly, launcherOf, type Target } from "./processes.ts";
import type { Random } from "./random.ts";
import type { Restarts } from "./restarts.ts";
import type { Fault, Scene } from "./scene.ts";
import type { SmallDisk } from "./small-disk.ts";
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
  "kill command launcher",
  "exhaust postgres",
  "fill disk",
  "kill npm start",
  "power cut, temporal older",
  "power cut, temporal lost",
] as const;
export type FaultName = (typeof FAULTS)[number];

/** A run of `npm start`. */
export type World = Scene & {
  readonly product: Product;
  readonly workers: Workers;
  /** Between the product and the provider. */
  readonly provider: TcpProxy;
  readonly deaf: DeafClients;
  readonly restarts: Restarts;
  /** The disk with the data folder; null: the folder has no file system of its own. */
  readonly disk: SmallDisk | null;
};

/** Milliseconds; some are longer than the heartbeat time-out, some shorter. */
const FROZEN_MS = [300, 3_500] as const;
/** Milliseconds without connections, or without room on the disk. */
const SHORT_OF_MS = [300, 3_000] as const;
const COPY_AGE_MS = [100, 3_000] as const;
const DOWN_MS = [0, 2_000] as const;

export function drawFault(name: FaultName, world: World, chance: Random): Fault {
  const { product, provider, deaf, restarts, disk } = world;
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
    case "kill command launcher":
      return onEach(targetsOf("kill worker", world, chance).map(launcherOf), (target) =>
        Promise.resolve(killOnly(target)),
      );
    case "exhaust postgres": {
      const ms = chance.integer(...SHORT_OF_MS);
      const isReady = (): boolean => isPresent(() => product.pidOf("postgres"));
      return { isReady, strike: () => exhaust(product.databaseUrl, ms) };
    }
    case "fill disk": {
      const ms = chance.integer(...SHORT_OF_MS);
      return anytime(() => restarts.alone(() => disk?.fill(ms) ?? Promise.resolve(false)));
    }
    case "kill npm start": {
      const downMs = chance.integer(...DOWN_MS);
      return {
        isReady: () => isPresent(() => product.pid),
        strike: () => restarts.killLauncher(name, downMs),
      };
    }
    case "power cut, temporal older":
    case "power cut, temporal lost": {
      const delays = { copyAgeMs: chance.integer(...COPY_AGE_MS), downMs: chance.integer(...DOWN_MS) };
      const isReady = (): boolean => isPresent(() => product.pidOf("temporal"));
      const database = name.endsWith("older") ? "older" : "lost";
      return { isReady, strike: () => restarts.powerCut(name, database, delays) };
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

/** One target or all of them, as chance decides. */
function targetsOf(name: FaultName, { product, workers }: World, chance: Random): readonly Target[] {
  const process = PROCESSES.find((each) => name.endsWith(` ${each}`));
  if (process === undefined) throw new Error(`"${name}" is of no process.`);
  if (process !== "worker") return [() => product.pidOf(process)];
  const which = chance.integer(0, 3);
  return workers.targets.filter((_target, n) => which >= 2 || which === n);
}
