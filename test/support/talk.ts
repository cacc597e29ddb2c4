/**
 * Owns: a client of one conversation over HTTP, like a frontend. It repeats unanswered requests and resumes the stream
 * by event number.
 */
import { randomUUID } from "node:crypto";
import type { Mode } from "../../machine/conversation.ts";
import { openUpdate } from "../../protocol/workflow.ts";
import { EventReader, type Received } from "../api/sse.ts";
import { sandboxOfHost } from "../../sandbox/host.ts";
import { createInputFor, startOperation } from "./create-input.ts";
import { LiveWatch } from "./live-watch.ts";
import type { Served } from "./product.ts";

export type Shown = {
  readonly state: { readonly kind: string; readonly [name: string]: unknown };
  readonly lastEvent: number;
};
export type ShownMessage = {
  readonly id: string;
  readonly sequence: number;
  readonly type: string;
  readonly content: unknown;
};
export type Answer = { readonly status: number; readonly body: { readonly [name: string]: unknown } };
/** An event of the stream, and the time of its arrival. */
export type Heard = Received & { readonly at: number };

const PAUSE_MS = 50;

/** Opens a conversation in this mode. Returns its id. */
export async function openConversation(
  product: Served,
  cwd: string,
  mode: Mode,
  toolHost = product.toolHosts[0],
): Promise<string> {
  const id = randomUUID();
  const config = { toolHost, model: "claude-opus-4-8", taskQueue: "conversations" };
  const createInput = createInputFor({ config, cwd, sandbox: await sandboxOfHost() }, id, mode);
  await product.temporal.workflow.executeUpdateWithStart(openUpdate, {
    startWorkflowOperation: startOperation({ config }, { conversationId: id, createInput }),
  });
  return id;
}

export class Talk {
  readonly product: Served;
  readonly id: string;
  readonly #base: string;
  /** The numbered events, each as often as it came. */
  readonly heard: Heard[] = [];
  /** The number of the last event before the stream began. */
  from = 0;
  /** How often the stream was cut off and resumed. */
  resumed = 0;
  readonly live = new LiveWatch();
  readonly #ended = new AbortController();
  readonly #listeners = new Set<(event: Heard) => void>();

  private constructor(product: Served, id: string) {
    this.product = product;
    this.id = id;
    this.#base = `${product.url}/api/conversations/${id}`;
  }

  /** Opens an Unrestricted conversation, and follows its stream. Over HTTP that would need an approval. */
  static async open(
    product: Served,
    cwd = product.cwd,
    mode: Mode = "unrestricted",
    host = product.toolHosts[0],
  ): Promise<Talk> {
    return Talk.follow(product, await openConversation(product, cwd, mode, host));
  }

  /** Makes a conversation as a person does, and follows its stream: Restricted where the host can enforce it. */
  static async create(product: Served, cwd = product.cwd, host = product.toolHosts[0]): Promise<Talk> {
    // The id makes it one conversation, however often the request is repeated.
    const id = randomUUID();
    await insistStored(`${product.url}/api/conversations`, { id, cwd, host });
    return Talk.follow(product, id);
  }

  /** Follows the stream of an existing conversation. */
  static async follow(product: Served, id: string): Promise<Talk> {
    const talk = new Talk(product, id);
    await new Promise<void>((synced) => void talk.#listen(synced));
    return talk;
  }

  /** Sends until the answer is not 503 (outcome not known). The id makes the repeats one message. */
  send(
    text: string,
    delivery: "direct" | "steer" | "followUp" = "direct",
    more: { readonly id?: string; readonly images?: readonly object[] } = {},
  ): Promise<Answer> {
    return insist(`${this.#base}/messages`, { text, delivery, id: randomUUID(), ...more });
  }

  cancel(queue: "run" | "hold" | "clear" = "run"): Promise<Answer> {
    return insist(`${this.#base}/cancel`, { queue });
  }

  release(): Promise<Answer> {
    return insist(`${this.#base}/queue/release`, {});
  }

  continuation(): Promise<Answer> {
    return insist(`${this.#base}/continuation`, undefined);
  }

  /** Another conversation that continues this one, seeded with its summary. */
  async startAnew(): Promise<Talk> {
    const id = randomUUID();
    const continuedFrom = { id: this.id, seed: true };
    await insistStored(`${this.product.url}/api/conversations`, { id, continuedFrom });
    return Talk.follow(this.product, id);
  }

  decide(toolCallId: string, decision: "approve" | "deny"): Promise<Answer> {
    return insist(`${this.#base}/approval`, { toolCallId, decision });
  }

  async messages(): Promise<readonly ShownMessage[]> {
    const { body } = await insist(`${this.#base}/messages?limit=1000`);
    return body["messages"] as ShownMessage[];
  }

  /** The sub-agents as the API shows them. */
  async children(): Promise<readonly Answer["body"][]> {
    const { body } = await insist(`${this.#base}/children`);
    return body["conversations"] as readonly Answer["body"][];
  }

  /** Resolves when a message is stored, or waits in the queue. */
  async untilShown(messageId: string): Promise<void> {
    for (;;) {
      const said = await this.messages();
      const queue = (await this.read())["queue"] as readonly { readonly messageId: string }[];
      if (said.some(({ id }) => id === messageId)) return;
      if (queue.some((waiting) => waiting.messageId === messageId)) return;
      await pause();
    }
  }

  /** The conversation as the API shows it. */
  async read(): Promise<Answer["body"]> {
    const { status, body } = await insist(this.#base);
    if (status !== 200) throw new Error(`${this.id} cannot be read: ${JSON.stringify(body)}`);
    return body;
  }

  async state(): Promise<Shown["state"]> {
    return (await this.read())["state"] as Shown["state"];
  }

  /** The first event to come for which the predicate holds. */
  next(wanted: (event: Heard) => boolean): Promise<Heard> {
    return new Promise((resolve) => {
      const listener = (event: Heard): void => {
        if (!wanted(event)) return;
        this.#listeners.delete(listener);
        resolve(event);
      };
      this.#listeners.add(listener);
    });
  }

  /** The next `state.changed` to this state. */
  nextState(kind: string): Promise<Heard> {
    return this.next(
      ({ name, data }) => name === "state.changed" && (data["state"] as Shown["state"]).kind === kind,
    );
  }

  /** The next `state.changed` to a state in which nothing goes on. @throws if that is an error */
  async nextRest(): Promise<Heard> {
    const stateIn = ({ name, data }: Heard) =>
      name === "state.changed" ? (data["state"] as Shown["state"]) : null;
    const heard = await this.next((event) => ["idle", "error"].includes(stateIn(event)?.kind ?? ""));
    const state = stateIn(heard);
    if (state?.kind === "error") throw new Error(`${this.id} stopped: ${JSON.stringify(state)}`);
    return heard;
  }

  /** Resolves when the conversation is in a state for which the predicate holds, now or later. */
  async untilState(wanted: string | ((state: Shown["state"]) => boolean)): Promise<void> {
    const holds = typeof wanted === "string" ? ({ kind }: Shown["state"]) => kind === wanted : wanted;
    const { state, lastEvent } = (await this.read()) as unknown as Shown;
    if (holds(state)) return;
    // The stream may be behind: its events up to `lastEvent` are about earlier states.
    const isIt = ({ id, name, data }: Heard): boolean =>
      (id ?? 0) > lastEvent && name === "state.changed" && holds(data["state"] as Shown["state"]);
    if (!this.heard.some(isIt)) await this.next(isIt);
  }

  close(): void {
    this.#ended.abort();
  }

  async #listen(onSynced: () => void): Promise<void> {
    const signal = AbortSignal.any([this.#ended.signal, this.product.ended]);
    let last: number | null = null;
    while (!signal.aborted) {
      try {
        const headers: Record<string, string> = last === null ? {} : { "last-event-id": String(last) };
        this.resumed += Number(last !== null);
        if (last !== null) this.live.comeBack();
        const reader: EventReader = new EventReader(await fetch(`${this.#base}/events`, { signal, headers }));
        for (let event = await reader.next(); event !== null; event = await reader.next()) {
          const heard = { ...event, at: performance.now() };
          this.live.take(event);
          if (event.name === "synced") {
            if (last === null) this.from = last = event.data["lastEvent"] as number;
            onSynced();
          }
          if (event.id !== null) {
            last = event.id;
            this.heard.push(heard);
          }
          for (const listener of this.#listeners) listener(heard);
        }
      } catch {
        // The stream was cut off, or the API is away. The loop resumes it.
      }
      await pause();
    }
  }
}

/** Repeats the request until the answer is not 503 (outcome not known). */
async function insist(url: string, body?: unknown): Promise<Answer> {
  for (;;) {
    try {
      const isRead = body === undefined && !url.endsWith("/continuation");
      const response = await fetch(url, {
        method: isRead ? "GET" : "POST",
        ...(body === undefined
          ? {}
          : { headers: { "content-type": "application/json" }, body: JSON.stringify(body) }),
      });
      const text = await response.text();
      if (response.status !== 503)
        return { status: response.status, body: JSON.parse(text) as Answer["body"] };
    } catch {
      // The process is away.
    }
    await pause();
  }
}

/** Repeats the request until the conversation is stored. A pending one may be lost with Temporal's database. */
async function insistStored(url: string, body: object): Promise<void> {
  while ((await insist(url, body)).body["pending"] === true) await pause();
}

const pause = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
