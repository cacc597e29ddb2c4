/**
 * An upgrade by the commands of docs/operations.md, as they stand there: conversations at work and at rest move to a
 * release whose workflows they could not replay, and back. No turn is lost, and no tool runs twice.
 */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { type InjectedSinks, Worker } from "@temporalio/worker";
import { beforeAll, describe, expect, inject, test } from "vitest";
import { hold, type Hold } from "../../local/scripted/cues.ts";
import { say, toolCall } from "../../local/scripted/script.ts";
import type { WorkflowSinks } from "../../protocol/sinks.ts";
import { at, Person } from "../api/person.ts";
import { problemOf, startApiOn } from "../api/support.ts";
import { spawning } from "../support/family.ts";
import { until } from "../support/waiting.ts";
import type { WorkerProcess } from "../support/worker-process.ts";
import {
  buildsOf,
  bundleOf,
  makeNextRelease,
  page,
  reversed,
  ROOT,
  startSystemToUpgrade,
} from "./release.ts";

const SLOW = 180_000;
const OF_EACH_KIND = 4;
/** A replay tells nothing. */
const NOBODY: InjectedSinks<WorkflowSinks> = { runs: { began: { fn: () => undefined } } };
const ROUNDS = [1, 2, 3, 4, 5, 6];

const { system, operator } = await startSystemToUpgrade({ TOOL_HOST: "build-1" });
const { cwd, model, defer } = system;
const requests = startApiOn(system);
const person = new Person(requests, cwd);
const next = await makeNextRelease(defer);

const fileOf = (id: string): string => join(cwd, id);
const linesOf = (id: string): readonly string[] =>
  existsSync(fileOf(id)) ? readFileSync(fileOf(id), "utf8").trimEnd().split("\n") : [];

/** A call that leaves a line, so that a second run of it shows. */
const leaving = (id: string, line = "", command = "sleep 0.1") =>
  say(toolCall("bash", { command: `${command}; echo ${line} | tee -a ${fileOf(id)}` }));

const asking = say(toolCall("request_mode_upgrade", { reason: "To work." }));

type Way = "there" | "back";
type Scripted = ReturnType<typeof say>;

/** What conversations do while they are moved. */
type Kind = {
  /** The model's answers in the turn that is under way. */
  readonly turn: (id: string, way: Way) => readonly Scripted[];
  /** Begins the turn, and waits until the conversation does what its kind says. */
  readonly act: (id: string) => Promise<unknown>;
  /** Lets the turn go on when the new version is current. */
  readonly letGoOn?: (id: string) => void;
  /** What the turn needs after the move. */
  readonly finish?: (id: string) => Promise<unknown>;
  /** The lines that the turn leaves, and the texts that are in the conversation after it, once each. */
  readonly leaves: (way: Way) => readonly string[];
  readonly says?: (way: Way) => readonly string[];
};

const goOn = (id: string) => person.say(id, { text: "Go on." });
const actUntil = (state: string) => async (id: string) => {
  await goOn(id);
  await person.untilState(id, state);
};
const one = (way: Way): readonly string[] => [way];

/** The answers of the model that wait for the new version. */
const holds = new Map<string, Hold[]>();

const KINDS: { readonly [name: string]: Kind } = {
  "in rounds of tools": {
    turn: (id, way) => {
      const held = hold();
      holds.set(id, [...(holds.get(id) ?? []), held]);
      const [first, second, ...rest] = ROUNDS.map((n) => `${way}${n}`);
      return [
        leaving(id, first),
        say(held, ...leaving(id, second).content),
        ...rest.map((line) => leaving(id, line)),
        say("Done."),
      ];
    },
    act: async (id) => {
      await goOn(id);
      await holds.get(id)?.[0]?.reached;
    },
    letGoOn: (id) => holds.get(id)?.shift()?.release(),
    leaves: (way) => ROUNDS.map((n) => `${way}${n}`),
  },
  "with a queue": {
    turn: (id, way) => [leaving(id, way, "sleep 2"), say(`Steered ${way}.`), say(`Followed ${way}.`)],
    act: async (id) => {
      await actUntil("tool_executing")(id);
      await person.say(id, { text: "Rather so.", delivery: "steer" });
      await person.say(id, { text: "And then so.", delivery: "followUp" });
    },
    leaves: one,
    says: (way) => [`Steered ${way}.`, `Followed ${way}.`],
  },
  "with sub-agents": {
    turn: (id, way) => {
      const tasks = [1, 2].map((n) => ({
        script: [
          say(toolCall("bash", { command: "sleep 1" })),
          say(toolCall("bash", { command: "sleep 1" })),
          say(toolCall("submit_result", { result: `Found ${way} ${n}.`, success: true })),
        ],
      }));
      return [say(spawning(system, tasks).call), leaving(id, way), say("Done.")];
    },
    act: actUntil("awaiting_sub_agents"),
    leaves: one,
    says: (way) => [`Found ${way} 1.`, `Found ${way} 2.`],
  },
  "that ask for approval": {
    turn: (id, way) => [asking, leaving(id, way), say("Done.")],
    act: async (id) => {
      await person.order("POST", at(id, "/mode"), { mode: "restricted" });
      await actUntil("awaiting_mode_approval")(id);
    },
    finish: (id) => person.approve(id),
    leaves: one,
  },
  "at rest": {
    turn: (id, way) => [leaving(id, way), say("Done.")],
    act: () => Promise.resolve(),
    finish: goOn,
    leaves: one,
  },
};

type Conversation = { readonly id: string; readonly kind: Kind; readonly name: string };

/** A conversation that may write, and rests. */
async function begin([name, kind]: readonly [string, Kind]): Promise<Conversation> {
  const id = await person.create();
  const turns = (["there", "back"] as const).flatMap((way) => kind.turn(id, way));
  await person.say(id, { text: `go ${model.script(id, [asking, say("Ready."), ...turns])}` });
  await person.approve(id);
  await person.untilState(id, "idle");
  return { id, kind, name };
}

describe("an upgrade", () => {
  let old: WorkerProcess;
  let tools: WorkerProcess;
  let all: readonly Conversation[];
  beforeAll(async () => {
    await operator.run(page.migrate);
    [tools, old] = await Promise.all([operator.start(page.toolHost, ROOT), operator.start(page.first, ROOT)]);
  }, SLOW);

  const readiness = async (): Promise<string> => {
    const response = await requests.get("/readyz");
    return response.status === 200 ? "ready" : (await problemOf(response)).detail;
  };

  test("before a version is current the API is not ready, and says so", async () => {
    await expect
      .poll(readiness)
      .toBe(
        "Not ready: no version of the workers is current; there are workers of bedrock:1 (temporal worker deployment set-current-version).",
      );
    await operator.run(page.firstIsCurrent);
    await expect.poll(readiness).toBe("ready");
  });

  test(
    "a tool host is replaced: the command that runs goes on, and the new worker runs the next one",
    { timeout: SLOW },
    async () => {
      const kind: Kind = {
        turn: (id) => [leaving(id, "first", "sleep 4"), leaving(id, "second"), say("Done.")],
        act: actUntil("tool_executing"),
        leaves: () => ["first", "second"],
      };
      const { id } = await begin(["on a host", kind]);
      await kind.act(id);
      const started = await operator.start(page.toolHost, next);
      tools.signal("SIGTERM");
      await tools.exited;
      tools = started;
      await person.untilState(id, "idle");
      expect(linesOf(id)).toEqual(["first", "second"]);
      expect(JSON.stringify(await person.messages(id))).not.toContain("interrupted");
    },
  );

  /** Starts a turn everywhere, moves all by the page's commands, and ends the workers that nobody needs any more. */
  async function upgrade(way: Way, ways: readonly Way[]): Promise<void> {
    const steps = [page.next, page.nextIsCurrent, page.move];
    const [start = "", makeCurrent = "", move = ""] = way === "there" ? steps : steps.map(reversed);
    const started = await operator.start(start, way === "there" ? next : ROOT);
    await Promise.all(all.map(({ kind, id }) => kind.act(id)));
    await operator.run(makeCurrent);
    for (const { kind, id } of all) kind.letGoOn?.(id);
    await operator.run(move);
    old.signal("SIGTERM");
    await old.exited;
    old = started;
    await Promise.all(all.map(async ({ kind, id }) => kind.finish?.(id)));
    for (const { id, kind, name } of all) {
      await until(() => linesOf(id).length === ways.flatMap(kind.leaves).length);
      await person.untilState(id, "idle");
      expect(linesOf(id), name).toEqual(ways.flatMap(kind.leaves));
      const said = JSON.stringify(await person.messages(id));
      for (const text of ways.flatMap(kind.says ?? (() => [])))
        expect(said.split(text), text).toHaveLength(2);
      expect(said).not.toContain("interrupted");
    }
  }

  test(
    "conversations of every kind move to the next release, and lose no turn",
    { timeout: SLOW },
    async () => {
      const begun: Conversation[] = [];
      for (const kind of Object.entries(KINDS))
        begun.push(...(await Promise.all(Array.from({ length: OF_EACH_KIND }, () => begin(kind)))));
      all = begun;
      await upgrade("there", ["there"]);
      for (const { id, name } of all) expect(await buildsOf(system.temporal, id), name).toEqual(["1", "2"]);
    },
  );

  test("and back, in the same way", { timeout: SLOW }, async () => {
    await upgrade("back", ["there", "back"]);
    for (const { id, name } of all)
      expect(await buildsOf(system.temporal, id), name).toEqual(["1", "2", "1"]);
  });

  test("neither release could replay the other's runs", { timeout: SLOW }, async () => {
    const { id = "" } = all.find(({ name }) => name === "in rounds of tools") ?? {};
    const history = await system.temporal.workflow.getHandle(id).fetchHistory();
    const replay = (codePath: string) =>
      Worker.runReplayHistory({ workflowBundle: { codePath }, sinks: NOBODY }, history);
    await replay(inject("bundlePath"));
    await expect(replay(await bundleOf(next))).rejects.toThrow("Nondeterminism");
  });
});
