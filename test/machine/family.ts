/**
 * Owns: a model of a parent and its sub-agents. Each of them is the real machine, and messages between them arrive with
 * a delay (workflows/sub-agents.ts performs the same). Every step checks that a waiting parent has a sub-agent to wait
 * for, and that no sub-agent runs on without its parent.
 */
import assert from "node:assert/strict";
import { MAX_PARALLEL_SUB_AGENTS } from "../../machine/control-tools.ts";
import type { State, SubAgentOutcome, SubAgentTask } from "../../machine/conversation.ts";
import { outcomeOf } from "../../machine/outcome.ts";
import { cancel, restarted, say } from "./events.ts";
import { History } from "./history.ts";
import { contextOf, type Step } from "./support.ts";
import { type Chance, suitable } from "./walks.ts";

type Child = {
  /** null: ordered, and not started yet. */
  history: History | null;
  /** Its parent has asked it to stop, and it has not stopped yet. */
  stopping: boolean;
  /** Its outcome, until its parent has received it. */
  outcome: SubAgentOutcome | null;
  ended: boolean;
};

const NOT_STARTED: SubAgentOutcome = { error: "never began", errorKind: "interrupted" };

export class Family {
  readonly parent = new History(contextOf());
  readonly children = new Map<string, Child>();
  #events = 0;

  /** Performs one event, at the parent or at a sub-agent. */
  step(chance: Chance): void {
    this.#events += 1;
    const living = [...this.children].filter(([, child]) => !child.ended);
    const post = [...this.children].filter(([, child]) => child.outcome !== null);
    const deeds = [
      () => this.#moveParent(chance),
      ...living.map(
        ([id, child]) =>
          () =>
            this.#moveChild(id, child, chance),
      ),
      ...post.map(
        ([id, child]) =>
          () =>
            this.#deliver(id, child),
      ),
      () => this.#disturb(chance, living),
    ];
    deeds[chance.below(deeds.length)]?.();
    this.check();
  }

  /** Lets everything come to its end without further disturbance; fails when it does not. */
  rest(chance: Chance): void {
    for (let n = 0; n < 5_000; n++) {
      const child = [...this.children].find(([, { ended }]) => !ended);
      const post = [...this.children].find(([, { outcome }]) => outcome !== null);
      this.#events += 1;
      if (child !== undefined) this.#moveChild(...child, chance);
      else if (post !== undefined) this.#deliver(...post);
      else if (isResting(this.parent.state)) return;
      else this.#moveParent(chance);
      this.check();
    }
    assert.fail(`the parent does not come to rest: ${this.parent.state.kind}`);
  }

  check(): void {
    const { state } = this.parent;
    const waitsFor = "pending" in state ? state.pending.slice(0, MAX_PARALLEL_SUB_AGENTS) : [];
    if ("pending" in state) {
      assert.ok(waitsFor.length > 0, "the parent waits for somebody");
      assert.equal(state.pending.length + state.finished.length, state.all.length, "nobody is forgotten");
    }
    for (const { id } of waitsFor) {
      const child = this.children.get(id);
      assert.ok(child !== undefined, "who is waited for was ordered");
      assert.ok(
        !child.ended || child.outcome !== null,
        "who is waited for lives, or is about to be heard of",
      );
      assert.ok(state.kind !== "cancelling" || child.ended || child.stopping, "a cancel is everybody's");
    }
    const waited = new Set(waitsFor.map(({ id }) => id));
    for (const [id, child] of this.children) {
      if (!waited.has(id)) assert.ok(child.ended || child.stopping, "nobody is left behind");
    }
    const living = [...this.children.values()].filter(({ ended, stopping }) => !ended && !stopping);
    assert.ok(living.length <= MAX_PARALLEL_SUB_AGENTS, "at most so many at once");
  }

  #moveParent(chance: Chance): void {
    const { state } = this.parent;
    if ("pending" in state || isResting(state)) {
      if (isResting(state)) this.#give(say(`m${this.#events}`));
      return;
    }
    const event = suitable(this.parent, chance, this.#events);
    if (event !== null) this.#give(event);
  }

  #moveChild(id: string, child: Child, chance: Chance): void {
    if (child.history === null) {
      if (child.stopping) return this.#end(child, NOT_STARTED);
      child.history = new History(contextOf({ isSubAgent: true }));
      this.#follow(child, child.history.give({ kind: "task_given", messageId: `task-${id}`, task: "do it" }));
      return;
    }
    const isStopped = child.stopping && chance.in(0.5);
    const event = isStopped ? cancel({ by: "parent" }) : suitable(child.history, chance, this.#events);
    if (isStopped) child.stopping = false;
    if (event !== null) this.#tell(child, event);
    // A sub-agent that has not ended with its cancel is still stopping, for the checks.
    if (isStopped && !child.ended) child.stopping = true;
  }

  #deliver(id: string, child: Child): void {
    const { outcome } = child;
    if (outcome === null) return;
    child.outcome = null;
    this.#give({ kind: "sub_agent_finished", id, outcome });
  }

  #disturb(chance: Chance, living: readonly (readonly [string, Child])[]): void {
    const [id, child] = living[chance.below(Math.max(1, living.length))] ?? [null, null];
    const deeds: readonly (() => void)[] = [
      () => this.#give(cancel()),
      () => this.#give(say(`s${this.#events}`, { delivery: chance.pick("steer", "followUp") })),
      () => this.#restart(chance.pick("idle", "resume")),
      // Its timeout expires, or a person cancels this sub-agent alone.
      () => id !== null && this.#tell(child, cancel({ by: chance.pick("timeout", "user") })),
      // Its workflow was terminated: the row, loaded again, ends it.
      () => id !== null && this.#tell(child, restarted("idle")),
    ];
    deeds[chance.below(deeds.length)]?.();
  }

  /** The whole system restarts: the parent and every sub-agent get `restarted`. */
  #restart(policy: "idle" | "resume"): void {
    this.#give(restarted(policy));
    for (const child of this.children.values()) if (!child.ended) this.#tell(child, restarted(policy));
  }

  #tell(child: Child, event: Parameters<History["offer"]>[0]): void {
    if (child.history === null) return;
    const answer = child.history.offer(event);
    if (typeof answer !== "string") this.#follow(child, answer);
  }

  #give(event: Parameters<History["offer"]>[0]): void {
    const answer = this.parent.offer(event);
    if (typeof answer === "string") return;
    for (const order of answer.orders) {
      if (order.kind === "spawn_sub_agent") this.#order(order.subAgent);
      if (order.kind !== "cancel_sub_agent") continue;
      const child = this.children.get(order.id);
      assert.ok(child !== undefined, "who is stopped was ordered");
      if (!child.ended) child.stopping = true;
    }
  }

  #order({ id }: SubAgentTask): void {
    assert.ok(!this.children.has(id), "nobody is ordered twice");
    this.children.set(id, { history: null, stopping: false, outcome: null, ended: false });
  }

  #follow(child: Child, { state, orders }: Step): void {
    for (const { kind } of orders)
      assert.notEqual(kind, "spawn_sub_agent", "a sub-agent has none of its own");
    const outcome = outcomeOf(state);
    if (outcome !== null && !child.ended) this.#end(child, outcome);
  }

  #end(child: Child, outcome: SubAgentOutcome): void {
    assert.ok(!child.ended, "it ends once");
    child.ended = true;
    child.outcome = outcome;
  }
}

const isResting = ({ kind }: State): boolean =>
  kind === "idle" || kind === "error" || kind === "context_exhausted" || kind === "awaiting_mode_approval";
