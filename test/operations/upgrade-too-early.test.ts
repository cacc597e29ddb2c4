/**
 * Old workers that are ended before the conversations of their version have moved (docs/operations.md, "Upgrade without
 * losing a turn"): what stands still, and the ways on.
 */
import { randomUUID } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { say, toolCall } from "../../local/scripted/script.ts";
import { at, Person } from "../api/person.ts";
import { problemOf, startApiOn } from "../api/support.ts";
import { spawning } from "../support/family.ts";
import { until } from "../support/waiting.ts";
import { startWorkerProcess, type WorkerProcess } from "../support/worker-process.ts";
import { buildsOf, makeNextRelease, page, ROOT, startSystemToUpgrade } from "./release.ts";

/** For more than a minute the API takes a worker that is gone for one that may come back. */
const SLOW = 240_000;

const { system, operator } = await startSystemToUpgrade();
const { cwd, model, defer } = system;
const requests = startApiOn(system);
const person = new Person(requests, cwd);
const next = await makeNextRelease(defer);

const command = (text: string) => say(toolCall("bash", { command: text }));

/** Its first call waits for this. */
const letGoOn = (id: string): void => writeFileSync(join(cwd, id), "");

/** A conversation that runs its first call. */
async function busy(...answers: readonly ReturnType<typeof say>[]): Promise<string> {
  const id = await person.create();
  const waiting = command(`until [ -e ${join(cwd, id)} ]; do sleep 0.05; done; echo first`);
  await person.say(id, { text: `go ${model.script(id, [waiting, ...answers])}` });
  await person.untilState(id, "tool_executing");
  return id;
}

/** Repeats the request, as a client does, for as long as nobody answers. */
async function insist(path: string, body: object): Promise<void> {
  await until(async () => {
    const response = await requests.send("POST", path, body);
    if (response.status !== 503 && response.status !== 202) throw new Error(await response.text());
    return response.status === 202;
  });
}

const goOn = (id: string) => insist(at(id, "/messages"), { id: randomUUID(), text: "Go on." });
const saidBy = async (id: string): Promise<string> => JSON.stringify(await person.messages(id));

describe("old workers that are ended too early", () => {
  let old: WorkerProcess;
  beforeAll(async () => {
    await startWorkerProcess(system, { WORKER_ROLES: "tools" });
    old = await operator.start(page.first, ROOT);
    await operator.run(page.firstIsCurrent);
    await operator.start(page.next, next);
  }, SLOW);

  const endTooEarly = async (): Promise<void> => {
    await operator.run(page.nextIsCurrent);
    old.signal("SIGKILL");
    await old.exited;
  };

  test("an old worker is started again: a turn goes on where it was", { timeout: SLOW }, async () => {
    const id = await busy(command("echo second"), say("Done."));
    await endTooEarly();
    letGoOn(id);
    old = await operator.start(page.first, ROOT);
    await person.untilState(id, "idle");
    const said = await saidBy(id);
    for (const text of ["first", "second", "Done."]) expect(said).toContain(text);
    expect(said).not.toContain("interrupted");
    await expect.poll(() => buildsOf(system.temporal, id)).toEqual(["1", "2"]);
    await operator.run(page.firstIsCurrent);
  });

  test(
    "there is none any more: a message or a Stop moves a conversation, with its sub-agents, and what ran is interrupted",
    { timeout: SLOW },
    async () => {
      const resting = await person.create();
      const stopped = await busy(say("After the Stop."));
      const asked = await busy(say("After the message."));
      const parent = await person.create();
      const tasks = [
        {
          script: [command("sleep 60"), say(toolCall("submit_result", { result: "Found.", success: true }))],
        },
      ];
      await person.say(parent, {
        text: `go ${model.script(parent, [say(spawning(system, tasks).call), say("After the sub-agents.")])}`,
      });
      await person.untilState(parent, "awaiting_sub_agents");
      const idle = await person.create();
      const atWork = await busy(say("After all."));
      const fromRest = `go ${model.script(resting, [say("From rest.")])}`;
      await endTooEarly();
      for (const id of [stopped, asked, atWork]) letGoOn(id);

      await Promise.all([
        insist(at(resting, "/messages"), { id: randomUUID(), text: fromRest }),
        insist(at(stopped, "/cancel"), {}),
        insist(at(parent, "/cancel"), {}),
        insist(at(asked, "/messages"), { id: randomUUID(), text: "Go on.", delivery: "followUp" }),
      ]);
      for (const id of [resting, stopped, asked, parent]) await person.untilState(id, "idle");
      expect(await saidBy(resting)).toContain("From rest.");
      await Promise.all([stopped, parent].map(goOn));
      for (const id of [stopped, parent]) await person.untilState(id, "idle");
      expect(await saidBy(stopped)).toContain("After the Stop.");
      expect(await saidBy(asked)).toContain("interrupted");
      const { conversations } = (await person.read(at(parent, "/children"))) as {
        conversations: { readonly state: { readonly kind: string } }[];
      };
      expect(conversations.map(({ state }) => state.kind)).toEqual(["failed"]);

      // The command of the page is for those to whom nobody writes.
      await operator.run(page.giveUp);
      await person.say(idle, { text: `go ${model.script(idle, [say("All the same.")])}` });
      await person.untilState(idle, "idle");
      expect(await saidBy(idle)).toContain("All the same.");
      await person.order("POST", at(atWork, "/cancel"), {});
      await person.untilState(atWork, "idle");
      for (const id of [resting, stopped, asked, parent, idle, atWork])
        expect(await buildsOf(system.temporal, id), id).toEqual(["2"]);
    },
  );

  test("the current version has no worker: /readyz says so, and who has; a message waits for the next one", async () => {
    const id = await person.create();
    await operator.run(`${page.firstIsCurrent} --allow-no-pollers`);
    await expect
      .poll(async () => (await problemOf(await requests.get("/readyz"))).detail)
      .toBe(
        "Not ready: no worker of the current version, bedrock:1, serves conversations; there are workers of bedrock:2.",
      );
    const answer = await requests.send("POST", at(id, "/messages"), {
      id: "again",
      text: `go ${model.script(id, [say("At last.")])}`,
    });
    expect(answer.status).toBe(202);
    expect(await person.stateOf(id)).toBe("llm_requesting");
    await operator.run(page.nextIsCurrent);
    await expect.poll(async () => (await requests.get("/readyz")).status).toBe(200);
    await person.untilState(id, "idle");
    expect(await saidBy(id)).toContain("At last.");
  });
});
