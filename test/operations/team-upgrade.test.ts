/** A team's server is upgraded under work by the commands of docs/operations.md: workers on a production server, APIs behind nginx. */
import { Client, Connection } from "@temporalio/client";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createClient } from "../../client/index.ts";
import { hold } from "../../local/scripted/cues.ts";
import { say, toolCall } from "../../local/scripted/script.ts";
import { at, Person } from "../api/person.ts";
import { requestsBy } from "../api/support.ts";
import { until } from "../support/waiting.ts";
import { buildsOf, makeNextRelease, operatorWith, page, ROOT, type Operator } from "./release.ts";
import { isTeamPossible, startTeam, TOKEN, type Team, type ToolHost } from "./team.ts";

/** A Temporal server for production is built once. */
const START_LIMIT_MS = 20 * 60_000;
const SLOW = 180_000;
const OF_EACH_HOST = 3;

describe.skipIf(!isTeamPossible)("the upgrade of a team's server", () => {
  const ends: (() => Promise<unknown>)[] = [];
  const defer = (end: () => Promise<unknown>): void => void ends.unshift(end);
  let team: Team;
  let person: Person;
  let operator: Operator;
  let temporal: Client;
  let next: string;
  beforeAll(async () => {
    team = await startTeam();
    defer(() => team.stop());
    const { databaseUrl, temporalAddress, payloadKey, model } = team;
    operator = await operatorWith(
      {
        ...{ DATABASE_URL: databaseUrl, TEMPORAL_ADDRESS: temporalAddress },
        PAYLOAD_KEY: Buffer.from(payloadKey).toString("base64"),
        ...{ ANTHROPIC_API_KEY: "test-key", ANTHROPIC_BASE_URL: model.url },
      },
      defer,
    );
    next = await makeNextRelease(defer);
    const connection = await Connection.connect({ address: temporalAddress });
    defer(() => connection.close());
    temporal = new Client({ connection });
    const headers = { authorization: `Bearer ${TOKEN}` };
    const asked = requestsBy((path, init) =>
      fetch(team.url + path, { ...init, headers: { ...headers, ...(init?.headers as object) } }),
    );
    person = new Person(asked, team.cwd);
  }, START_LIMIT_MS);
  afterAll(async () => {
    for (const end of ends) await end();
  }, 60_000);

  const call = (n: number) => toolCall("bash", { command: `sleep 0.1; echo ${n}` });
  const NUMBERS = [1, 2, 3, 4, 5, 6];

  /** A conversation on the host, whose turn has begun and waits before its third call. */
  async function begin(host: ToolHost) {
    const held = hold();
    const id = await person.create({ host: host.name });
    const answers = NUMBERS.map((n) => (n === 3 ? say(held, call(n)) : say(call(n))));
    await person.say(id, {
      text: `go ${team.model.script(id, [...answers, say("Done."), say("Once more.")])}`,
    });
    return { id, held };
  }

  async function outputs(id: string): Promise<readonly string[]> {
    const messages = await person.messages(id);
    const found = messages.flatMap((message) => (message.type === "tool" ? [...message.content] : []));
    return found.map(({ output }) =>
      output.map((block) => (block.type === "text" ? block.text : "")).join(""),
    );
  }

  test(
    "versions are switched on, then a release and both APIs are replaced, and no turn is lost",
    { timeout: SLOW },
    async () => {
      const hosts = Array.from({ length: OF_EACH_HOST }, () => team.hosts).flat();
      const beginAll = async () => {
        const begun = await Promise.all(hosts.map(begin));
        await Promise.all(begun.map(({ held }) => held.reached));
        return begun;
      };
      // These work while versions are switched on, those that follow while the release is replaced.
      const early = await beginAll();
      const first = await operator.start(page.first, ROOT);
      await operator.run(page.firstIsCurrent);
      for (const { held } of early) held.release();
      // A request that does not end within the worker's drain is made again, and the script would go on.
      for (const { id } of early) await until(async () => (await outputs(id)).length >= 3);
      await team.driver.end("SIGTERM");
      for (const { id } of early) await person.untilState(id, "idle");

      const late = await beginAll();
      const all = [...early, ...late];
      const clients = [1, 2, 3, 4].map(() => createClient({ url: team.url, token: TOKEN }));
      for (const client of clients) for (const { id } of all) client.open(id);
      for (const api of team.apis) {
        await api.end("SIGTERM");
        await api.start();
      }
      await operator.start(page.next, next);
      await operator.run(page.nextIsCurrent);
      for (const { held } of late) held.release();
      await operator.run(page.move);
      first.signal("SIGTERM");
      await first.exited;

      for (const { id } of late) await person.untilState(id, "idle");
      for (const { id } of all) {
        expect(await outputs(id)).toEqual(NUMBERS.map((n) => `${n}\n`));
        expect((await buildsOf(temporal, id)).at(-1)).toBe("2");
        await person.order("POST", at(id, "/messages"), { text: "Go on." });
      }
      const shows = (id: string) =>
        clients.every(({ models }) => JSON.stringify(models.conversation(id)).includes("Once more."));
      for (const { id } of all) await until(() => shows(id));
      for (const client of clients) client.end();
    },
  );
});
