/** Every sentence of the section "Run stops and cycles" that is the transition's, and messages between runs. */
import { describe, expect, test } from "vitest";
import type { ConversationEvent } from "../../machine/event.ts";
import {
  cancel,
  downgrade,
  lost,
  requestFailed,
  response,
  restarted,
  say,
  summaryOf,
  toolDone,
} from "./events.ts";
import { History } from "./history.ts";
import {
  approving,
  call,
  continuing,
  conversationIn,
  exhausted,
  executing,
  idle,
  requesting,
  submitCall,
} from "./states.ts";
import { expectOutcome, inState, outline, ROOT, SUB_AGENT, textOf } from "./support.ts";

const noted: ConversationEvent = { kind: "noted", text: "A signal asked for something in vain." };
const seeded: ConversationEvent = {
  kind: "continued",
  seed: { source: "summary", text: "Summary of the conversation before." },
  queue: [],
};
const broken = requestFailed({ retryable: false });

describe("Reasons", () => {
  const last = (step: { readonly messages: Parameters<typeof outline>[0] }) => outline(step.messages).at(-1);

  test("a finished turn stores `completed`", () => {
    expect(last(expectOutcome(requesting(), response()))).toBe("run_stop completed");
  });
  test("a cancel and a restart store `interrupted`", () => {
    expect(last(expectOutcome(approving(), cancel()))).toBe("run_stop interrupted");
    expect(last(expectOutcome(executing(), restarted("idle")))).toBe("run_stop interrupted");
  });
  test("an error and a runaway store `error`", () => {
    expect(last(expectOutcome(requesting(), broken))).toBe("run_stop error");
    const tired = conversationIn(executing(), {
      run: { cycleId: "root", requests: 200, truncations: 0, reminders: 0, upgradeDenied: false },
    });
    expect(last(expectOutcome(tired, toolDone()))).toBe("run_stop error");
  });
  test("a continuation stores `completed` with its summary, `interrupted` when cancelled, `error` with the fallback", () => {
    expect(last(expectOutcome(continuing(), summaryOf("All said.")))).toBe("run_stop completed");
    expect(last(expectOutcome(continuing(), cancel()))).toBe("run_stop interrupted");
    const failure = requestFailed({ requestId: "summary", retryable: false });
    expect(last(expectOutcome(continuing(), failure))).toBe("run_stop error");
  });
  test("a sub-agent's end stores `completed` or `error`", () => {
    const submitted = response([submitCall("t1")]);
    expect(last(expectOutcome(requesting(), submitted, SUB_AGENT))).toBe("run_stop completed");
    expect(last(expectOutcome(requesting(), broken, SUB_AGENT))).toBe("run_stop error");
  });
});

describe("cycleId", () => {
  test("Every message and every `state.changed` carries the id of the root message of its run", () => {
    const history = new History();
    history.give(say("m1"));
    history.respond([call("t1")]);
    history.finishTool();
    history.respond();
    history.give(say("m2"));
    history.give(cancel());
    expect(history.messages.map(({ cycleId }) => cycleId)).toEqual(["m1", "m1", "m1", "m1", "m1", "m2"]);
    const told = history.steps.map((step) => {
      const notice = step.notices.at(-1);
      return notice?.name === "state.changed" ? notice.data.cycleId : "none";
    });
    expect(told).toEqual(["m1", "m1", "m1", "m1", "m2", "m2"]);
  });

  test("a downgrade in idle, a note and a seed belong to no cycle; a note within a run belongs to it", () => {
    const history = new History(ROOT, "unrestricted");
    for (const event of [seeded, noted, downgrade]) history.give(event);
    expect(history.outline).toEqual(["system", "note", "system"]);
    expect(history.messages.map(({ cycleId }) => cycleId)).toEqual([null, null, null]);
    history.give(say("m1"));
    history.give(noted);
    expect(history.messages.at(-1)?.cycleId).toBe("m1");
  });
});

describe("notes and seeds", () => {
  test("a note is for the person, a seed is for the model too; neither changes the state", () => {
    for (const state of [idle, requesting(), exhausted]) {
      const note = expectOutcome(state, noted);
      expect(note.state).toEqual(state);
      expect(note.messages).toMatchObject([{ type: "note", actor: "system" }]);
      expect(textOf(note.messages[0])).toBe("A signal asked for something in vain.");
      const seed = expectOutcome(state, seeded);
      expect(seed.messages).toMatchObject([{ type: "system", actor: "system" }]);
      expect(textOf(seed.messages[0])).toBe("Summary of the conversation before.");
      expect([...note.notices, ...note.orders, ...seed.notices, ...seed.orders]).toEqual([]);
    }
  });
});

describe("one tool after the other", () => {
  test("the result of an interrupted call tells the model what that means, and the round goes on", () => {
    const step = expectOutcome(
      executing({ remaining: [call("t2")] }),
      toolDone("half", { status: "interrupted", durationMs: 9 }),
    );
    expect(outline(step.messages)).toEqual(["tool t1 interrupted"]);
    expect(textOf(step.messages[0])).toContain("outcome is unknown");
    expect(textOf(step.messages[0])).not.toContain("half");
    expect(step.results[0]?.durationMs).toBe(9);
    expect(inState(step, "tool_executing").current.id).toBe("t2");
  });

  test("the outcome of another execution changes nothing", () => {
    const step = expectOutcome(executing(), toolDone("", { operationId: "other" }));
    expect(step.persists).toBe(false);
  });

  test("idle is announced once, when the stopped operation has ended, with the id of the run", () => {
    const history = new History();
    history.give(say("m1"));
    const { requestId } = inState(history, "llm_requesting");
    history.give(cancel());
    history.give(lost(requestId));
    history.give(lost(requestId));
    const idles = history.steps.flatMap(({ notices }) =>
      notices.filter((notice) => notice.name === "state.changed" && notice.data.state.kind === "idle"),
    );
    expect(idles).toEqual([{ name: "state.changed", data: { state: { kind: "idle" }, cycleId: "m1" } }]);
  });
});
