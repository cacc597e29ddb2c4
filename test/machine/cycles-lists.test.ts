/** Lists of messages with their cycles written out, in both views. */
import { expect, test } from "vitest";
import { type Cycle, foldCycles, viewOf } from "../../machine/cycles.ts";
import type { Round } from "../../machine/cycle-rounds.ts";
import type { AiBlock, Step, StepCall, ToolGroup } from "../../machine/cycle-steps.ts";
import type { Delivery, Message, RunStopReason, ToolStatus } from "../../machine/message.ts";
import {
  agent,
  failure,
  list,
  note,
  redacted,
  result,
  stop,
  summary,
  system,
  text,
  thinking,
  time,
  use,
  user,
} from "./cycles-messages.ts";
import { usage } from "./states.ts";

type Expected = { readonly between?: string[]; readonly cycles: readonly ExpectedCycle[] };
type ExpectedCycle = Head & { readonly steps: Step[]; readonly rounds: Round[] };
type Head = Pick<Cycle, "id" | "root" | "startedAt" | "stoppedAt" | "reason">;

function expectCycles(messages: readonly Message[], { cycles, between = [] }: Expected): void {
  const folded = foldCycles(messages);
  expect(folded.between).toEqual(between);
  const shown = folded.cycles.map((cycle) => ({ ...viewOf(cycle, "rounds"), ...viewOf(cycle, "steps") }));
  expect(shown).toEqual(cycles);
}

/** The head of a cycle from message number `from` to number `to`, its run_stop. */
const ended = (id: string, from: number, to: number, reason: RunStopReason = "completed"): Head => ({
  id,
  root: id,
  startedAt: time(from),
  stoppedAt: time(to),
  reason,
});
const open = (id: string, from: number): Head => ({
  id,
  root: id,
  startedAt: time(from),
  stoppedAt: null,
  reason: null,
});
const said = (messageId: string, delivery: Delivery = "direct"): Step => ({
  kind: "user",
  messageId,
  delivery,
});
const assistant = (words: string, ...groups: ToolGroup[]): AiBlock => ({
  kind: "ai_block",
  item: { type: "assistant", text: words },
  groups,
});
const reasoning = (words: string, ...groups: ToolGroup[]): AiBlock => ({
  kind: "ai_block",
  item: { type: "reasoning", text: words },
  groups,
});
const silent = (...groups: ToolGroup[]): AiBlock => ({ kind: "ai_block", item: null, groups });
const group = (kind: ToolGroup["kind"], ...calls: StepCall[]): ToolGroup => ({ kind, calls });
const called = (
  toolCallId: string,
  name = "bash",
  status: ToolStatus | null = "completed",
  durationMs: number | null = 7,
): StepCall => ({ toolCallId, name, input: { of: toolCallId }, status, durationMs });
const round = (output: string, input: string[], results: string[] = []): Round => ({
  requestId: `r-${output}`,
  input,
  output,
  results,
  usage: usage(),
  durationMs: 5,
});

test("no messages give no cycles", () => {
  expectCycles([], { cycles: [] });
});

test("a question and its answer are one cycle", () => {
  expectCycles(list(user("m1"), agent("a1", text("42")), stop("s1")), {
    cycles: [{ ...ended("m1", 1, 3), steps: [said("m1"), assistant("42")], rounds: [round("a1", ["m1"])] }],
  });
});

test("a message without an answer yet opens a cycle without rounds", () => {
  expectCycles(list(user("m1")), { cycles: [{ ...open("m1", 1), steps: [said("m1")], rounds: [] }] });
});

test("calls of every kind after one text are grouped by kind, in order", () => {
  const names = [
    "ls",
    "read",
    "grep",
    "find",
    "write",
    "edit",
    "bash",
    "patch",
    "think",
    "keyword_search",
    "ls",
  ];
  const calls = names.map((name, n) => use(`t${n}`, name));
  const results = names.map((_, n) => result(`t${n}`));
  expectCycles(list(user("m1"), agent("a1", text("Let me see."), ...calls), ...results), {
    cycles: [
      {
        ...open("m1", 1),
        steps: [
          said("m1"),
          assistant(
            "Let me see.",
            group(
              "read",
              called("t0", "ls"),
              called("t1", "read"),
              called("t2", "grep"),
              called("t3", "find"),
            ),
            group("write", called("t4", "write"), called("t5", "edit")),
            group("bash", called("t6")),
            group("other", called("t7", "patch"), called("t8", "think"), called("t9", "keyword_search")),
            group("read", called("t10", "ls")),
          ),
        ],
        rounds: [
          round(
            "a1",
            ["m1"],
            results.map(({ id }) => id),
          ),
        ],
      },
    ],
  });
});

test("texts are never merged, and calls belong to the last of them", () => {
  const answer = agent(
    "a1",
    thinking("Hm."),
    redacted,
    text("One."),
    text("Two."),
    use("t1"),
    thinking("So?"),
    use("t2"),
  );
  expectCycles(
    list(user("m1"), answer, result("t1"), result("t2", "failed", 0), agent("a2", text("Done.")), stop("s1")),
    {
      cycles: [
        {
          ...ended("m1", 1, 6),
          steps: [
            said("m1"),
            reasoning("Hm."),
            reasoning(""),
            assistant("One."),
            assistant("Two.", group("bash", called("t1"))),
            reasoning("So?", group("bash", called("t2", "bash", "failed", 0))),
            assistant("Done."),
          ],
          rounds: [round("a1", ["m1"], ["t1!", "t2!"]), round("a2", ["t1!", "t2!"])],
        },
      ],
    },
  );
});

test("calls without a text join those of the answer before, across results", () => {
  const messages = list(
    user("m1"),
    agent("a1", text("I look."), use("t1", "read")),
    result("t1"),
    agent("a2", use("t2", "ls"), use("t3")),
    result("t2"),
    result("t3"),
    agent("a3", use("t4")),
    result("t4"),
    agent("a4", text("Found.")),
    stop("s1"),
  );
  expectCycles(messages, {
    cycles: [
      {
        ...ended("m1", 1, 10),
        steps: [
          said("m1"),
          assistant(
            "I look.",
            group("read", called("t1", "read"), called("t2", "ls")),
            group("bash", called("t3"), called("t4")),
          ),
          assistant("Found."),
        ],
        rounds: [
          round("a1", ["m1"], ["t1!"]),
          round("a2", ["t1!"], ["t2!", "t3!"]),
          round("a3", ["t2!", "t3!"], ["t4!"]),
          round("a4", ["t4!"]),
        ],
      },
    ],
  });
});

test("a steer separates the calls before it from those after it", () => {
  const messages = list(
    user("m1"),
    agent("a1", use("t1")),
    result("t1"),
    user("m2", "steer"),
    agent("a2", use("t2")),
    result("t2"),
    agent("a3", text("Done.")),
    stop("s1"),
  );
  expectCycles(messages, {
    cycles: [
      {
        ...ended("m1", 1, 8),
        steps: [
          said("m1"),
          silent(group("bash", called("t1"))),
          said("m2", "steer"),
          silent(group("bash", called("t2"))),
          assistant("Done."),
        ],
        rounds: [round("a1", ["m1"], ["t1!"]), round("a2", ["t1!", "m2"], ["t2!"]), round("a3", ["t2!"])],
      },
    ],
  });
});

test("a follow-up is the root of the next cycle", () => {
  const messages = list(
    user("m1"),
    agent("a1", text("One.")),
    stop("s1"),
    user("m2", "followUp"),
    agent("a2", text("Two.")),
    stop("s2"),
  );
  expectCycles(messages, {
    cycles: [
      { ...ended("m1", 1, 3), steps: [said("m1"), assistant("One.")], rounds: [round("a1", ["m1"])] },
      {
        ...ended("m2", 4, 6),
        steps: [said("m2", "followUp"), assistant("Two.")],
        rounds: [round("a2", ["m2"])],
      },
    ],
  });
});

test("a cancel among tools ends the cycle, with a steer that no request took along", () => {
  const messages = list(
    user("m1"),
    agent("a1", text("I try."), use("t1"), use("t2"), use("t3", "write")),
    result("t1"),
    result("t2", "cancelled", 90),
    result("t3", "skipped", 0),
    user("m2", "steer"),
    stop("s1", "interrupted"),
    user("m3"),
  );
  expectCycles(messages, {
    cycles: [
      {
        ...ended("m1", 1, 7, "interrupted"),
        steps: [
          said("m1"),
          assistant(
            "I try.",
            group("bash", called("t1"), called("t2", "bash", "cancelled", 90)),
            group("write", called("t3", "write", "skipped", 0)),
          ),
          said("m2", "steer"),
        ],
        rounds: [round("a1", ["m1"], ["t1!", "t2!", "t3!"])],
      },
      { ...open("m3", 8), steps: [said("m3")], rounds: [] },
    ],
  });
});

test("a failed request and a restart each end their cycle", () => {
  const messages = list(
    user("m1"),
    failure("e1"),
    stop("s1", "error"),
    user("m2"),
    agent("a1", use("t1")),
    result("t1", "interrupted", 12),
    note("n1"),
    stop("s2", "interrupted"),
  );
  expectCycles(messages, {
    cycles: [
      { ...ended("m1", 1, 3, "error"), steps: [said("m1")], rounds: [] },
      {
        ...ended("m2", 4, 8, "interrupted"),
        steps: [said("m2"), silent(group("bash", called("t1", "bash", "interrupted", 12)))],
        rounds: [round("a1", ["m2"], ["t1!"])],
      },
    ],
  });
});

test("calls that run or wait have no status, and calls that have ended do", () => {
  const messages = list(
    user("m1"),
    agent("a1", use("t1"), use("t2"), use("t3", "spawn_agents")),
    result("t1"),
  );
  expectCycles(messages, {
    cycles: [
      {
        ...open("m1", 1),
        steps: [
          said("m1"),
          silent(
            group("bash", called("t1"), called("t2", "bash", null, null)),
            group("other", called("t3", "spawn_agents", null, null)),
          ),
        ],
        rounds: [round("a1", ["m1"], ["t1!"])],
      },
    ],
  });
});

test("a seed, a downgrade, a note and a continuation by hand lie between cycles", () => {
  const messages = list(
    system("seed"),
    user("m1"),
    agent("a1", text("One.")),
    stop("s1"),
    system("downgrade"),
    note("n1"),
    user("m2"),
    agent("a2", text("Two.")),
    stop("s2"),
    summary("c1"),
  );
  expectCycles(messages, {
    between: ["seed", "downgrade", "n1", "c1"],
    cycles: [
      { ...ended("m1", 2, 4), steps: [said("m1"), assistant("One.")], rounds: [round("a1", ["m1"])] },
      { ...ended("m2", 7, 9), steps: [said("m2"), assistant("Two.")], rounds: [round("a2", ["m2"])] },
    ],
  });
});

test("system messages within a cycle are no steps, and the model reads some of them", () => {
  const messages = list(
    user("m1"),
    agent("a1", use("t1", "request_mode_upgrade"), use("t2", "patch")),
    result("t1"),
    system("x1"),
    note("n1"),
    result("t2"),
    agent("a2", use("t3", "patch")),
    result("t3", "skipped", 0),
    summary("c1"),
    stop("s1"),
  );
  expectCycles(messages, {
    cycles: [
      {
        ...ended("m1", 1, 10),
        steps: [
          said("m1"),
          silent(
            group(
              "other",
              called("t1", "request_mode_upgrade"),
              called("t2", "patch"),
              called("t3", "patch", "skipped", 0),
            ),
          ),
        ],
        rounds: [round("a1", ["m1"], ["t1!", "t2!"]), round("a2", ["t1!", "x1", "t2!"], ["t3!"])],
      },
    ],
  });
});

test("a sub-agent has one cycle: its task, a reminder, its submission", () => {
  const messages = list(
    user("task", "direct", "llm_agent"),
    agent("a1", text("I think so.")),
    system("reminder"),
    agent("a2", use("t1", "submit_result")),
    result("t1", "completed", 0),
    stop("s1"),
  );
  expectCycles(messages, {
    cycles: [
      {
        ...ended("task", 1, 6),
        steps: [
          said("task"),
          assistant("I think so.", group("other", called("t1", "submit_result", "completed", 0))),
        ],
        rounds: [round("a1", ["task"]), round("a2", ["reminder"], ["t1!"])],
      },
    ],
  });
});
