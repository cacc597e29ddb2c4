/** A conversation as rows: what is said and done stands in its order, calls in the groups of the request-cycle model. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { liveRowsOf, Transcript, type Row } from "../../client/transcript.ts";
import { foldCycles } from "../../machine/cycles.ts";
import { stepsOf } from "../../machine/cycle-steps.ts";
import { agent, list, note, result, stop, text, thinking, use, user } from "../machine/cycles-messages.ts";
import { go, settings, walks } from "../machine/walks.ts";

const callsOf = (row: Row) =>
  row.kind === "calls" ? row.calls : row.kind === "sub_agents" ? [row.call] : [];

test("every call stands once, in its order, in a group of its kind, with its result", () => {
  fc.assert(
    fc.property(walks, (walk) => {
      const { messages } = go(walk, () => undefined);
      const rows = new Transcript().rowsOf(messages);
      const steps = foldCycles(messages).cycles.flatMap((cycle) => stepsOf(cycle.messages));
      const groups = steps.flatMap((step) => (step.kind === "ai_block" ? step.groups : []));
      expect(rows.flatMap(callsOf).map(({ id, outcome }) => [id, outcome?.status ?? null])).toEqual(
        groups.flatMap(({ calls }) => calls.map(({ toolCallId, status }) => [toolCallId, status])),
      );
      const kinds = new Map(
        groups.flatMap(({ kind, calls }) => calls.map((call) => [call.toolCallId, kind])),
      );
      for (const row of rows)
        if (row.kind === "calls") for (const { id } of row.calls) expect(kinds.get(id)).toBe(row.group);
      expect(new Set(rows.map(({ key }) => key)).size).toBe(rows.length);
    }),
    settings,
  );
});

test("rows that a new message does not change are the same objects, and the rows are those of a new reading", () => {
  fc.assert(
    fc.property(walks, (walk) => {
      const { messages } = go(walk, () => undefined);
      const transcript = new Transcript();
      let before: readonly Row[] = [];
      for (let count = 1; count <= messages.length; count++) {
        const known = messages.slice(0, count);
        const rows = transcript.rowsOf(known);
        expect(rows).toEqual(new Transcript().rowsOf(known));
        // A message adds to the end, or completes one call.
        const changed = before.filter((row, index) => rows[index] !== row);
        expect(changed.length).toBeLessThanOrEqual(1);
        before = rows;
      }
    }),
    settings,
  );
});

test("adjacent calls of one kind are one group, until something is said between them", () => {
  const messages = list(
    user("m"),
    agent("a", text("Look."), use("t1", "read"), use("t2", "grep")),
    result("t1"),
    result("t2"),
    agent("b", use("t3", "ls"), use("t4", "bash")),
    result("t3"),
    result("t4"),
    note("n"),
    agent("c", thinking("Hm."), use("t5", "bash")),
    stop("s"),
  );
  const rows = new Transcript().rowsOf(messages);
  expect(rows.map((row) => [row.kind, callsOf(row).map(({ id }) => id)])).toEqual([
    ["user", []],
    ["text", []],
    ["calls", ["t1", "t2", "t3"]],
    ["calls", ["t4"]],
    ["note", []],
    ["thinking", []],
    ["calls", ["t5"]],
    ["run_stop", []],
  ]);
});

test("the rows of an answer that is being written have the keys of the rows of its message", () => {
  const blocks = [
    { kind: "thinking" as const, index: 0, text: "Hm.", end: 3, hasGap: false },
    { kind: "text" as const, index: 1, text: "Yes.", end: 4, hasGap: false },
  ];
  const live = liveRowsOf({ requestId: "r-a", blocks });
  const stored = new Transcript().rowsOf(list(user("m"), agent("a", thinking("Hm."), text("Yes."))));
  expect(live.map(({ key }) => key)).toEqual(stored.slice(1).map(({ key }) => key));
  expect(live.map((row) => "isLive" in row && row.isLive)).toEqual([true, true]);
});
