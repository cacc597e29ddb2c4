/** A workflow's rejection becomes a problem with the same code and what a client needs next (docs/http.md, Errors). */
import { expect, test } from "vitest";
import { PROBLEMS } from "../../api/problem.ts";
import { rejectionProblem } from "../../api/rejection.ts";
import type { State } from "../../machine/conversation.ts";
import type { UpdateRejection } from "../../protocol/workflow.ts";
import { problemOf } from "./support.ts";

const message = "It cannot be done now. Try something else.";
const idle: State = { kind: "idle" };
const requesting: State = { kind: "llm_requesting", attempt: 1, lost: 0, requestId: "r", retry: null };
const since = "2026-01-01T00:00:00.000Z";
const cancelling: State = { kind: "cancelling", since, by: "user", stopping: "request", requestId: "r" };
const toolCall = { id: "toolu_1", name: "request_mode_upgrade", input: {} };
const round = { remaining: [], completed: [] };
const asking: State = { kind: "awaiting_mode_approval", reason: "to write", toolCall, ...round };
const tokens = { inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, cacheCreationTokens: 0 };
const exhausted: State = {
  kind: "context_exhausted",
  summary: "In short.",
  source: "model",
  finalUsage: tokens,
};
const startAnew = {
  method: "POST",
  path: "/api/conversations",
  body: { continuedFrom: { id: "c1", seed: true } },
};

/** Each code with the state at its rejection and the members of its document. */
const REFUSALS: { readonly [Code in UpdateRejection["code"]]: readonly [State, object] } = {
  agent_busy: [requesting, { state: requesting, cancel: "/api/conversations/c1/cancel" }],
  cancellation_in_progress: [cancelling, { state: cancelling, cancel: "/api/conversations/c1/cancel" }],
  context_exhausted: [exhausted, { state: exhausted, summary: "In short.", startAnew }],
  sub_agent_read_only: [idle, { state: idle }],
  no_pending_approval: [idle, { state: idle }],
  approval_mismatch: [asking, { state: asking, pendingToolCallId: "toolu_1" }],
  sandbox_unavailable: [idle, { requirements: expect.stringContaining("Landlock") as string }],
  sandbox_unknown: [idle, {}],
  already_delivered: [idle, { state: idle }],
  nothing_to_summarise: [idle, { state: idle }],
  queue_full: [requesting, { state: requesting }],
  not_found: [idle, { state: idle }],
  invalid_request: [idle, { errors: [{ path: "", message }] }],
};

test.each(Object.entries(REFUSALS))("%s becomes its problem document", async (name, [state, members]) => {
  const code = name as UpdateRejection["code"];
  const document = await problemOf(rejectionProblem({ code, message, state }, "c1").toResponse());
  expect(document).toEqual({
    type: `urn:bedrock:problem:${code}`,
    title: PROBLEMS[code].title,
    status: PROBLEMS[code].status,
    code,
    detail: message,
    ...members,
  });
});

test("while the summary is written the problem does not offer a cancel, which would lose it", async () => {
  const state: State = {
    kind: "awaiting_continuation",
    rejectedToolCalls: [],
    triggerUsage: tokens,
    attempt: 1,
    lost: 0,
    requestId: "r",
    retry: null,
  };
  const problem = rejectionProblem({ code: "agent_busy", message, state }, "c1");
  expect(await problemOf(problem.toResponse())).not.toHaveProperty("cancel");
});
