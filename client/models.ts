/**
 * Owns: what a client knows: the link, the list, and the conversations that are open; and who is told of a change. A
 * change is plain data, so that one process can receive and another hold the same.
 */
import { reduceConversation, type ConversationInput, type ConversationModel } from "./conversation-model.ts";
import { EMPTY_LIST, reduceList, type ListInput, type ListModel } from "./list-model.ts";
import type { Link } from "./stream.ts";

export type Change =
  | { readonly kind: "link"; readonly link: Link }
  | { readonly kind: "list_input"; readonly input: ListInput; readonly now: number }
  | { readonly kind: "list"; readonly list: ListModel }
  | {
      readonly kind: "conversation_input";
      readonly id: string;
      readonly input: ConversationInput;
      readonly now: number;
    }
  | { readonly kind: "conversation"; readonly id: string; readonly model: ConversationModel }
  /** Nobody wants it any more. */
  | { readonly kind: "closed"; readonly id: string };

const LOADING: ConversationModel = { kind: "loading" };

export class Models {
  #link: Link = { kind: "connecting" };
  #list: ListModel = EMPTY_LIST;
  readonly #conversations = new Map<string, ConversationModel>();
  readonly #listeners = new Set<(change: Change) => void>();

  get link(): Link {
    return this.#link;
  }

  get list(): ListModel {
    return this.#list;
  }

  /** `loading` as long as nothing is known of it. */
  conversation(id: string): ConversationModel {
    return this.#conversations.get(id) ?? LOADING;
  }

  /** @returns a function that ends the subscription */
  subscribe(listener: (change: Change) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  apply(change: Change): void {
    switch (change.kind) {
      case "link":
        this.#link = change.link;
        break;
      case "list":
        this.#list = change.list;
        break;
      case "list_input":
        this.#list = reduceList(this.#list, change.input, change.now);
        break;
      case "conversation":
        this.#conversations.set(change.id, change.model);
        break;
      case "conversation_input": {
        const { id, input, now } = change;
        this.#conversations.set(id, reduceConversation(this.conversation(id), input, now));
        break;
      }
      case "closed":
        this.#conversations.delete(change.id);
        break;
    }
    for (const listener of this.#listeners) listener(change);
  }
}
