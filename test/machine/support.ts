/**
 * Owns: contexts, stamps, and the application of an event, which checks everything that holds for every transition.
 */
import { expect } from "vitest";
import { DEFAULT_LIMITS, type Context, type Limits } from "../../machine/context.ts";
import type { Conversation, State, StateOf } from "../../machine/conversation.ts";
import type { Notice, Operation, Stop } from "../../machine/effect.ts";
import type { ConversationEvent, Event } from "../../machine/event.ts";
import type { Stamp } from "../../machine/ids.ts";
import type { Message, MessageBody, ToolOutcome } from "../../machine/message.ts";
import type { Rejection, RejectionCode } from "../../machine/rejection.ts";
import { transition, type Transition } from "../../machine/transition.ts";
import { conversationIn } from "./states.ts";
import { assertChange, assertValid, deepFreeze } from "./valid.ts";

export const START = Date.UTC(2025, 0, 1);

/** The `n`th stamp of a test; different seeds, one second apart. */
export function stamp(n: number): Stamp {
  const hex = n.toString(16).padStart(12, "0");
  return { at: START + n * 1_000, seed: `${hex.slice(4)}-${hex.slice(0, 4)}-4000-8000-${hex}` };
}

const ROOT_TOOLS = ["bash", "read", "ls", "write", "edit", "patch", "request_mode_upgrade", "spawn_agents"];
const SUB_AGENT_TOOLS = ["bash", "read", "ls", "write", "edit", "patch", "submit_result"];

export function contextOf(change: Partial<Context> = {}): Context {
  const isSubAgent = change.isSubAgent ?? false;
  const tools = isSubAgent ? SUB_AGENT_TOOLS : ROOT_TOOLS;
  return {
    isSubAgent,
    contextWindow: 100_000,
    tools,
    limits: DEFAULT_LIMITS,
    ...change,
  };
}

export const ROOT = contextOf();
export const SUB_AGENT = contextOf({ isSubAgent: true });
export const limited = (limits: Partial<Limits>, context = ROOT): Context => ({
  ...context,
  limits: { ...DEFAULT_LIMITS, ...limits },
});

/** The result of an event that was not rejected. */
export type Step = {
  readonly conversation: Conversation;
  readonly state: State;
  /** There is something to commit. */
  readonly persists: boolean;
  readonly messages: readonly Message[];
  /** The outcomes in the stored tool messages. */
  readonly results: readonly ToolOutcome[];
  readonly notices: readonly Notice[];
  /** The stops, followed by the operations to start. */
  readonly orders: readonly Order[];
};

export function stepOf(before: Conversation, answer: Exclude<Transition, { kind: "rejected" }>): Step {
  const nothing = { conversation: before, messages: [], notices: [], start: [], stop: [] };
  const persists = answer.kind === "accepted";
  const { conversation, messages, notices, start, stop } = persists ? answer : nothing;
  return {
    conversation,
    state: conversation.state,
    persists,
    messages,
    results: messages.flatMap((message) => (message.type === "tool" ? [...message.content] : [])),
    notices,
    orders: [...stop, ...start],
  };
}

export const at = (event: ConversationEvent, n = 1): Event => ({ ...event, stamp: stamp(n) });

/** Applies an event, the `n`th of its test. Returns its step, or the code of its rejection. */
export function apply(
  before: Conversation,
  context: Context,
  event: ConversationEvent,
  n: number,
): Step | RejectionCode {
  const answer = transition(before, context, at(event, n));
  return answer.kind === "rejected" ? answer.rejection.code : stepOf(before, answer);
}

/** Applies an event that must be accepted. */
export function expectOutcome(
  before: Conversation | State,
  event: ConversationEvent,
  context: Context = ROOT,
  n = 1,
): Step {
  const conversation = deepFreeze("kind" in before ? conversationIn(before) : before);
  const answer = transition(conversation, deepFreeze(context), deepFreeze(at(event, n)));
  if (answer.kind === "rejected") return expect.fail(`refused: ${answer.rejection.code}`);
  const step = stepOf(conversation, answer);
  assertChange(conversation, step);
  assertValid(step.conversation, context);
  return step;
}

/** Applies an event that must be rejected with this code. */
export function expectReject(
  before: Conversation | State,
  event: ConversationEvent,
  code: RejectionCode,
  context: Context = ROOT,
): Rejection {
  const conversation = deepFreeze("kind" in before ? conversationIn(before) : before);
  const answer = transition(conversation, deepFreeze(context), deepFreeze(at(event)));
  if (answer.kind !== "rejected") return expect.fail(`${answer.kind}; expected ${code}`);
  expect(answer.rejection.code).toBe(code);
  expect(answer.rejection.message).toMatch(/^[A-Z0-9].*\.$/su);
  return answer.rejection;
}

/** Applies an event that must be accepted and must change nothing. */
export function expectNothing(
  before: Conversation | State,
  event: ConversationEvent,
  context: Context = ROOT,
): void {
  const conversation = "kind" in before ? conversationIn(before) : before;
  const step = expectOutcome(conversation, event, context);
  expect(step.persists).toBe(false);
  expect(step.conversation).toEqual(conversation);
}

/** `type` of each stored message, a tool's with its status, a run_stop's with its reason. */
export const outline = (messages: readonly Message[]): readonly string[] => messages.map(outlineOf);

function outlineOf(message: Message): string {
  switch (message.type) {
    case "tool":
      return `tool ${message.content[0].toolCallId} ${message.content[0].status}`;
    case "run_stop":
      return `run_stop ${message.content[0].reason}`;
    case "user":
      return `${message.display.kind} ${message.id}`;
    case "error":
      return `error ${message.content[0].errorKind}`;
    case "agent":
    case "system":
    case "note":
    case "continuation":
      return message.type;
  }
}

/** All text of a message's content. */
export function textOf(message: MessageBody | undefined): string {
  if (message === undefined) return "";
  const blocks = message.type === "tool" ? message.content[0].output : message.content;
  return blocks
    .flatMap((block) => Object.entries(block))
    .flatMap(([name, value]) =>
      ["text", "summary", "message"].includes(name) && typeof value === "string" ? [value] : [],
    )
    .join("\n");
}

export const orderKinds = (step: Step): readonly string[] => step.orders.map(({ kind }) => kind);
export const noticeNames = (step: Step): readonly string[] => step.notices.map(({ name }) => name);

type Order = Stop | Operation;

/** The one order of this kind. */
export function orderOf<K extends Order["kind"]>(step: Step, kind: K): Extract<Order, { kind: K }> {
  const found = step.orders.filter((order): order is Extract<Order, { kind: K }> => order.kind === kind);
  const [first] = found;
  expect(found).toHaveLength(1);
  return first ?? expect.fail(`no ${kind}`);
}

/** The value, which must be of this kind. */
export function inState<K extends State["kind"]>(step: { readonly state: State }, kind: K): StateOf<K> {
  const { state } = step;
  const is = (value: State): value is StateOf<K> => value.kind === kind;
  return is(state) ? state : expect.fail(`state is ${state.kind}, not ${kind}`);
}
