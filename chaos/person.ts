/**
 * Owns: a person who goes through the turns of a plan over HTTP, whatever happens meanwhile, and remembers what was
 * accepted. Of a Stop it is noted whether anything was still alive when idle was announced.
 */
import { randomUUID } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import { isDead } from "../test/support/processes.ts";
import type { Product } from "../test/support/product.ts";
import { Talk, type Heard, type Shown } from "../test/support/talk.ts";
import { sentPicture } from "../test/support/pictures.ts";
import { directiveText, SCRIPT, type Places } from "./model.ts";
import type { Pace } from "./pace.ts";
import type { Plan, Turn } from "./plan.ts";

export type Accepted = { readonly id: string; readonly delivery: "direct" | "steer" | "followUp" };

/** A conversation and what was accepted in it, in order. One that is continued is followed by another. */
export type Chapter = { readonly talk: Talk; readonly accepted: Accepted[] };

const RESTING = ["idle", "error", "context_exhausted", "awaiting_mode_approval"];
/** Milliseconds in which something must happen in a conversation that works, all recoveries included. */
const PATIENCE_MS = 60_000;

type PersonPlan = Plan["conversations"][number];

export class Person {
  readonly chapters: Chapter[] = [];
  /** What must never be. */
  readonly complaints: string[] = [];
  /** The turn that goes on. */
  turn: Turn | null = null;
  readonly #product: Product;
  readonly #plan: PersonPlan;
  readonly #places: Places;
  readonly #pace: Pace;

  constructor(product: Product, plan: PersonPlan, places: Places, pace: Pace) {
    this.#product = product;
    this.#plan = plan;
    this.#places = places;
    this.#pace = pace;
  }

  get talk(): Talk {
    const chapter = this.chapters.at(-1);
    if (chapter === undefined) throw new Error("nothing was begun");
    return chapter.talk;
  }

  /** As far as its client has heard. */
  get isAtTool(): boolean {
    const state = this.chapters.at(-1)?.talk.heard.findLast(({ name }) => name === "state.changed");
    return state !== undefined && (state.data["state"] as Shown["state"]).kind === "tool_executing";
  }

  async live(): Promise<void> {
    const talk = await (this.#plan.restricted
      ? Talk.create(this.#product, this.#places.cwd)
      : Talk.open(this.#product, this.#places.cwd));
    this.chapters.push({ talk, accepted: [] });
    for (const turn of this.#plan.turns) {
      await this.#pace.turn(turn.place);
      this.turn = turn;
      await this.#go(turn);
      this.turn = null;
    }
  }

  /** Is it in a state from which it can go on? A last message shows it. */
  async farewell(): Promise<void> {
    const state = await this.#rest();
    if (state === "context_exhausted") return;
    // Something to do of its own: the model may not have answered the one before.
    await this.#say(directiveText({ kind: "text", id: "farewell", place: 0, words: 1 }));
    const end = await this.#rest();
    if (end !== "idle") this.complaints.push(`${this.talk.id}: the last message ended in ${end}`);
  }

  async #go(turn: Turn): Promise<void> {
    switch (turn.kind) {
      case "text":
      case "tools":
      case "sub_agents":
        await this.#say(directiveText(turn));
        break;
      case "image":
        await this.#say(directiveText(turn), [await sentPicture("png", { seed: turn.place + 1 })]);
        break;
      case "steer":
        await this.#say(directiveText(turn));
        await this.#say("Mind the time.", [], "steer");
        if (turn.followUp) await this.#say("And thank you.", [], "followUp");
        break;
      case "approval":
        await this.#ask(turn);
        break;
      case "stop":
        await this.#stop(turn);
        break;
      case "continuation":
        await this.#continue();
    }
    await this.#rest();
  }

  async #ask(turn: Extract<Turn, { kind: "approval" }>): Promise<void> {
    await this.#say(directiveText(turn));
    if ((await this.#rest()) !== "awaiting_mode_approval") return;
    await pause(turn.thinkMs);
    const { toolCall } = (await this.talk.state()) as unknown as {
      readonly toolCall?: { readonly id: string };
    };
    if (toolCall !== undefined) await this.talk.decide(toolCall.id, turn.decision);
    await this.#until(({ kind }) => kind !== "awaiting_mode_approval");
  }

  async #stop(turn: Turn): Promise<void> {
    const { talk } = this;
    const pidsFile = this.#places.pidsOf(turn.id);
    const pids = (): number[] =>
      existsSync(pidsFile)
        ? readFileSync(pidsFile, "utf8").trim().split(/\s+/).filter(Boolean).map(Number)
        : [];
    // The moment in which a client hears that all is at rest.
    const announced = talk.next((event) => isRest(event)).then(() => pids().filter((pid) => !isDead(pid)));
    await this.#say(directiveText(turn));
    const resting = this.#rest();
    // It may have been interrupted before its command ran.
    while (pids().length < 3 && !(await isSettled(resting))) await pause(50);
    await talk.cancel();
    await resting;
    const alive = await announced;
    if (alive.length > 0) this.complaints.push(`${talk.id}: at rest, and ${alive.join(", ")} alive`);
  }

  async #continue(): Promise<void> {
    await this.talk.continuation();
    if ((await this.#rest()) !== "context_exhausted") return;
    const next = await this.talk.startAnew();
    this.chapters.push({ talk: await Talk.follow(this.#product, String(next["id"])), accepted: [] });
  }

  async #say(
    text: string,
    images: readonly object[] = [],
    delivery: Accepted["delivery"] = "direct",
  ): Promise<void> {
    const id = randomUUID();
    const tagged = `[[script:${SCRIPT}]] ${text}`;
    const { status, body } = await this.talk.send(tagged, delivery, { id, images });
    // What is refused by its state is no loss; anything else is a defect.
    if (status === 202) this.chapters.at(-1)?.accepted.push({ id, delivery: delivered(body["delivery"]) });
    else if (status !== 409)
      this.complaints.push(`${this.talk.id}: a message got ${status} ${String(body["code"])}`);
  }

  async #rest(): Promise<string> {
    await this.#until(({ kind }) => RESTING.includes(kind));
    return (await this.talk.state()).kind;
  }

  /** Nothing may be stuck. */
  async #until(holds: (state: Shown["state"]) => boolean): Promise<void> {
    const { talk } = this;
    const reached = new AbortController();
    const stuck = this.#watch(reached.signal);
    try {
      await Promise.race([talk.untilState(holds), stuck]);
    } finally {
      reached.abort();
      stuck.catch(() => undefined);
    }
  }

  /** Rejects when nothing has happened for too long. */
  async #watch(reached: AbortSignal): Promise<never> {
    const { talk } = this;
    for (let last = -1; ;) {
      const { state, lastEvent } = await talk.read();
      if (lastEvent === last) {
        const seen = JSON.stringify([state, await pendingOf(this.#product, talk.id)]);
        throw new Error(`${talk.id} is stuck: ${seen}`);
      }
      last = Number(lastEvent);
      await pause(PATIENCE_MS, null, { signal: reached });
    }
  }
}

/** What Temporal waits for. */
async function pendingOf({ temporal }: Product, id: string): Promise<unknown> {
  const { raw } = await temporal.workflow.getHandle(id).describe();
  const { pendingActivities, pendingChildren, pendingWorkflowTask } = raw;
  return { pendingActivities, pendingChildren, pendingWorkflowTask };
}

const isRest = ({ name, data }: Heard): boolean =>
  name === "state.changed" && RESTING.includes((data["state"] as Shown["state"]).kind);

const delivered = (delivery: unknown): Accepted["delivery"] =>
  delivery === "steer" || delivery === "followUp" ? delivery : "direct";

async function isSettled(promise: Promise<unknown>): Promise<boolean> {
  const no = Symbol("not yet");
  return (await Promise.race([promise, Promise.resolve(no)])) !== no;
}
