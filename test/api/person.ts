/** Owns: what a person does over HTTP in a test: makes a conversation, writes, reads, follows it. */
import { expect } from "vitest";
import type { Message } from "../../machine/message.ts";
import { EventReader, type Received } from "./sse.ts";
import { bodyOf, type Answer, type Requests } from "./support.ts";

export const at = (id: string, rest = ""): string => `/api/conversations/${id}${rest}`;

export const kindIn = ({ data }: Received): unknown =>
  (data["state"] as Answer | undefined)?.["kind"] ??
  ((data["conversation"] as Answer | undefined)?.["state"] as Answer | undefined)?.["kind"];

/** A state of this kind is told, by a change or by a snapshot. */
export const inState =
  (kind: string) =>
  (event: Received): boolean =>
    (event.name === "state.changed" || event.name === "snapshot") && kindIn(event) === kind;

export class Person {
  readonly #requests: Requests;
  readonly #cwd: string;

  constructor(requests: Requests, cwd: string) {
    this.#requests = requests;
    this.#cwd = cwd;
  }

  async read(path: string): Promise<Answer> {
    const response = await this.#requests.get(path);
    expect(response.status, path).toBe(200);
    return bodyOf(response);
  }

  conversation(id: string): Promise<Answer> {
    return this.read(at(id));
  }

  /** The kind of the conversation's state. */
  async stateOf(id: string): Promise<string> {
    return ((await this.conversation(id))["state"] as { readonly kind: string }).kind;
  }

  async messages(id: string): Promise<readonly Message[]> {
    return (await this.read(at(id, "/messages")))["messages"] as Message[];
  }

  /** Sends a request that must be answered with this status. */
  async order(method: string, path: string, body?: object, status = 202): Promise<Answer> {
    const response = await this.#requests.send(method, path, body);
    if (response.status !== status) throw new Error(`${response.status}: ${await response.text()}`);
    return status === 204 ? {} : bodyOf(response);
  }

  async create(body: object = {}): Promise<string> {
    return String((await this.order("POST", "/api/conversations", { cwd: this.#cwd, ...body }, 201))["id"]);
  }

  say(id: string, body: object): Promise<Answer> {
    return this.order("POST", at(id, "/messages"), body);
  }

  async follow(id: string, init: RequestInit = {}): Promise<EventReader> {
    return new EventReader(await this.#requests.get(at(id, "/events"), init));
  }

  /** Resolves when the conversation is in a state of this kind, now or later. */
  /** Approves what the conversation asks for, as soon as it does. */
  async approve(id: string): Promise<void> {
    await this.untilState(id, "awaiting_mode_approval");
    const { state } = (await this.conversation(id)) as { state: { toolCall: { id: string } } };
    await this.order("POST", at(id, "/approval"), { decision: "approve", toolCallId: state.toolCall.id });
  }

  async untilState(id: string, kind: string): Promise<void> {
    const events = await this.follow(id);
    await events.until(inState(kind));
    await events.cancel();
  }
}
