/**
 * Owns: a virtual user that goes through the turns of a plan over HTTP, whatever happens meanwhile. It remembers the
 * accepted messages and the outcome of each turn. For a Stop it notes whether anything was still alive when idle was
 * announced.
 */
import { randomUUID } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import { isDead } from "../test/support/processes.ts";
import type { Served } from "../test/support/product.ts";
import { Talk, type Heard, type Shown } from "../test/support/talk.ts";
import { sentImage } from "../test/support/images.ts";
import { directiveText, doneWith, SCRIPT, type Places } from "./model.ts";
import type { Pace } from "./pace.ts";
import { unlessStuck } from "./stuck-detector.ts";
import { toPerson } from "../machine/wording.ts";
import type { Plan, StopQueue, Turn } from "./plan.ts";
import type { Scene } from "./scene.ts";

export type Accepted = {
  readonly id: string;
  readonly delivery: "direct" | "steer" | "followUp";
  /**
   * It may be there or not: a Stop was to drop it, or it went along into the next chapter. Either may have been lost
   * with Temporal's database.
   */
  readonly dropped?: true;
};

/** A conversation and its accepted messages, in order. A continued conversation is followed by another chapter. */
export type Chapter = { readonly talk: Talk; readonly accepted: Accepted[] };

/**
 * The intended outcomes of turns. A turn may also end in an error, as when the provider cannot be reached three times:
 * `failed`. An `interrupted` turn was ended by a restart: its virtual user asks again.
 */
export const OUTCOMES = [
  ...(["text", "tools", "steer", "sub_agents", "image"] as const),
  ...(["approved", "denied", "continued"] as const),
] as const;

/** The outcome of a Stop that met a message that waits. */
export const stoppedWith = (queue: StopQueue): string => `stopped, ${queue}`;

const RESTING = ["idle", "error", "context_exhausted", "awaiting_mode_approval"];
/** How often a virtual user repeats a request, also one for more rights, when a fault got in the way. */
const ASKED_AT_MOST = 5;

type UserPlan = Plan["conversations"][number];

export class VirtualUser {
  readonly chapters: Chapter[] = [];
  /** Sentences about what must never happen. */
  readonly complaints: string[] = [];
  /** One of OUTCOMES for each turn, or of `stoppedWith`, or `failed`. */
  readonly outcomes: string[] = [];
  /** How often a restart has interrupted a turn. */
  interruptions = 0;
  readonly #product: Served;
  readonly #stuckAfterMs: number;
  readonly #plan: UserPlan;
  readonly #places: Places;
  readonly #pace: Pace;
  readonly #restarts: Scene["restarts"];

  constructor({ product, restarts, stuckAfterMs }: Scene, plan: UserPlan, places: Places, pace: Pace) {
    this.#product = product;
    this.#stuckAfterMs = stuckAfterMs;
    this.#plan = plan;
    this.#places = places;
    this.#pace = pace;
    this.#restarts = restarts;
  }

  get talk(): Talk {
    const chapter = this.chapters.at(-1);
    if (chapter === undefined) throw new Error("nothing was begun");
    return chapter.talk;
  }

  /** Begins a conversation, before the first fault. */
  async arrive(): Promise<void> {
    const { toolHosts } = this.#product;
    const host = toolHosts[this.#plan.number % toolHosts.length];
    const talk = await (this.#plan.restricted
      ? Talk.create(this.#product, this.#places.cwd, host)
      : Talk.open(this.#product, this.#places.cwd, "unrestricted", host));
    this.chapters.push({ talk, accepted: [] });
  }

  async live(): Promise<void> {
    for (const turn of this.#plan.turns) {
      await this.#pace.turn(turn.place);
      this.outcomes.push(await this.#persist(turn));
    }
  }

  /** Sends a last message, which shows whether the conversation can go on. */
  async sayLastWord(): Promise<void> {
    if ((await this.#rest()) === "context_exhausted") return;
    const outcome = await this.#go({ kind: "text", id: "last", place: 0, words: 1 });
    if (outcome !== "text") this.#complain(`the last message ended in ${(await this.talk.state()).kind}`);
  }

  /** Asks again, under another id, for what a restart has interrupted. */
  async #persist(turn: Turn): Promise<string> {
    for (let n = 0; ; n++) {
      const outcome = await this.#go(n === 0 ? turn : { ...turn, id: `${turn.id}r${n}` });
      this.interruptions += Number(outcome === "interrupted");
      if (outcome !== "interrupted" || n === ASKED_AT_MOST) return outcome;
    }
  }

  async #go(turn: Turn): Promise<string> {
    switch (turn.kind) {
      case "text":
      case "tools":
      case "sub_agents":
        await this.#say(directiveText(turn));
        return this.#finish(turn);
      case "image":
        await this.#say(directiveText(turn), {
          images: [await sentImage("png", { seed: turn.place + 1 })],
        });
        return this.#finish(turn);
      case "steer":
        await this.#say(directiveText(turn));
        await this.#say("Mind the time.", { delivery: "steer" });
        if (turn.followUp) await this.#say("And thank you.", { delivery: "followUp" });
        return this.#finish(turn);
      case "approval":
        return this.#ask(turn);
      case "stop":
        return this.#stop(turn);
      case "continuation":
        return this.#continue(turn);
    }
  }

  /** Waits for the end of a turn: either it is done, or an error says that it is not. */
  async #finish({ id, kind }: Turn): Promise<string> {
    const state = await this.#rest();
    if (state === "error") return "failed";
    const said = JSON.stringify(await this.talk.messages());
    if (state === "idle" && said.includes(doneWith(id))) return kind;
    if (state === "idle" && this.#wasInterrupted(id, said)) return "interrupted";
    this.#complain(`turn ${id} (${kind}) came to ${state} without its end`);
    return kind;
  }

  /** True if the conversation has a note of a restart after the turn's message. */
  #wasInterrupted(id: string, said: string): boolean {
    const asked = JSON.stringify(`"id":"${id}"`).slice(1, -1);
    return this.#restarts.count > 0 && said.lastIndexOf(toPerson.restarted) > said.lastIndexOf(asked);
  }

  async #ask(turn: Extract<Turn, { kind: "approval" }>): Promise<string> {
    await this.#say(directiveText(turn));
    if ((await this.#rest()) !== "awaiting_mode_approval") return this.#finish(turn);
    await pause(turn.thinkMs);
    const { toolCall } = (await this.talk.state()) as unknown as {
      readonly toolCall: { readonly id: string };
    };
    await this.#untilShown(async () => {
      const { status, body } = await this.talk.decide(toolCall.id, turn.decision);
      // The first answer may have been lost.
      if (status !== 202 && body["code"] !== "no_pending_approval")
        this.#complain(`a decision got ${status} ${String(body["code"])}`);
      return () => this.#until(({ kind }) => kind !== "awaiting_mode_approval");
    });
    const outcome = await this.#finish(turn);
    const isFree = (await this.talk.read())["mode"] === "unrestricted";
    if (isFree !== (turn.decision === "approve")) this.#complain(`turn ${turn.id}: decided, and not so`);
    if (outcome === "failed" || (outcome === "interrupted" && !isFree)) return outcome;
    return isFree ? "approved" : "denied";
  }

  async #cancel(queue: StopQueue, later: string): Promise<void> {
    const { status } = await this.talk.cancel(queue);
    if (status !== 202) this.#complain(`a cancel got ${status}`);
    const chapter = this.chapters.at(-1);
    const place = chapter?.accepted.findIndex(({ id }) => id === later) ?? -1;
    if (queue === "clear" && place !== -1)
      chapter?.accepted.splice(place, 1, { id: later, delivery: "followUp", dropped: true });
  }

  /** A follow-up that waited at a Stop starts a run: by itself, or when it is released. One that was lost never does. */
  async #untilDelivered(id: string, queue: "run" | "hold"): Promise<void> {
    const { talk } = this;
    await this.#repeatedly(async () => {
      if ((await talk.messages()).some((message) => message.id === id)) return true;
      const { state, queueHeld } = (await talk.read()) as unknown as Shown & { queueHeld: string | null };
      // A restart holds the queue, too; a first Stop may have been lost with Temporal's database.
      const isHeld = queueHeld !== null && RESTING.includes(state.kind);
      if (isHeld && queue === "run" && this.#restarts.count === 0)
        this.#complain(`the queue is held (${queueHeld}) after a Stop that said otherwise`);
      if (isHeld) await talk.release();
      return null;
    });
  }

  async #stop(turn: Extract<Turn, { kind: "stop" }>): Promise<string> {
    const { talk } = this;
    const pidsFile = this.#places.pidsOf(turn.id);
    const pids = (): number[] =>
      existsSync(pidsFile)
        ? readFileSync(pidsFile, "utf8").trim().split(/\s+/).filter(Boolean).map(Number)
        : [];
    const id = randomUUID();
    let isMine = false;
    // The moment when the client receives the state of rest, after it has received this message.
    const announced = talk
      .next((event) => {
        isMine ||= event.name === "message.added" && event.data["id"] === id;
        return isMine && isRest(event);
      })
      .then(() => pids().filter((pid) => !isDead(pid)));
    await this.#say(directiveText(turn), { id });
    const resting = this.#rest();
    // The turn may have been interrupted before its command ran.
    while (pids().length < 3 && !(await isSettled(resting))) await pause(50);
    const isRunning = !(await isSettled(resting));
    const later = randomUUID();
    if (isRunning) await this.#say("And thank you.", { id: later, delivery: "followUp" });
    await this.#cancel(turn.queue, later);
    await resting;
    const alive = await this.#unlessStuck(announced);
    if (alive.length > 0) this.#complain(`at rest, and ${alive.join(", ")} alive`);
    if (isRunning && turn.queue !== "clear") await this.#untilDelivered(later, turn.queue);
    await this.#rest();
    if (isRunning) return stoppedWith(turn.queue);
    return this.#wasInterrupted(turn.id, JSON.stringify(await talk.messages())) ? "interrupted" : "failed";
  }

  async #continue(turn: Turn): Promise<string> {
    const isTaken = await this.#untilShown(async () => {
      const { status, body } = await this.talk.continuation();
      // The first answer may have been lost.
      if (status === 202 || body["code"] === "agent_busy" || body["code"] === "context_exhausted")
        // An accepted request may not be visible yet.
        return () => this.#until(({ kind }) => kind !== "idle" && kind !== "error");
      this.#complain(`turn ${turn.id}: a continuation got ${status} ${String(body["code"])}`);
      return null;
    });
    if (!isTaken) return "failed";
    const state = await this.#rest();
    if (state !== "context_exhausted") {
      this.#complain(`turn ${turn.id} (continuation) came to ${state}`);
      return "failed";
    }
    await this.#beginChapter();
    if (!this.#plan.restricted) await this.#unbind(turn);
    return "continued";
  }

  /** Messages that wait in the ended conversation go along. If that is cut off, they are offered in both. */
  async #beginChapter(): Promise<void> {
    const ended = this.chapters.at(-1);
    const talk = await this.talk.startAnew();
    const queue = (await talk.read())["queue"] as readonly { readonly messageId: string }[];
    const accepted: Accepted[] = [];
    for (const [place, each] of ended?.accepted.entries() ?? []) {
      if (!queue.some(({ messageId }) => messageId === each.id)) continue;
      accepted.push({ ...each, delivery: "followUp" });
      ended?.accepted.splice(place, 1, { ...each, dropped: true });
    }
    this.chapters.push({ talk, accepted });
  }

  /** A new conversation is Restricted; the remaining turns of this virtual user need more rights. */
  async #unbind({ id, place }: Turn): Promise<void> {
    for (let n = 0; (await this.talk.read())["mode"] === "restricted"; n++) {
      if (n === ASKED_AT_MOST) {
        this.#complain(`turn ${id}: it is still Restricted`);
        return;
      }
      const ask = { kind: "approval", id: `${id}a${n}`, place, decision: "approve", thinkMs: 0 } as const;
      await this.#ask(ask);
    }
  }

  /** Sends a message, and waits until the conversation shows it. */
  async #say(
    text: string,
    { id = randomUUID(), images = [], delivery = "direct" }: Partial<Accepted & { images: object[] }> = {},
  ): Promise<void> {
    const { talk } = this;
    const accepted = new Map<string, Accepted>();
    await this.#untilShown(async () => {
      const { status, body } = await talk.send(`[[script:${SCRIPT}]] ${text}`, delivery, { id, images });
      // If a message was lost before it was stored, the last answer counts.
      if (status === 202) accepted.set(id, { id, delivery: delivered(body["delivery"]) });
      else this.#complain(`a message got ${status} ${String(body["code"])}`);
      return status === 202 && body["pending"] === true ? () => this.#unlessStuck(talk.untilShown(id)) : null;
    });
    this.chapters.at(-1)?.accepted.push(...accepted.values());
  }

  /**
   * Asks, and waits until the effect is visible. Asks once more when the product was started again meanwhile. A change
   * that was answered `pending` is safe in Temporal's database only, which the restart may have put back.
   *
   * @param ask returns what to wait for; null: nothing
   * @returns false when there was nothing to wait for
   */
  async #untilShown(ask: () => Promise<(() => Promise<void>) | null>): Promise<boolean> {
    for (;;) {
      const restart = this.#restarts.next().then(() => false);
      const wait = await ask();
      if (wait === null) return false;
      const shown = wait().then(() => true);
      shown.catch(() => undefined);
      if (await Promise.race([shown, restart])) return true;
    }
  }

  #rest(): Promise<string> {
    return this.#repeatedly(async () => {
      // Events that were heard may be lost with a database, and say then what is not so.
      await this.#until(({ kind }) => RESTING.includes(kind));
      const { kind } = await this.talk.state();
      return RESTING.includes(kind) ? kind : null;
    });
  }

  /** Looks until there is something to see. @throws when the conversation is stuck before that */
  async #repeatedly<T>(look: () => Promise<T | null>): Promise<T> {
    const over = new AbortController();
    const seen = async (): Promise<T> => {
      for (;;) {
        const found = await look();
        if (found !== null) return found;
        await pause(100, null, { signal: over.signal });
      }
    };
    try {
      return await this.#unlessStuck(seen());
    } finally {
      over.abort();
    }
  }

  #until(holds: (state: Shown["state"]) => boolean): Promise<void> {
    return this.#unlessStuck(this.talk.untilState(holds));
  }

  #unlessStuck<T>(reached: Promise<T>): Promise<T> {
    return unlessStuck(this.talk, reached, this.#stuckAfterMs);
  }

  #complain(what: string): void {
    this.complaints.push(`${this.talk.id}: ${what}`);
  }
}

const isRest = ({ name, data }: Heard): boolean =>
  name === "state.changed" && RESTING.includes((data["state"] as Shown["state"]).kind);

const delivered = (delivery: unknown): Accepted["delivery"] =>
  delivery === "steer" || delivery === "followUp" ? delivery : "direct";

async function isSettled(promise: Promise<unknown>): Promise<boolean> {
  const no = Symbol("not yet");
  return (await Promise.race([promise, Promise.resolve(no)])) !== no;
}
