/** Owns: a run of a team on several hosts (docs/operations.md), as `npm run chaos -- --team` makes it. */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { Client, Connection } from "@temporalio/client";
import { dataConverterOf } from "../protocol/payload-encryption.ts";
import { startTeam, type Team } from "../test/operations/team.ts";
import { Journal } from "./journal.ts";
import type { Size } from "./plan.ts";
import { liveThrough, type Verdict } from "./run.ts";
import type { Scene } from "./scene.ts";
import { onSite, type Ends } from "./site.ts";
import { Sources, type Edit } from "./sources.ts";
import { placesIn, scriptFor } from "./stage.ts";
import { TEAM_FAULTS, TeamFaults, type TeamFaultName } from "./team-faults.ts";

/** The long cut is rare, because it makes the run long. */
const LONG: TeamFaultName = "cut tool host for 30 s";

export const TEAM: Size<TeamFaultName> = {
  ...{ conversations: 16, turns: 130 },
  ...{ faults: TEAM_FAULTS.filter((name) => name !== LONG), hits: 2, needed: 2 },
  ...{ rare: [LONG], rareHits: 1, carriedOver: 0, stopQueues: 2 },
};
/** A host that is cut off for half a minute may die when it is back. */
const STUCK_AFTER_MS = 120_000;

/** Each fault once. */
export const TEAM_SHORT: Size<TeamFaultName> = {
  ...{ conversations: 10, turns: 60, faults: TEAM_FAULTS, hits: 1, needed: 1 },
  ...{ rare: [], rareHits: 0, carriedOver: 0, stopQueues: 1 },
};
/** A small run, which shows a defect. */
export const TEAM_PROOF: Size<TeamFaultName> = {
  ...{ conversations: 12, turns: 48, faults: ["fail over postgres"], hits: 4, needed: 1 },
  ...{ rare: [], rareHits: 0, carriedOver: 0, stopQueues: 1 },
};

export type TeamRunOptions = {
  readonly seed: number;
  readonly size: Size<TeamFaultName>;
  readonly say: (line: string) => void;
  /** Changes to the product: a defect. */
  readonly edits?: readonly Edit[];
  /** false: a defect of the set-up: the standby may be behind what was answered. */
  readonly synchronous?: boolean;
};

/** @throws the reason of `interrupted`, when everything that was started has ended. */
export async function runTeam(options: TeamRunOptions, interrupted: AbortSignal): Promise<Verdict> {
  const { result, leftovers } = await onSite((folder, ends) => perform(options, folder, ends), interrupted);
  return { ...result, complaints: [...result.complaints, ...leftovers] };
}

async function perform(
  { seed, size, say, edits = [], synchronous = true }: TeamRunOptions,
  folder: string,
  ends: Ends,
): Promise<Verdict> {
  const places = await placesIn(folder);
  const sources = new Sources(join(folder, "sources"));
  sources.change(edits);
  const logs = join(folder, "logs");
  mkdirSync(logs);
  const log = join(logs, "team.log");
  const team = await startTeam({ dir: folder, root: sources.root, log, token: null, synchronous });
  ends.push(team.stop);
  const ended = new AbortController();
  ends.push(() => {
    ended.abort();
    return Promise.resolve();
  });
  const connection = await Connection.connect({ address: team.temporalAddress });
  ends.push(() => connection.close());
  const remarks = scriptFor(team.model, places);
  const scene: Scene = {
    product: {
      ...{ url: team.url, databaseUrl: team.databaseUrl, model: team.model, cwd: places.cwd },
      temporal: new Client({ connection, dataConverter: dataConverterOf([team.payloadKey]) }),
      toolHosts: [team.hosts[0].name, team.hosts[1].name],
      ended: ended.signal,
    },
    // Nothing starts a whole team anew.
    restarts: {
      ...{ complaints: [], count: 0, hasForgotten: false },
      next: () => new Promise(() => undefined),
      settled: () => Promise.resolve(),
    },
    journal: new Journal(),
    cwd: places.cwd,
    stuckAfterMs: STUCK_AFTER_MS,
    others: [],
    replaceWorkers: async () => {
      await team.driver.end("SIGKILL");
      await team.driver.start();
    },
  };
  const faults = new TeamFaults(team);
  const verdict = await liveThrough({
    ...{ seed, size, scene, places, say, remarks },
    faults: { names: TEAM_FAULTS, draw: (name, chance) => faults.draw(name, chance) },
    deploy: () => Promise.resolve(),
    gaveUp: new Promise(() => undefined),
    logs: [logs],
  });
  return { ...verdict, complaints: [...verdict.complaints, ...deathsOf(team)] };
}

/** Each part that a fault has ended was started again: one that is away has ended by itself. */
const deathsOf = ({ apis, hosts, driver, nginx }: Team): readonly string[] =>
  [...apis, ...hosts.map(({ worker }) => worker), driver, nginx].flatMap(({ name, pid }) =>
    pid === null ? [`${name} has ended by itself`] : [],
  );
