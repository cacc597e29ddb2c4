/** Postgres with a standby (docs/operations.md): the primary dies under load, and the standby is promoted. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { Client, Connection } from "@temporalio/client";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { checkAccepted, checkEvents, checkHeard, checkLedger } from "../../chaos/checks.ts";
import { directiveText, doneWith, SCRIPT } from "../../chaos/model.ts";
import { placesIn, scriptFor } from "../../chaos/stage.ts";
import { openClient, openDatabase, type Database } from "../../db/connect.ts";
import { dataConverterOf } from "../../protocol/payload-encryption.ts";
import type { Served } from "../support/product.ts";
import { Talk } from "../support/talk.ts";
import { until } from "../support/waiting.ts";
import { isTeamPossible, startTeam, type Team } from "./team.ts";

/** A Temporal server for production is built once. */
const START_LIMIT_MS = 20 * 60_000;

const KINDS = [
  { what: "Postgres fails over", oneDatabase: false },
  { what: "Postgres fails over with Temporal's databases", oneDatabase: true },
];

describe.skipIf(!isTeamPossible).each(KINDS)("$what", ({ oneDatabase }) => {
  const ends: (() => unknown)[] = [];
  let team: Team;
  let served: Served;
  let places: Awaited<ReturnType<typeof placesIn>>;
  let db: Database;
  let remarks: readonly string[];
  beforeAll(async () => {
    const dir = await mkdtemp(join(tmpdir(), "bedrock-failover-"));
    ends.push(() => rm(dir, { recursive: true, force: true }));
    places = await placesIn(dir);
    team = await startTeam({ dir, token: null, oneDatabase });
    ends.push(team.stop);
    remarks = scriptFor(team.model, places);
    const connection = await Connection.connect({ address: team.temporalAddress });
    ends.push(() => connection.close());
    const ended = new AbortController();
    ends.push(() => ended.abort());
    served = {
      ...{ url: team.url, databaseUrl: team.databaseUrl, model: team.model, cwd: team.cwd },
      temporal: new Client({ connection, dataConverter: dataConverterOf([team.payloadKey]) }),
      toolHosts: [team.hosts[0].name, team.hosts[1].name],
      ended: ended.signal,
    };
    db = openDatabase(team.databaseUrl);
    ends.push(() => db.close());
  }, START_LIMIT_MS);
  afterAll(async () => {
    for (const end of ends.reverse()) await end();
  }, 60_000);

  /** Sends follow-ups one after the other, until told to stop. Returns those that were answered 202, and when. */
  async function sendUntil(talk: Talk, over: AbortSignal) {
    const accepted: { readonly id: string; readonly delivery: "followUp"; readonly at: number }[] = [];
    for (let n = 0; !over.aborted; n++) {
      const id = crypto.randomUUID();
      const turn = directiveText({ kind: "text", id: `${talk.id}n${n}`, place: 0, words: 1 });
      const { status } = await talk.send(`[[script:${SCRIPT}]] ${turn}`, "followUp", { id });
      // A queue has room for so many.
      expect([202, 429]).toContain(status);
      if (status === 202) accepted.push({ id, delivery: "followUp", at: performance.now() });
      await pause(100);
    }
    return accepted;
  }

  test("in the middle of commits: what was answered is there, all goes on, no tool runs twice, streams miss nothing", async () => {
    const isCommitting = async (): Promise<boolean> => {
      const rows = await db.sql`select from pg_stat_activity
        where query like 'select commit_revisions%' and state = 'active' limit 1`;
      return rows.length > 0;
    };
    const round = [50, 50];
    const work = Array.from({ length: 20 }, () => round);
    const hosts = [...served.toolHosts, ...served.toolHosts];
    const talks = await Promise.all(hosts.map((host) => Talk.open(served, places.cwd, "unrestricted", host)));
    const firsts = await Promise.all(
      talks.map(async (talk) => {
        const id = crypto.randomUUID();
        const turn = directiveText({ kind: "tools", id: talk.id, place: 0, rounds: work });
        expect((await talk.send(`[[script:${SCRIPT}]] ${turn}`, "direct", { id })).status).toBe(202);
        return { id, delivery: "direct" as const };
      }),
    );
    const over = new AbortController();
    const sending = Promise.all(talks.map((talk) => sendUntil(talk, over.signal)));
    await until(
      async () => (await db.sql`select from messages where message_type = 'tool' limit 1`).length > 0,
    );
    const before = team.postgres.primary.port;
    await until(isCommitting);
    await team.postgres.failOver(300);
    const promotedAt = performance.now();
    expect(team.postgres.primary.port).not.toBe(before);
    const left = (): Promise<number> =>
      db.sql<{ n: number }[]>`select count(*) as n from messages where message_type = 'tool'`.then(
        ([row]) => row?.n ?? 0,
        () => 0,
      );
    const ran = await until(async () => (await left()) || null);
    await until(async () => (await left()) > ran + 8 || null);
    await team.postgres.buildStandby();
    over.abort();
    const sent = await sending;
    const backAfterMs = Math.min(
      ...sent.flatMap((each) => each.flatMap(({ at }) => (at > promotedAt ? [at - promotedAt] : []))),
    );
    console.log(`a message was answered ${Math.round(backAfterMs)} ms after the promotion`);
    expect(backAfterMs).toBeLessThan(5_000);
    for (const [n, talk] of talks.entries()) {
      const accepted = [...firsts.slice(n, n + 1), ...(sent[n] ?? [])];
      await until(async () => {
        const { state, queue } = (await talk.read()) as unknown as {
          state: { kind: string };
          queue: readonly unknown[];
        };
        return state.kind === "idle" && queue.length === 0;
      });
      expect(JSON.stringify(await talk.messages())).toContain(doneWith(talk.id));
      expect(await checkAccepted({ talk, accepted })).toEqual([]);
      expect(await checkHeard(db, { talk, accepted })).toEqual([]);
      expect(talk.live.complaints).toEqual([]);
    }
    expect(await checkEvents(db)).toEqual([]);
    expect(await checkLedger(db, places.ledger)).toEqual([]);
    expect(remarks).toEqual([]);
    for (const talk of talks) talk.close();
  }, 180_000);

  test("while the standby is away nothing is told to be stored, and nothing is lost", async () => {
    const talk = await Talk.open(served, places.cwd);
    await team.postgres.killStandby();
    const id = crypto.randomUUID();
    const turn = directiveText({ kind: "text", id: talk.id, place: 0, words: 1 });
    const response = await fetch(`${team.url}/api/conversations/${talk.id}/messages`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ id, delivery: "direct", text: `[[script:${SCRIPT}]] ${turn}` }),
    });
    const body = (await response.json()) as { readonly pending?: boolean };
    expect(response.status === 503 || body.pending === true).toBe(true);
    await team.postgres.buildStandby();
    await talk.send(`[[script:${SCRIPT}]] ${turn}`, "direct", { id });
    await until(async () => JSON.stringify(await talk.messages()).includes(doneWith(talk.id)));
    expect(await checkAccepted({ talk, accepted: [{ id, delivery: "direct" }] })).toEqual([]);
    talk.close();
  }, 60_000);

  test("the old primary is started by mistake: it answers no write, for nobody confirms it", async () => {
    const old = team.postgres.primary.port;
    await team.postgres.failOver(0);
    const mistake = await team.postgres.startOldPrimary();
    const sql = openClient(`postgres://app@127.0.0.1:${old}/bedrock`, "mistaken");
    try {
      expect(await sql`select pg_is_in_recovery() as is`).toEqual([{ is: false }]);
      const written = sql`create table written ()`.then(
        () => "answered",
        () => "refused",
      );
      await until(
        async () =>
          (await observed(old, "select from pg_stat_activity where wait_event = 'SyncRep'")).length > 0 ||
          null,
      );
      await mistake.stop();
      expect(await written).toBe("refused");
    } finally {
      await sql.end({ timeout: 1 });
      await mistake.stop();
    }
    await team.postgres.buildStandby();
    const talk = await Talk.open(served, places.cwd);
    await talk.send(`[[script:${SCRIPT}]] ${directiveText({ kind: "text", id: "x", place: 0, words: 1 })}`);
    await talk.untilState("idle");
    talk.close();
  }, 60_000);
});

/** Asks over a connection of its own. */
async function observed(port: number, query: string): Promise<readonly unknown[]> {
  const sql = openClient(`postgres://app@127.0.0.1:${port}/bedrock`, "observer");
  try {
    return await sql.unsafe(query);
  } finally {
    await sql.end({ timeout: 1 });
  }
}
