/**
 * A corpus of conversations with the scripted model in the running system: for each, the API's cycles equal those of a
 * second, naive implementation. A fixed seed draws the events of each conversation; the test prints the counts.
 */
import { randomUUID } from "node:crypto";
import { expect, test } from "vitest";
import { hold } from "../../local/scripted/cues.ts";
import {
  answer,
  fail,
  say,
  thinking,
  toolCall,
  type Answer,
  type Part,
} from "../../local/scripted/script.ts";
import type { Cycle } from "../../machine/cycles.ts";
import type { Message } from "../../machine/message.ts";
import { hostSandbox } from "../support/host-sandbox.ts";
import { naiveCycles } from "../machine/cycles-naive.ts";
import { TestConversation } from "../support/conversation.ts";
import { startSystem } from "../support/system.ts";
import { bodyOf, startApiOn } from "./support.ts";

const CONVERSATIONS = 200;
const AT_ONCE = 8;
const SEED = 20_260_131;
const LEAST = 10;

const { available, reason } = await hostSandbox();
if (!available) console.warn(`SKIPPED, approvals in the corpus: ${reason ?? ""}`);

/** xorshift32: the same choices in every run. */
class Choices {
  #state: number;
  constructor(seed: number) {
    this.#state = seed;
  }
  below(limit: number): number {
    this.#state ^= this.#state << 13;
    this.#state ^= this.#state >>> 17;
    this.#state ^= this.#state << 5;
    return (this.#state >>> 0) % limit;
  }
  of<T>(items: readonly [T, ...T[]]): T {
    return items[this.below(items.length)] ?? items[0];
  }
}

const system = await startSystem();
const { get, send } = startApiOn(system);

/** One conversation and the next answers of its model. */
class Story {
  readonly conversation: TestConversation;
  readonly #answers: Answer[] = [];
  readonly #choose: Choices;
  #tag = "";

  private constructor(conversation: TestConversation, choose: Choices) {
    this.conversation = conversation;
    this.#choose = choose;
  }

  static async begin(choose: Choices): Promise<Story> {
    const made = await bodyOf(await send("POST", "/api/conversations", { cwd: system.cwd }));
    const story = new Story(new TestConversation(system, String(made["id"])), choose);
    story.#tag = system.model.script(
      story.conversation.id,
      () => story.#answers.shift() ?? say("And so on."),
    );
    return story;
  }

  async turn(): Promise<void> {
    const turns = ["plain", "plain", "steered", "followed", "cancelled", "failed", "asked"] as const;
    await this[this.#choose.of(turns)]();
  }

  async plain(): Promise<void> {
    await this.#run([...this.#rounds(), say("Done.")]);
  }

  /** The steer arrives in the middle of an answer, with or without calls after it; a run_stop may come between. */
  async steered(): Promise<void> {
    await this.#interject("steer", [...this.#rounds(), say("As you say.")]);
  }

  async followed(): Promise<void> {
    await this.#interject("followUp", [...this.#rounds(), say("And that.")]);
  }

  async cancelled(): Promise<void> {
    const { conversation } = this;
    if (this.#choose.below(2) === 0) {
      const held = hold();
      this.#answers.push(say("Half ", held));
      await this.#say();
      await held.reached;
    } else {
      this.#answers.push(answer([...this.#texts(), toolCall("bash", { command: "sleep 60" }), this.#call()]));
      await this.#say();
      await conversation.untilState("tool_executing");
    }
    if (this.#choose.below(2) === 0) await conversation.send("Wait.", { delivery: "steer" });
    await conversation.cancel();
    await this.#rest();
  }

  async failed(): Promise<void> {
    this.#answers.push(...this.#rounds(), fail("invalid_request_error"));
    await this.#say();
    await this.conversation.until(({ conversation: { state } }) => state.kind === "error");
  }

  async asked(): Promise<void> {
    const { mode } = (await this.conversation.stored()).conversation;
    if (mode === "unrestricted") return this.plain();
    const id = `toolu_${randomUUID().replaceAll("-", "")}`;
    const ask = toolCall("request_mode_upgrade", { reason: "to go on" }, id);
    this.#answers.push(answer([...this.#texts(), this.#call(), ask, this.#call()]), say("I see."));
    await this.#say();
    await this.conversation.untilState("awaiting_mode_approval");
    const decision = this.#choose.of(["approve", "deny"]);
    await send("POST", `/api/conversations/${this.conversation.id}/approval`, { decision, toolCallId: id });
    await this.#rest();
  }

  async #run(answers: readonly Answer[]): Promise<void> {
    this.#answers.push(...answers);
    await this.#say();
    await this.#rest();
  }

  async #interject(delivery: "steer" | "followUp", more: readonly Answer[]): Promise<void> {
    const held = hold();
    const calls = this.#choose.below(2) === 0 ? [] : [this.#call()];
    // After a call the run goes on; it has to end before the follow-up's run begins.
    const end = calls.length > 0 && delivery === "followUp" ? [say("Done.")] : [];
    this.#answers.push(say("Half ", held, "way.", ...calls), ...end, ...more);
    await this.#say();
    await held.reached;
    await this.conversation.send(`${delivery}!`, { delivery });
    held.release();
    await this.#rest();
  }

  async #say(): Promise<void> {
    await this.conversation.send(`go ${this.#tag}`);
  }

  async #rest(): Promise<void> {
    await this.conversation.until(
      ({ conversation: { state, queue } }) => state.kind === "idle" && queue.length === 0,
    );
  }

  #rounds(): Answer[] {
    return Array.from({ length: this.#choose.below(3) }, () =>
      answer([...this.#texts(), ...Array.from({ length: 1 + this.#choose.below(3) }, () => this.#call())]),
    );
  }

  #texts(): Part[] {
    return this.#choose.of<Part[]>([
      [],
      ["I look."],
      [thinking("Hm."), "So."],
      ["One.", this.#call(), "Two."],
    ]);
  }

  #call(): Part {
    return this.#choose.of([
      () => toolCall("ls", {}),
      () => toolCall("find", { pattern: "*" }),
      () => toolCall("bash", { command: "true" }),
      () => toolCall("bash", { command: "exit 1" }),
      () => toolCall("write", { path: "a", content: "x" }),
      () => toolCall("think", { thought: "Hm." }),
      () => toolCall("nothing", {}),
    ])();
  }
}

/** Counts of the kinds that the corpus has to contain. */
function countsOf(messages: readonly Message[]): Record<string, number> {
  const count = (holds: (message: Message) => boolean): number => messages.filter(holds).length;
  const results = messages.flatMap((message) => (message.type === "tool" ? [...message.content] : []));
  return {
    steer: count((message) => message.type === "user" && message.display.kind === "steer"),
    followUp: count((message) => message.type === "user" && message.display.kind === "followUp"),
    cancel: count(({ type, content }) => type === "run_stop" && content[0].reason === "interrupted"),
    error: count(({ type }) => type === "error"),
    approval: results.filter(({ name, status }) => name === "request_mode_upgrade" && status !== "cancelled")
      .length,
    "calls without a text": count(({ type, content }) => type === "agent" && content[0]?.type === "tool_use"),
  };
}

test(
  "the cycles of 200 conversations equal those of the naive implementation",
  { timeout: 300_000 },
  async () => {
    const choose = new Choices(SEED);
    const all: Message[] = [];
    let left = CONVERSATIONS;
    const tell = async (): Promise<void> => {
      while (left-- > 0) {
        // Drawn before the first await, so that concurrent conversations do not change the choices.
        const own = new Choices(1 + choose.below(2 ** 30));
        const story = await Story.begin(own);
        for (let turns = 1 + own.below(2); turns > 0; turns--) await story.turn();
        const messages = await story.conversation.messages();
        all.push(...messages);
        const expected = naiveCycles(messages);
        for (const view of ["steps", "rounds"] as const) {
          const path = `/api/conversations/${story.conversation.id}/cycles?limit=100&view=${view}`;
          const shown = (await bodyOf(await get(path))) as { cycles: Cycle[]; between: string[] };
          expect(shown.between).toEqual(expected.between);
          expect(shown.cycles).toEqual(expected.cycles.map((cycle) => cycle[view]));
        }
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, tell));
    const counts = countsOf(all);
    console.log(`corpus: ${CONVERSATIONS} conversations, ${all.length} messages: ${JSON.stringify(counts)}`);
    for (const [what, count] of Object.entries(counts)) {
      if (what !== "approval" || available)
        expect({ what, count }).toEqual({ what, count: Math.max(count, LEAST) });
    }
  },
);
