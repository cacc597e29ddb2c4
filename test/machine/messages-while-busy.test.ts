/** Every cell of the table "Messages while busy", named state | delivery | answer, and the sentences below it. */
import { describe, expect, test } from "vitest";
import type { State } from "../../machine/conversation.ts";
import type { Delivery } from "../../machine/message.ts";
import type { RejectionCode } from "../../machine/rejection.ts";
import { say } from "./events.ts";
import {
  approving,
  awaitingChildren,
  awaitingLlm,
  cancellingChildren,
  cancellingRequest,
  cancellingTool,
  continuing,
  conversationIn,
  errorState,
  EVERY_STATE,
  executing,
  exhausted,
  idle,
  requesting,
  RETRY,
} from "./states.ts";
import {
  apply,
  contextOf,
  expectOutcome,
  expectReject,
  inState,
  orderKinds,
  outline,
  ROOT,
  SUB_AGENT,
} from "./support.ts";

type Cell = "starts" | "waits" | RejectionCode;
type Row = { readonly states: readonly State[]; readonly cells: { readonly [D in Delivery]: Cell } };

const ROWS: readonly Row[] = [
  {
    states: [idle, errorState],
    cells: { direct: "starts", steer: "starts", followUp: "starts" },
  },
  {
    states: [
      requesting(),
      requesting({ attempt: 2, retry: RETRY }),
      executing(),
      awaitingChildren(2),
      approving(),
    ],
    cells: { direct: "agent_busy", steer: "waits", followUp: "waits" },
  },
  {
    states: [cancellingRequest, cancellingTool(), cancellingChildren(2)],
    cells: { direct: "cancellation_in_progress", steer: "cancellation_in_progress", followUp: "waits" },
  },
  {
    states: [continuing()],
    cells: { direct: "agent_busy", steer: "agent_busy", followUp: "agent_busy" },
  },
  {
    states: [exhausted],
    cells: { direct: "context_exhausted", steer: "context_exhausted", followUp: "context_exhausted" },
  },
];

const DELIVERIES: readonly Delivery[] = ["direct", "steer", "followUp"];
const CELLS = ROWS.flatMap(({ states, cells }) =>
  states.flatMap((state) =>
    DELIVERIES.map((delivery) => ({ kind: state.kind, delivery, cell: cells[delivery], state })),
  ),
);
const IMAGE = { type: "image", hash: "ab", mediaType: "image/png", width: 2, height: 1 } as const;

describe("Messages while busy", () => {
  test.for(CELLS.filter(({ cell }) => cell === "starts"))(
    "$kind | $delivery | starts as direct",
    ({ state, delivery }) => {
      const step = expectOutcome(state, say("m1", { delivery, images: [IMAGE] }));
      expect(outline(step.messages)).toEqual(["direct m1"]);
      expect(step.messages[0]?.content).toEqual([{ type: "text", text: "text of m1" }, IMAGE]);
      expect(inState(step, "llm_requesting").attempt).toBe(1);
      expect(orderKinds(step)).toEqual(["request_llm"]);
    },
  );

  test.for(CELLS.filter(({ cell }) => cell === "waits"))(
    "$kind | $delivery | pending or queued",
    ({ state, delivery }) => {
      const step = expectOutcome(state, say("m1", { delivery, images: [IMAGE] }));
      const queue = [
        {
          messageId: "m1",
          delivery,
          text: "text of m1",
          images: [IMAGE],
          createdAt: "2025-01-01T00:00:01.000Z",
        },
      ];
      expect(step.conversation).toEqual({ ...conversationIn(state), queue });
      expect(step.notices).toEqual([{ name: "queue.changed", data: { queue, queueHeld: null } }]);
      expect(step.orders).toEqual([]);
    },
  );

  test.for(CELLS.filter(({ cell }) => cell !== "starts" && cell !== "waits"))(
    "$kind | $delivery | $cell",
    ({ state, delivery, cell }) => {
      if (cell === "starts" || cell === "waits") return;
      expectReject(state, say("m1", { delivery }), cell);
    },
  );

  // An internal step that no conversation stays in. Its cells hold nevertheless.
  test("awaiting_llm | direct | agent_busy", () => {
    expectReject(awaitingLlm, say(), "agent_busy");
  });
  test.for(["steer", "followUp"] as const)("awaiting_llm | %s | pending or queued", (delivery) => {
    const step = apply(conversationIn(awaitingLlm), ROOT, say("m1", { delivery }), 1);
    if (typeof step === "string") return expect.fail(step);
    expect(step.conversation.queue).toMatchObject([{ messageId: "m1", delivery }]);
  });

  test.for(
    EVERY_STATE.flatMap((state) => DELIVERIES.map((delivery) => ({ kind: state.kind, delivery, state }))),
  )("any state of a sub-agent | $delivery | sub_agent_read_only: $kind", ({ state, delivery }) => {
    const reject = expectReject(state, say("m1", { delivery }), "sub_agent_read_only", SUB_AGENT);
    expect(reject.message).toContain("parent conversation");
  });

  test.for(["completed", "failed"] as const)("%s takes no message, even outside a sub-agent", (kind) => {
    const state = EVERY_STATE.find((found) => found.kind === kind) ?? idle;
    expectReject(state, say(), "agent_busy", contextOf());
  });
});

describe("a message's content", () => {
  test("an empty text with images stores the images alone", () => {
    const step = expectOutcome(idle, say("m1", { text: "", images: [IMAGE] }));
    expect(step.messages[0]?.content).toEqual([IMAGE]);
  });
});
