/**
 * Owns: the virtual users of a run with hostile neighbours: ordinary ones, which must not be affected, and neighbours,
 * which attack.
 */
import { setTimeout as pause } from "node:timers/promises";
import { toolCall, say, type Answer } from "../local/scripted/script.ts";
import type { MessagesRequest } from "../local/scripted/messages.ts";
import type { Product } from "../test/support/product.ts";
import { Talk } from "../test/support/talk.ts";
import { gainOf } from "./hostile-commands.ts";
import { commandsIn } from "./leftovers.ts";
import { directiveText } from "./model.ts";
import { unlessStuck } from "./stuck-detector.ts";
import type { Chapter } from "./virtual-user.ts";
import type { Round } from "./plan.ts";
import type { Random } from "./random.ts";

/** Names of the model's scripts: for users that may write, for users that may not, and for attacking neighbours. */
export const SCRIPTS = { free: "free", restricted: "restricted", neighbour: "neighbour" } as const;

/** Milliseconds between two turns of an ordinary conversation. */
const THINKING_MS = [6_000, 20_000] as const;
/** Milliseconds for which a tree that stops its supervisor runs before it is stopped. */
const STOPPED_AFTER_MS = 3_000;
const AT_REST = ["idle", "error", "awaiting_mode_approval"];
const isAtRest = ({ kind }: { readonly kind: string }): boolean => AT_REST.includes(kind);

export type Asked = { readonly id: string; readonly calls: number };

export class Ordinary {
  readonly talk: Talk;
  readonly asked: Asked[] = [];
  readonly accepted: Chapter["accepted"] = [];
  readonly mode: "free" | "restricted";
  readonly #chance: Random;

  private constructor(talk: Talk, mode: "free" | "restricted", chance: Random) {
    this.talk = talk;
    this.mode = mode;
    this.#chance = chance;
  }

  static async open(product: Product, mode: "free" | "restricted", chance: Random, cwd: string) {
    const talk = await (mode === "free" ? Talk.open(product, cwd) : Talk.create(product, cwd));
    return new Ordinary(talk, mode, chance);
  }

  /** Performs turn after turn until the signal; waits for the last one. */
  async live(over: AbortSignal): Promise<void> {
    const think = (): Promise<unknown> =>
      pause(this.#chance.integer(...THINKING_MS), null, { signal: over }).catch(() => null);
    await pause(this.#chance.integer(0, THINKING_MS[1]));
    while (!over.aborted) {
      await this.#turn();
      await think();
    }
  }

  async #turn(): Promise<void> {
    const id = `${this.talk.id.slice(-6)}n${this.asked.length}`;
    const round = (): Round =>
      Array.from({ length: this.#chance.integer(1, 2) }, () => this.#chance.integer(50, 800));
    const rounds = Array.from({ length: this.#chance.integer(1, 3) }, round);
    this.asked.push({ id, calls: rounds.flat().length });
    const directive = directiveText({ kind: "tools", id, place: 0, rounds });
    const { status, body } = await this.talk.send(`[[script:${SCRIPTS[this.mode]}]] ${directive}`);
    if (status !== 202) throw new Error(`${this.talk.id}: a message got ${status} ${JSON.stringify(body)}`);
    this.accepted.push({ id: String(body["messageId"]), delivery: "direct" });
    await unlessStuck(this.talk, this.talk.untilState(isAtRest));
  }
}

const RUN = /\[\[run (\{.*?\})\]\]/gs;

/** Runs the command in the last message; without one, ends the turn. */
export function answerNeighbour({ messages }: MessagesRequest): Answer {
  const content = messages.at(-1)?.content ?? "";
  const blocks = typeof content === "string" ? [{ type: "text" as const, text: content }] : content;
  const texts = blocks.flatMap((block) => (block.type === "text" ? [block.text] : []));
  const command = [...texts.join("").matchAll(RUN)].at(-1)?.[1];
  return command === undefined
    ? say("Well.")
    : say("Let me see. ", toolCall("bash", JSON.parse(command) as { command: string }));
}

export class Neighbour {
  /** Its forbidden gains. */
  readonly gains: string[] = [];
  turns = 0;
  /** The result of its last command. */
  said = "";
  readonly #product: Product;
  readonly #cwd: string;
  readonly #mode: "free" | "restricted";

  /** @param cwd a folder of its own: all processes in it belong to this neighbour */
  constructor(product: Product, mode: "free" | "restricted", cwd: string) {
    this.#product = product;
    this.#mode = mode;
    this.#cwd = cwd;
  }

  /** Runs one attack after the other, again and again, each to its end. */
  async attack(commands: readonly string[], over: AbortSignal): Promise<void> {
    const talk = await this.#open();
    for (let n = 0; !over.aborted; n++) {
      const command = commands[n % commands.length] ?? "true";
      await this.#say(talk, `[[run ${JSON.stringify({ command })}]]`);
      await this.#rest(talk);
      const results = (await talk.messages()).filter(({ type }) => type === "tool");
      this.said = JSON.stringify(results.at(-1)?.content ?? null);
      const gain = gainOf(this.said);
      if (gain !== null) this.gains.push(gain);
    }
    talk.close();
  }

  /** Stops its command after a while; none of its processes may then be alive. */
  async attackAndStop(command: string, over: AbortSignal): Promise<void> {
    const talk = await this.#open();
    while (!over.aborted) {
      await this.#say(talk, `[[run ${JSON.stringify({ command })}]]`);
      await pause(STOPPED_AFTER_MS);
      await talk.cancel();
      await this.#rest(talk);
      const alive = commandsIn(this.#cwd).length;
      if (alive > 0) this.gains.push(`at rest after a Stop, and ${alive} of its processes were alive`);
    }
    talk.close();
  }

  /** @returns when its command runs, or has already ended */
  async begin(command: string): Promise<void> {
    const talk = await this.#open();
    await this.#say(talk, `[[run ${JSON.stringify({ command })}]]`);
    const rested = new AbortController();
    void talk.untilState(isAtRest).then(() => rested.abort());
    while (!rested.signal.aborted && commandsIn(this.#cwd).length === 0) await pause(1);
    talk.close();
  }

  /** Sends a tag to which the hostile provider answers badly. */
  async provoke(tag: string, over: AbortSignal): Promise<void> {
    while (!over.aborted) {
      const talk = await this.#open();
      await this.#say(talk, tag);
      await this.#rest(talk, over);
      talk.close();
    }
  }

  #open(): Promise<Talk> {
    return this.#mode === "free"
      ? Talk.open(this.#product, this.#cwd)
      : Talk.create(this.#product, this.#cwd);
  }

  async #say(talk: Talk, text: string): Promise<void> {
    this.turns++;
    await talk.send(`[[script:${SCRIPTS.neighbour}]] ${text}`);
  }

  /** Waits for rest. An attack may take long or end in an error; this does not wait longer than the run takes. */
  async #rest(talk: Talk, over?: AbortSignal): Promise<void> {
    const rested = talk.untilState(isAtRest);
    await unlessStuck(talk, over === undefined ? rested : Promise.race([rested, untilAborted(over)]));
  }
}

const untilAborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener("abort", () => resolve(), { once: true });
  });
