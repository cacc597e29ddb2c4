/** Owns: the faults of a team on several hosts, and how each is caused. */
import { setTimeout as pause } from "node:timers/promises";
import type { Part } from "../test/operations/part.ts";
import type { Team, ToolHost } from "../test/operations/team.ts";
import type { Random } from "./random.ts";
import type { Fault } from "./scene.ts";

export const TEAM_FAULTS = [
  "kill tool host",
  "kill api",
  "kill worker",
  "cut tool host for 1 s",
  "cut tool host for 5 s",
  "cut tool host for 30 s",
  "fail over postgres",
  "kill postgres",
  "kill standby",
  "reload nginx",
] as const;
export type TeamFaultName = (typeof TEAM_FAULTS)[number];

/** Milliseconds until something starts a part again that died. */
const DOWN_MS = [0, 3_000] as const;
/** Milliseconds for which the standby hears nothing before its primary dies. */
const LAG_MS = [50, 500] as const;

/** Milliseconds for which a part is spared after a fault: what waits for it would else wait for ever. */
const SPARED_MS = 5_000;

export class TeamFaults {
  readonly #team: Team;
  /** What one fault has taken away is not another one's target before it is back. */
  readonly #busy = new Set<unknown>();

  constructor(team: Team) {
    this.#team = team;
  }

  draw(name: TeamFaultName, chance: Random): Fault {
    const { apis, hosts, driver, postgres, nginx } = this.#team;
    const downMs = chance.integer(...DOWN_MS);
    const host = hosts[chance.integer(0, 1)] ?? hosts[0];
    switch (name) {
      case "kill tool host":
        return this.#on(host, () => restarted(host.worker, downMs));
      case "kill api": {
        const api = apis[chance.integer(0, 1)] ?? apis[0];
        return this.#on(api, () => restarted(api, downMs));
      }
      case "kill worker":
        return this.#on(driver, () => restarted(driver, downMs));
      case "cut tool host for 1 s":
        return this.#on(host, () => cutOff(host, 1_000));
      case "cut tool host for 5 s":
        return this.#on(host, () => cutOff(host, 5_000));
      case "cut tool host for 30 s":
        return this.#on(host, () => cutOff(host, 30_000));
      case "fail over postgres": {
        const lagMs = chance.integer(...LAG_MS);
        return this.#on(postgres, async () => {
          await postgres.failOver(lagMs);
          await pause(downMs);
          await postgres.buildStandby();
          return true;
        });
      }
      case "kill postgres":
        return this.#on(postgres, async () => {
          await postgres.killPrimary();
          await postgres.restartPrimary();
          return true;
        });
      case "kill standby":
        return this.#on(postgres, async () => {
          await postgres.killStandby();
          await pause(downMs);
          await postgres.buildStandby();
          return true;
        });
      case "reload nginx":
        return this.#on(nginx, () => Promise.resolve(nginx.signal("SIGHUP")));
    }
  }

  #on(target: unknown, strike: () => Promise<boolean>): Fault {
    return {
      isReady: () => !this.#busy.has(target),
      strike: async () => {
        if (this.#busy.has(target)) return false;
        this.#busy.add(target);
        try {
          return await strike();
        } finally {
          setTimeout(() => this.#busy.delete(target), SPARED_MS).unref();
        }
      },
    };
  }
}

/** False where it had ended before: by itself, which the run complains of in the end. */
async function restarted(part: Part, downMs: number): Promise<boolean> {
  if (part.pid === null) return false;
  await part.end("SIGKILL");
  await pause(downMs);
  await part.start();
  return true;
}

async function cutOff(host: ToolHost, ms: number): Promise<boolean> {
  await host.cut();
  await pause(ms);
  await host.mend();
  return true;
}
