/** The request-cycle model, section by section. */
import { describe, expect, test } from "vitest";
import { CycleFold, foldCycles, type RequestCycle, viewOf } from "../../machine/cycles.ts";
import { groupOf, stepsOf } from "../../machine/cycle-steps.ts";
import { roundsOf } from "../../machine/cycle-rounds.ts";
import type { Message } from "../../machine/message.ts";
import {
  agent,
  type Item,
  list,
  note,
  result,
  stop,
  system,
  text,
  thinking,
  use,
  user,
} from "./cycles-messages.ts";
import { followUp, say, steer } from "./events.ts";
import { History } from "./history.ts";
import { call } from "./states.ts";
import { MUTATING } from "./walks.ts";

const idsOf = (cycles: readonly RequestCycle[]) =>
  cycles.map(({ messages }) => messages.map(({ id }) => id).join(" "));
const cyclesOf = (messages: readonly Message[]) => idsOf(foldCycles(messages).cycles);

describe("2. Boundary Rule", () => {
  test.each(["completed", "interrupted", "error"] as const)("%s closes the cycle, and says why", (reason) => {
    const { cycles, between } = foldCycles(list(user("m1"), stop("s1", reason), note("n1")));
    expect(idsOf(cycles)).toEqual(["m1 s1"]);
    expect(between).toEqual(["n1"]);
    expect(cycles.map((cycle) => viewOf(cycle, "steps").reason)).toEqual([reason]);
  });
});

describe("3, 4. User Message Kinds and Queue Semantics", () => {
  test("a follow-up waits until the run has stopped and is the next root; a steer is feedback within it", () => {
    const history = new History();
    history.give(say("m1"));
    history.respond([call("t1")]);
    history.give(followUp("m2"));
    history.give(steer("m3"));
    history.finishTool();
    history.respond();
    const [first, second] = foldCycles(history.messages).cycles;
    const usersIn = (cycle: RequestCycle | undefined) =>
      stepsOf(cycle?.messages ?? []).flatMap((step) => (step.kind === "user" ? [step] : []));
    expect(usersIn(first)).toEqual([
      { kind: "user", messageId: "m1", delivery: "direct" },
      { kind: "user", messageId: "m3", delivery: "steer" },
    ]);
    expect(usersIn(second)).toEqual([{ kind: "user", messageId: "m2", delivery: "followUp" }]);
  });
});

describe("5. RequestCycle", () => {
  test("a cycle holds its root and all that follows, up to the first run_stop, without the next root", () => {
    const messages = list(
      user("m1"),
      agent("a1", use("t1")),
      result("t1"),
      user("m2", "steer"),
      agent("a2", text("Done.")),
      stop("s1"),
      user("m3", "followUp"),
      stop("s2", "error"),
    );
    expect(cyclesOf(messages)).toEqual(["m1 a1 t1! m2 a2 s1", "m3 s2"]);
  });

  test("its id is that of its root, and the cycleId of its messages", () => {
    const messages = list(system("seed"), user("m1"), note("n1"), stop("s1"), note("n2"), user("m2"));
    const { cycles } = foldCycles(messages);
    expect(cycles.map((cycle) => viewOf(cycle, "rounds").id)).toEqual(["m1", "m2"]);
    for (const { root, messages: own } of cycles) {
      expect(own.every(({ cycleId }) => cycleId === root.id)).toBe(true);
    }
  });
});

describe("6.1 InferenceLoop View", () => {
  const messages = list(
    user("m1"),
    agent("a1", use("t1")),
    result("t1"),
    user("m2", "steer"),
    agent("a2", text("Done.")),
    stop("s1"),
  );
  const [first, second, ...more] = roundsOf(messages);

  test("the model receives input and emits output", () => {
    expect(first).toMatchObject({ requestId: "r-a1", input: ["m1"], output: "a1", durationMs: 5 });
    expect(first?.usage.inputTokens).toBe(1_000);
  });
  test("results and steers are fed back, and it repeats until the run stops", () => {
    expect(first?.results).toEqual(["t1!"]);
    expect(second).toMatchObject({ input: ["t1!", "m2"], output: "a2", results: [] });
    expect(more).toEqual([]);
  });
  test("a result that no answer asked for is input like any other", () => {
    const rounds = roundsOf(list(user("m1"), result("t1"), agent("a1")));
    expect(rounds).toMatchObject([{ input: ["m1", "t1!"], output: "a1", results: [] }]);
  });
});

describe("6.2 ResolutionStep View", () => {
  const kinds = (...messages: readonly Item[]) =>
    stepsOf(list(...messages)).map((step) =>
      step.kind === "user"
        ? step.delivery
        : `${step.item?.type ?? "-"}: ${step.groups.map(({ kind, calls }) => `${kind} ${calls.length}`).join(", ")}`,
    );

  test("the step types: non-steer user, steer user, ai-block", () => {
    expect(kinds(user("m1"), agent("a1", text("One.")), user("m2", "steer"))).toEqual([
      "direct",
      "assistant: ",
      "steer",
    ]);
  });
  test("an ai-block holds exactly one text, assistant or reasoning, and no texts are merged", () => {
    expect(
      kinds(user("m1"), agent("a1", thinking("Hm."), thinking("So."), text("One."), text("Two."))),
    ).toEqual(["direct", "reasoning: ", "reasoning: ", "assistant: ", "assistant: "]);
  });
  test.each([
    ["read", ["ls", "read", "grep", "find"]],
    ["write", ["write", "edit"]],
    ["bash", ["bash"]],
    ["other", ["patch", "keyword_search", "think", "spawn_agents", "Bash", "constructor", ""]],
  ])("groupOf maps these tools to the %s-group", (kind, tools) => {
    expect(tools.map(groupOf)).toEqual(tools.map(() => kind));
  });
  test("only adjacent calls share a group", () => {
    expect(kinds(user("m1"), agent("a1", use("t1"), use("t2"), use("t3", "ls"), use("t4")))).toEqual([
      "direct",
      "-: bash 2, read 1, bash 1",
    ]);
  });
  test("results, notes and system messages are no steps and separate no calls", () => {
    const between = [result("t1"), note("n1"), system("x1")];
    expect(kinds(user("m1"), agent("a1", use("t1")), ...between, agent("a2", use("t2")))).toEqual([
      "direct",
      "-: bash 2",
    ]);
  });
  test("a text or a steer separates calls", () => {
    const first = [user("m1"), agent("a1", use("t1"))];
    expect(kinds(...first, agent("a2", text("And."), use("t2")))).toEqual([
      "direct",
      "-: bash 1",
      "assistant: bash 1",
    ]);
    expect(kinds(...first, user("m2", "steer"), agent("a2", use("t2")))).toEqual([
      "direct",
      "-: bash 1",
      "steer",
      "-: bash 1",
    ]);
  });
  test("a result is attached to its call", () => {
    const statuses = (...messages: readonly Item[]) =>
      stepsOf(list(...messages)).flatMap((step) =>
        step.kind === "user"
          ? []
          : step.groups.flatMap(({ calls }) => calls.map(({ status, durationMs }) => [status, durationMs])),
      );
    const running = [user("m1"), agent("a1", use("t1"), use("t2", "ls"))];
    expect(statuses(...running)).toEqual([
      [null, null],
      [null, null],
    ]);
    expect(statuses(...running, result("t1", "failed", 3), result("t2", "skipped", 0))).toEqual([
      ["failed", 3],
      ["skipped", 0],
    ]);
  });
  test("blocks of an unknown kind are no steps, and blocks of an unknown shape break nothing", () => {
    const odd = [{ type: "server_tool_use", id: "x" }, { type: "text" }, { type: "tool_use" }];
    expect(stepsOf(list(user("m1"), agent("a1", ...odd))).slice(1)).toEqual([
      {
        kind: "ai_block",
        item: { type: "assistant", text: "" },
        groups: [
          {
            kind: "other",
            calls: [{ toolCallId: "", name: "", input: null, status: null, durationMs: null }],
          },
        ],
      },
    ]);
  });
});

describe("7. Deterministic Construction", () => {
  test("it starts idle: messages that no root precedes lie between", () => {
    const { cycles, between } = foldCycles(list(system("x1"), agent("a1"), user("m1", "steer"), stop("s1")));
    expect(cycles).toEqual([]);
    expect(between).toEqual(["x1", "a1", "m1", "s1"]);
  });
  test("a root before the run_stop opens its own cycle; the cycle before it has no end", () => {
    const { cycles } = foldCycles(list(user("m1"), user("m2"), stop("s1")));
    expect(idsOf(cycles)).toEqual(["m1", "m2 s1"]);
    expect(cycles.map((cycle) => viewOf(cycle, "steps").reason)).toEqual([null, "completed"]);
  });
  test("a result of the fold never changes, and an ended cycle is the same object in every result", () => {
    const fold = new CycleFold();
    for (const message of list(user("m1"), stop("s1"), user("m2"))) fold.add(message);
    const before = fold.result();
    for (const message of list(note("n1"), stop("s2"), note("n2"))) fold.add(message);
    expect(idsOf(before.cycles)).toEqual(["m1 s1", "m2"]);
    expect(before.between).toEqual([]);
    expect(idsOf(fold.result().cycles)).toEqual(["m1 s1", "m2 n1 s2"]);
    expect(fold.result().cycles[0]).toBe(before.cycles[0]);
  });
});

// Stryker's switches add time of their own.
test.skipIf(MUTATING)("the time grows with the messages, not with their square", () => {
  const turn = (n: number) => [agent(`a${n}`, text("…"), use(`t${n}`)), result(`t${n}`)];
  const messages = list(user("m1"), ...Array.from({ length: 50_000 }, (_, n) => turn(n)).flat());
  const started = process.cpuUsage();
  const { cycles } = foldCycles(messages);
  for (const view of ["steps", "rounds"] as const) cycles.map((cycle) => viewOf(cycle, view));
  const { user: spent } = process.cpuUsage(started);
  // Microseconds. The goal is 200 ms; a fold that copies its lists for each message takes minutes.
  expect(spent).toBeLessThan(2_000_000);
});
