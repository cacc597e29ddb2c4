/** A team's server on several hosts (docs/operations.md): what each host reaches, and what happens when a part is away. */
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createClient } from "../../client/index.ts";
import { hold } from "../../local/scripted/cues.ts";
import { say, text, toolCall } from "../../local/scripted/script.ts";
import { Person } from "../api/person.ts";
import { requestsBy } from "../api/support.ts";
import { until } from "../support/waiting.ts";
import { isTeamPossible, startTeam, TOKEN, type Team, type ToolHost } from "./team.ts";

type Answer = ReturnType<typeof say>;

/** A Temporal server for production is built once. */
const START_LIMIT_MS = 20 * 60_000;

describe.skipIf(!isTeamPossible)("several hosts", () => {
  let team: Team;
  let person: Person;
  beforeAll(async () => {
    team = await startTeam();
    const headers = { authorization: `Bearer ${TOKEN}` };
    const asked = requestsBy((path, init) =>
      fetch(team.url + path, { ...init, headers: { ...headers, ...(init?.headers as object) } }),
    );
    person = new Person(asked, team.cwd);
  }, START_LIMIT_MS);
  afterAll(() => team.stop(), 60_000);

  /** A conversation on the host, Unrestricted, and what the model answers from its second turn on. */
  async function begin(host: ToolHost, ...answers: readonly Answer[]): Promise<string> {
    const id = await person.create({ host: host.name });
    const ask = toolCall("request_mode_upgrade", { reason: "To work." });
    await person.say(id, { text: `go ${team.model.script(id, [say(ask), say("Ready."), ...answers])}` });
    await person.approve(id);
    await person.untilState(id, "idle");
    return id;
  }

  const goOn = (id: string) => person.say(id, { text: "Go on." });

  async function results(id: string) {
    const messages = await person.messages(id);
    const found = messages.flatMap((message) => (message.type === "tool" ? [...message.content] : []));
    // The first one is the approval.
    return found.slice(1);
  }

  const outputs = (all: Awaited<ReturnType<typeof results>>): readonly string[] =>
    all.map(({ output }) => output.map((block) => (block.type === "text" ? block.text : "")).join(""));

  test("a command of each host reaches Temporal and Postgres, and no other part", async () => {
    for (const host of team.hosts) {
      const try_ = (address: string): string =>
        `(exec 3<>/dev/tcp/${address}) 2>/dev/null && echo yes || echo no`;
      const command = [...team.reachable(host), ...team.unreachable].map(try_).join("; ");
      const id = await begin(host, say(toolCall("bash", { command })), say("Done."));
      await goOn(id);
      await person.untilState(id, "idle");
      const expected = [...team.reachable(host).map(() => "yes"), ...team.unreachable.map(() => "no")];
      expect(
        outputs(await results(id))[0]
          ?.trim()
          .split("\n"),
      ).toEqual(expected);
    }
  });

  test("the network to a tool host is cut for a second: nobody notices", async () => {
    const [host] = team.hosts;
    const call = toolCall("bash", { command: "echo begun; sleep 2; echo done" });
    const id = await begin(host, say(call), say("Done."));
    const events = await person.follow(id);
    await goOn(id);
    await events.until(({ name }) => name === "tool.output");
    await host.cut();
    await sleep(1_000);
    await host.mend();
    await person.untilState(id, "idle");
    expect(await results(id)).toMatchObject([{ status: "completed" }]);
    await events.cancel();
  });

  test.each([5, 30])(
    "it is cut for %i seconds: the command ends before it is told to be interrupted, and the next call waits",
    async (seconds) => {
      const host = team.hosts[seconds === 5 ? 0 : 1];
      const other = team.hosts[seconds === 5 ? 1 : 0];
      const file = `${team.cwd}/beats-${seconds}`;
      const beat = `echo begun; while :; do date +%s%3N >> ${file}; sleep 0.02; done`;
      const after = toolCall("bash", { command: `tail -n 1 ${file}` });
      const [id, neighbour] = await Promise.all([
        begin(host, say(toolCall("bash", { command: beat })), say(after), say("Done.")),
        begin(other, say(toolCall("bash", { command: "echo here" })), say("Done.")),
      ]);
      const events = await person.follow(id);
      await goOn(id);
      await events.until(({ name }) => name === "tool.output");
      await host.cut();
      const cutAt = Date.now();
      await until(async () => (await results(id)).length === 1 || null);
      const toldAt = Date.now();
      expect(await results(id)).toMatchObject([{ status: "interrupted" }]);
      await goOn(neighbour);
      await person.untilState(neighbour, "idle");
      expect(outputs(await results(neighbour))).toEqual(["here\n"]);
      await sleep(cutAt + seconds * 1_000 - Date.now());
      await host.mend();
      await person.untilState(id, "idle");
      const all = await results(id);
      expect(all).toMatchObject([{ status: "interrupted" }, { status: "completed" }]);
      expect(Number(outputs(all)[1])).toBeLessThan(toldAt);
      await events.cancel();
    },
    120_000,
  );

  test("an API dies while clients read: they go on with the other one, and miss nothing", async () => {
    const held = hold();
    const id = await begin(team.hosts[0], say(text("One, ", held, "two.")));
    // The proxy gives them to both in turn.
    const clients = [1, 2, 3, 4].map(() => createClient({ url: team.url, token: TOKEN }));
    for (const client of clients) client.open(id);
    const allShow = (words: string): boolean =>
      clients.every(({ models }) => JSON.stringify(models.conversation(id)).includes(words));
    await goOn(id);
    await until(() => allShow("One, "));
    await team.apis[0].end("SIGKILL");
    held.release();
    await until(() => allShow("One, two."));
    await person.untilState(id, "idle");
    expect((await person.messages(id)).filter(({ type }) => type === "agent")).toHaveLength(3);
    for (const client of clients) client.end();
  });

  test("the worker of conversations is replaced while they work: no turn is lost", async () => {
    const call = (n: number) => say(toolCall("bash", { command: `sleep 0.1; echo ${n}` }));
    const calls = [1, 2, 3, 4, 5, 6, 7, 8].map(call);
    const hosts = [...team.hosts, ...team.hosts];
    const ids = await Promise.all(hosts.map((host) => begin(host, ...calls, say("Done."))));
    await Promise.all(ids.map(goOn));
    await until(async () => (await results(ids[0] ?? "")).length >= 2 || null);
    await team.startDriver();
    await team.driver.end("SIGTERM");
    for (const id of ids) {
      await person.untilState(id, "idle");
      expect(outputs(await results(id))).toEqual([1, 2, 3, 4, 5, 6, 7, 8].map((n) => `${n}\n`));
    }
  });
});
