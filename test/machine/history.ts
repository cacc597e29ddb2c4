/**
 * Owns: a conversation over many events, with the messages that it stores. Every step is checked: the message
 * chain that the provider demands, the sequence, the runs, and that one operation at most is in flight.
 */
import assert from "node:assert/strict";
import type { Context } from "../../machine/context.ts";
import { awaitedOperation, newConversation } from "../../machine/conversation.ts";
import type { Conversation, Mode, State, ToolCall } from "../../machine/conversation.ts";
import type { Operation, Stop } from "../../machine/effect.ts";
import type { ConversationEvent } from "../../machine/event.ts";
import type { Message } from "../../machine/message.ts";
import { isNextRunDue } from "../../machine/queue.ts";
import type { RejectionCode } from "../../machine/rejection.ts";
import { requestFailed, response, toolDone } from "./events.ts";
import { apply, outline, ROOT, type Step } from "./support.ts";
import { assertChange, assertValid } from "./valid.ts";

const both = (first: Step, second: Step): Step => ({
  ...second,
  messages: [...first.messages, ...second.messages],
  results: [...first.results, ...second.results],
  notices: [...first.notices, ...second.notices],
  orders: [...first.orders, ...second.orders],
});

export class History {
  readonly context: Context;
  readonly messages: Message[] = [];
  readonly steps: Step[] = [];
  conversation: Conversation;
  #events = 0;
  #lastRun: string | null = null;
  /** tool_use ids that no tool message has answered. */
  readonly #open = new Set<string>();
  readonly #callIds = new Set<string>();
  readonly #messageIds = new Set<string>();
  /** Requests, retry timers and tools that were ordered and neither answered nor aborted. */
  readonly #inFlight = new Set<string>();
  readonly #generations = new Set<string>();

  constructor(context: Context = ROOT, mode: Mode = "restricted") {
    this.context = context;
    this.conversation = newConversation(mode, 100_000);
  }

  get state(): State {
    return this.conversation.state;
  }

  get outline(): readonly string[] {
    return outline(this.messages);
  }

  /** tool_use ids of all stored messages. */
  get callIds(): ReadonlySet<string> {
    return this.#callIds;
  }

  /** Every generation id that was ever given out. */
  get generations(): ReadonlySet<string> {
    return this.#generations;
  }

  /** Gives an event. Returns its step, or the code of its rejection. */
  offer(event: ConversationEvent): Step | RejectionCode {
    const before = this.conversation;
    this.#events += 1;
    const step = apply(before, this.context, event, this.#events);
    if (typeof step === "string") return step;
    assertChange(before, step);
    assertValid(step.conversation, this.context);
    if (step.persists) this.#settle(event);
    for (const message of step.messages) this.#store(message);
    for (const order of step.orders) this.#follow(order, step.conversation);
    this.conversation = step.conversation;
    assert.equal(step.conversation.sequence, this.messages.length, "the sequence is the last message's");
    this.#checkRest();
    this.steps.push(step);
    return step;
  }

  /** Gives an event that must be accepted, and then, as the workflow does, starts the run that is due. */
  give(event: ConversationEvent): Step {
    const answer = this.offer(event);
    if (typeof answer === "string") return assert.fail(`refused: ${answer}`);
    return isNextRunDue(this.conversation) ? both(answer, this.give({ kind: "next_run_due" })) : answer;
  }

  /** The answer to the request that the state waits for. */
  respond(calls: readonly ToolCall[] = [], fields: Partial<ReturnType<typeof response>> = {}): Step {
    return this.give(response(calls, { requestId: this.#awaited(), ...fields }));
  }

  /** The end of the tool that the state waits for. */
  finishTool(text = "output"): Step {
    return this.give(toolDone(text, { operationId: this.#awaited() }));
  }

  /** The non-retryable failure of the request that the state waits for. */
  failRequest(): Step {
    return this.give(requestFailed({ requestId: this.#awaited(), retryable: false }));
  }

  #awaited(): string {
    return awaitedOperation(this.state) ?? assert.fail(`${this.state.kind} waits for no operation`);
  }

  /** Removes the operation that this outcome ends from those in flight. */
  #settle(event: ConversationEvent): void {
    if ("requestId" in event) this.#inFlight.delete(event.requestId);
    if (event.kind === "tool_completed") this.#inFlight.delete(event.operationId);
  }

  #follow(order: Stop | Operation, after: Conversation): void {
    switch (order.kind) {
      case "request_llm":
      case "request_continuation":
        this.#mustBeAnswered(order.kind);
        assert.ok(after.state.kind === "llm_requesting" || after.state.kind === "awaiting_continuation");
        assert.equal(after.state.requestId, order.requestId);
        this.#start(order.requestId);
        return;
      case "schedule_retry":
        this.#start(order.requestId);
        return;
      case "execute_tool":
        assert.equal(after.state.kind, "tool_executing");
        assert.ok(this.#open.has(order.call.id), "its call is stored and unanswered");
        this.#start(order.operationId);
        return;
      case "abort_request":
        this.#inFlight.delete(order.requestId);
        return;
      case "abort_tool":
        this.#inFlight.delete(order.operationId);
        return;
      case "spawn_sub_agent":
      case "cancel_sub_agent":
        return;
    }
  }

  #start(generation: string): void {
    assert.ok(!this.#generations.has(generation), "a generation id is new");
    assert.equal(this.#inFlight.size, 0, "one operation at a time");
    this.#generations.add(generation);
    this.#inFlight.add(generation);
  }

  #store(message: Message): void {
    assert.equal(message.sequence, this.messages.length + 1, "sequences have no gaps");
    assert.ok(!this.#messageIds.has(message.id), `message id ${message.id} is new`);
    this.#messageIds.add(message.id);
    this.messages.push(message);
    if (message.type === "user" && message.display.kind !== "steer") {
      assert.equal(this.#lastRun, null, "a root message comes between runs");
      this.#lastRun = message.id;
    }
    assert.equal(message.cycleId, this.#lastRun, "a message belongs to the run it falls into");
    if (message.type === "agent") for (const block of message.content) this.#openCall(block);
    if (message.type === "tool") {
      assert.ok(this.#open.delete(message.content[0].toolCallId), "a result answers one open call");
    }
    if (message.type === "run_stop") {
      this.#mustBeAnswered("run_stop");
      assert.notEqual(this.#lastRun, null, "a run_stop ends a run");
      this.#lastRun = null;
    }
  }

  #openCall(block: { readonly type: string; readonly [field: string]: unknown }): void {
    if (block.type !== "tool_use") return;
    const id = block["id"];
    assert.ok(typeof id === "string" && /^[a-zA-Z0-9_-]{1,64}$/.test(id), "a tool_use id is well formed");
    assert.ok(!this.#callIds.has(id), "a tool_use id is unique in the conversation");
    this.#callIds.add(id);
    this.#open.add(id);
  }

  #mustBeAnswered(before: string): void {
    assert.deepEqual([...this.#open], [], `every call is answered before ${before}`);
  }

  /** Between runs, every call is answered. The run in the value is the run in the messages. */
  #checkRest(): void {
    const { state, run } = this.conversation;
    assert.equal(this.#lastRun, run?.cycleId ?? null, "the run in the value is the run in the messages");
    if (run === null) this.#mustBeAnswered(state.kind);
  }
}
