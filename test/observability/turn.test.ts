/** Whatever is stored of a turn, its parts are the whole of it: no moment counts twice, none is left out. */
import fc from "fast-check";
import { expect, test } from "vitest";
import type { SpanRecord } from "../../observability/spans.ts";
import { spoken } from "../../observability/turn-sentence.ts";
import { PARTS, phasesOf, traceOf, type TurnRecord, type TurnState } from "../../observability/turn.ts";

const kind = fc.constantFrom<TurnState["kind"]>(
  "llm_requesting",
  "tool_executing",
  "awaiting_mode_approval",
  "awaiting_sub_agents",
  "awaiting_continuation",
  "cancelling",
);
const operation = fc.constantFrom("a", "b", "c", null);
const moment = fc.integer({ min: 0, max: 10_000 });
const state: fc.Arbitrary<TurnState> = fc.record({
  at: moment,
  kind,
  operationId: operation,
  name: fc.constantFrom("bash", null),
  isRetry: fc.boolean(),
  tasks: fc.nat(3),
});
const span: fc.Arbitrary<SpanRecord> = fc.record({
  conversationId: fc.constant("c"),
  cycleId: fc.constant("m"),
  operationId: fc.constantFrom("a", "b", "c", "m", null),
  traceId: fc.constant(""),
  spanId: fc.constant(""),
  name: fc.constantFrom("request", "tool", "commit", "message"),
  startedAt: moment,
  endedAt: moment,
  marks: fc.array(fc.record({ name: fc.constantFrom("committed", "sent", "first_token"), at: moment })),
  attributes: fc.constantFrom({}, { "bedrock.outcome": "superseded" }, { "bedrock.ends_turn": true }),
});
const turn: fc.Arbitrary<TurnRecord> = fc
  .record({
    states: fc.array(state, { maxLength: 12 }),
    spans: fc.array(span, { maxLength: 12 }),
    queuedAt: fc.option(moment),
    length: moment,
    isOpen: fc.boolean(),
  })
  .map(({ states, spans, queuedAt, length, isOpen }) => {
    const ascending = states.map((each) => ({ ...each, at: each.at + 10_000 })).sort((a, b) => a.at - b.at);
    const takenUpAt = ascending[0]?.at ?? 10_000;
    const stoppedAt = (ascending.at(-1)?.at ?? takenUpAt) + length;
    return {
      ...{ conversationId: "c", cycleId: "m", takenUpAt, queuedAt, spans, begunOperationId: null },
      states: isOpen ? ascending : [...ascending, { ...idle, at: stoppedAt }],
      stoppedAt: isOpen ? null : stoppedAt,
      reason: isOpen ? null : "completed",
    };
  });
const idle: TurnState = { at: 0, kind: "idle", operationId: null, name: null, isRetry: false, tasks: 0 };

test("phases follow one another without a gap, and so do the pieces of each", () => {
  fc.assert(
    fc.property(turn, (given) => {
      const phases = phasesOf(given, 40_000);
      const pieces = phases.flatMap((phase) => phase.pieces);
      for (const { start, end } of [...phases, ...pieces]) expect(end).toBeGreaterThanOrEqual(start);
      for (const [index, phase] of phases.slice(1).entries()) expect(phase.start).toBe(phases[index]?.end);
      for (const { start, end, pieces: of } of phases)
        expect(of.reduce((sum, piece) => sum + piece.end - piece.start, 0)).toBeCloseTo(end - start);
    }),
    { numRuns: 2_000 },
  );
});

test("every turn has a sentence of its largest part, and a line for each phase", () => {
  fc.assert(
    fc.property(turn, (given) => {
      const trace = traceOf(given, 40_000);
      expect(trace.summary).toMatch(
        /^(\d+ % of \S.* went to .*|This turn took no time that can be measured)\.$/,
      );
      const [largest] = trace.parts;
      for (const { part, durationMs } of trace.parts) {
        expect(PARTS).toContain(part);
        expect(durationMs).toBeLessThanOrEqual(largest?.durationMs ?? 0);
      }
      const ids = new Set(trace.spans.map(({ id }) => id));
      expect(ids.size).toBe(trace.spans.length);
      for (const { parentId } of trace.spans) if (parentId !== null) expect(ids).toContain(parentId);
    }),
    { numRuns: 1_000 },
  );
});

test("of a long turn the longest spans are shown, in their order, and the others are counted", () => {
  const states = Array.from({ length: 1_000 }, (_, n) => ({
    ...idle,
    kind: "tool_executing" as const,
    at: n * 10 + (n > 500 ? 5_000 : 0),
    operationId: String(n),
    name: n === 500 ? "slow" : "bash",
  }));
  const stoppedAt = 16_000;
  const long: TurnRecord = {
    ...{ conversationId: "c", cycleId: "m", takenUpAt: 0, queuedAt: null, spans: [], begunOperationId: null },
    states: [...states, { ...idle, at: stoppedAt }],
    ...{ stoppedAt, reason: "completed" },
  };
  const trace = traceOf(long, stoppedAt);
  expect([trace.spans.length, trace.omitted]).toEqual([200, 800]);
  expect(trace.summary).toMatch(/^100 % of 16 s went to tools: 1000 calls, slow 5\.\d s at worst\.$/);
  expect(trace.spans.some(({ name }) => name === "slow")).toBe(true);
});

test("times are written as people say them", () => {
  expect([340, 2_140, 9_960, 48_200, 200_000].map(spoken)).toEqual([
    "340 ms",
    "2.1 s",
    "10.0 s",
    "48 s",
    "3 min 20 s",
  ]);
});
