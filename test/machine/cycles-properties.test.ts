/** Properties of the request cycles of any conversation, and of any list of messages. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { CycleFold, type Cycles, foldCycles, type RequestCycle, viewOf } from "../../machine/cycles.ts";
import { groupOf, stepsOf } from "../../machine/cycle-steps.ts";
import type { Message, ToolStatus } from "../../machine/message.ts";
import {
  agent,
  failure,
  type Item,
  list,
  note,
  redacted,
  result,
  stop,
  summary,
  system,
  text,
  thinking,
  use,
  user,
} from "./cycles-messages.ts";
import { naiveCycles } from "./cycles-naive.ts";
import { go, settings, walks } from "./walks.ts";
import { deepFreeze } from "./valid.ts";

type Draw = (id: string) => Item[];

const tools = fc.constantFrom(
  "ls",
  "read",
  "grep",
  "find",
  "write",
  "edit",
  "bash",
  "bash",
  "patch",
  "think",
);
const statuses = fc.constantFrom<ToolStatus>("completed", "failed", "cancelled", "skipped", "interrupted");
const reasons = fc.constantFrom("completed" as const, "interrupted" as const, "error" as const);
const part = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({
      is: fc.constant("call" as const),
      tool: tools,
      status: fc.option(statuses),
      durationMs: fc.nat(9),
    }),
  },
  fc.record({
    is: fc.constant("item" as const),
    block: fc.constantFrom(text("One."), text(""), thinking("Hm."), redacted),
  }),
);

/** An answer, followed by the results of its calls, for the calls that have one. */
const answer: fc.Arbitrary<Draw> = fc.array(part, { maxLength: 5 }).map((parts) => (id) => {
  const blocks = parts.map((of, n) => (of.is === "call" ? use(`${id}-${n}`, of.tool) : of.block));
  const results = parts.flatMap((of, n) =>
    of.is === "call" && of.status !== null ? [result(`${id}-${n}`, of.status, of.durationMs)] : [],
  );
  return [agent(id, ...blocks), ...results];
});
const aside = fc.constantFrom<Draw>(
  (id) => [system(id)],
  (id) => [note(id)],
  (id) => [summary(id)],
);
const within = fc.oneof(
  { weight: 4, arbitrary: answer },
  aside,
  fc.constantFrom<Draw>(
    (id) => [user(id, "steer")],
    (id) => [failure(id)],
  ),
);
const root = fc.constantFrom<Draw>(
  (id) => [user(id)],
  (id) => [user(id, "followUp")],
);
const end: fc.Arbitrary<Draw> = reasons.map((reason) => (id) => [stop(id, reason)]);

const numbered = (draws: readonly Draw[]): Message[] => list(...draws.flatMap((draw, n) => draw(`x${n}`)));

/** Runs and the messages between them. The last run may be unfinished. */
const conversations = fc
  .tuple(
    fc.array(fc.tuple(fc.array(aside, { maxLength: 2 }), root, fc.array(within, { maxLength: 6 }), end), {
      maxLength: 4,
    }),
    fc.array(aside, { maxLength: 2 }),
    fc.option(fc.tuple(root, fc.array(within, { maxLength: 6 }))),
  )
  .map(([runs, between, last]) => numbered([...runs.flat(2), ...between, ...(last ?? []).flat()]));

/** Messages of any kind in any order, as no conversation stores them. */
const anyLists = fc.array(fc.oneof(within, root, end), { maxLength: 20 }).map(numbered);

const walked = walks.map((walk) => go(walk, () => undefined).messages);

const shown = ({ cycles, between }: Cycles) => ({
  between,
  cycles: cycles.map((cycle) => ({ steps: viewOf(cycle, "steps"), rounds: viewOf(cycle, "rounds") })),
});

/** The value of `fold.result()` after each message. */
function resultsOf(messages: readonly Message[]): Cycles[] {
  const fold = new CycleFold();
  return messages.map((message) => {
    fold.add(message);
    return fold.result();
  });
}

const isOpen = (cycle: RequestCycle): boolean => cycle.messages.at(-1)?.type !== "run_stop";

describe.each([
  ["conversations that the transition made", walked],
  ["runs of all shapes", conversations],
  ["any messages in any order", anyLists],
])("%s", (_, lists) => {
  const holds = (check: (messages: Message[]) => void) =>
    fc.assert(
      fc.property(lists, (messages) => check(deepFreeze(messages))),
      settings,
    );

  test("determinism: the same messages, the same cycles", () =>
    holds((messages) => {
      expect(shown(foldCycles(structuredClone(messages)))).toEqual(shown(foldCycles(messages)));
    }));

  test("incrementality: folding at once and one by one give the same cycles, for every prefix", () =>
    holds((messages) => {
      resultsOf(messages).forEach((cycles, n) =>
        expect(cycles).toEqual(foldCycles(messages.slice(0, n + 1))),
      );
    }));

  test("every message is in exactly one cycle or between", () =>
    holds((messages) => {
      const { cycles, between } = foldCycles(messages);
      const ids = [...cycles.flatMap((cycle) => cycle.messages.map(({ id }) => id)), ...between];
      expect(ids.sort()).toEqual(messages.map(({ id }) => id).sort());
    }));

  test("the cycles of a prefix, except its last, are a prefix of all cycles", () =>
    holds((messages) => {
      const all = shown(foldCycles(messages));
      for (const before of resultsOf(messages).map(shown)) {
        const ended = before.cycles.slice(0, -1);
        expect(all.cycles.slice(0, ended.length)).toEqual(ended);
        expect(all.between.slice(0, before.between.length)).toEqual(before.between);
      }
    }));

  test("a fold that begins at any root gives the same cycles from there on", () =>
    holds((messages) => {
      const all = foldCycles(messages).cycles;
      all.forEach(({ root: from }, n) => {
        expect(foldCycles(messages.slice(from.sequence - 1)).cycles).toEqual(all.slice(n));
      });
    }));

  test("the steps hold every text and every call exactly once, in order; groups part the calls", () =>
    holds((messages) => {
      for (const cycle of foldCycles(messages).cycles) {
        const steps = stepsOf(cycle.messages);
        const blocks = cycle.messages.flatMap((message) => (message.type === "agent" ? message.content : []));
        const groups = steps.flatMap((step) => (step.kind === "ai_block" ? [step.groups] : []));
        const calls = groups.flat().flatMap((group) => group.calls);
        expect(calls.map((call) => call.toolCallId)).toEqual(
          blocks.filter(({ type }) => type === "tool_use").map((block) => block["id"]),
        );
        const items = steps.filter((step) => step.kind === "ai_block" && step.item !== null);
        expect(items).toHaveLength(blocks.filter(({ type }) => type !== "tool_use").length);
        for (const own of groups) {
          expect(own.every((group, n) => group.kind !== own[n - 1]?.kind)).toBe(true);
          for (const { kind, calls } of own) {
            expect(calls.length).toBeGreaterThan(0);
            expect(calls.every(({ name }) => groupOf(name) === kind)).toBe(true);
          }
        }
      }
    }));
});

describe.each([
  ["conversations that the transition made", walked],
  ["runs of all shapes", conversations],
])("%s", (_, lists) => {
  test("every cycle but the last has ended, and one run_stop ended it", () =>
    fc.assert(
      fc.property(lists, (messages) => {
        const { cycles } = foldCycles(messages);
        expect(cycles.slice(0, -1).some(isOpen)).toBe(false);
        for (const { messages: own } of cycles) {
          expect(own.slice(0, -1).filter(({ type }) => type === "run_stop")).toEqual([]);
        }
      }),
      settings,
    ));

  test("the naive implementation shows the same", () =>
    fc.assert(
      fc.property(lists, (messages) => {
        expect(shown(foldCycles(messages))).toEqual(naiveCycles(messages));
      }),
      settings,
    ));
});
