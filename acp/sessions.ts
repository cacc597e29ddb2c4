/** Owns: the sessions of one editor, and what it asks of them, in the words of no version of the protocol. */
import { RequestError } from "@agentclientprotocol/sdk";
import { allConversations } from "../client/all-conversations.ts";
import {
  makeConversation,
  newId,
  type Client,
  type Conversation,
  type LoadedConversation,
  type Message,
} from "../client/index.ts";
import { asked } from "./asked.ts";
import { Session, type Editor } from "./session.ts";

/** Messages of one request. */
const PAGE = 1000;

type ListedSession = {
  readonly sessionId: string;
  readonly cwd: string;
  readonly title: string | null;
  readonly updatedAt: string;
};

export class Sessions {
  readonly #client: Client;
  readonly #open = new Map<string, Session>();

  constructor(client: Client) {
    this.#client = client;
  }

  /** The editor has gone. What runs goes on. */
  end(): void {
    for (const session of this.#open.values()) session.end();
    this.#open.clear();
  }

  /** An open one. */
  get(id: string): Session {
    const session = this.#open.get(id);
    if (session === undefined)
      throw RequestError.invalidParams({ sessionId: id }, "The session is not open.");
    return session;
  }

  async create(editor: Editor, cwd: string): Promise<Conversation> {
    const made = await asked(makeConversation(this.#client, { id: newId(), cwd }));
    const session = this.#begin(editor, made.id, made);
    session.begin(await this.#loaded(made.id));
    return made;
  }

  /** Opens an existing one, and tells everything that was said. */
  async load(editor: Editor, id: string): Promise<Conversation> {
    const session = this.#begin(editor, id, null);
    const model = await this.#whole(await this.#loaded(id));
    await session.show(model);
    return model.conversation;
  }

  /** Opens an existing one of which the editor knows what was said. */
  async resume(editor: Editor, id: string): Promise<Conversation> {
    const session = this.#begin(editor, id, null);
    const model = await this.#loaded(id);
    await session.resume(model);
    return model.conversation;
  }

  /** @param cwd null: those of all directories */
  async list(cwd: string | null): Promise<ListedSession[]> {
    const all = await asked(allConversations(this.#client.call, "false"));
    return all
      .filter((conversation) => cwd === null || conversation.cwd === cwd)
      .map(({ id: sessionId, cwd, title, updatedAt }) => ({ sessionId, cwd, title, updatedAt }));
  }

  /** Stops it, as the protocol has it; an editor that goes away without a word stops nothing. */
  async close(id: string): Promise<void> {
    await this.#open.get(id)?.close();
    this.#open.delete(id);
  }

  async delete(id: string): Promise<void> {
    this.#open.get(id)?.end();
    this.#open.delete(id);
    await asked(this.#client.call((routes) => routes.conversations[":id"].$delete({ param: { id } })));
  }

  #begin(editor: Editor, id: string, from: Conversation | null): Session {
    this.#open.get(id)?.end();
    const session = new Session(this.#client, editor, id, from);
    this.#open.set(id, session);
    return session;
  }

  /** The conversation, when everything that was missed has arrived. */
  #loaded(id: string): Promise<LoadedConversation> {
    const { models } = this.#client;
    return new Promise((resolve, reject) => {
      const look = (): void => {
        const model = models.conversation(id);
        if (models.link.kind === "unauthorized") {
          unsubscribe();
          reject(RequestError.authRequired(undefined, "Set BEDROCK_TOKEN or BEDROCK_TOKEN_FILE."));
        } else if (model.kind === "gone") {
          unsubscribe();
          reject(RequestError.resourceNotFound(id));
        } else if (model.kind === "loaded" && model.isSynced) {
          unsubscribe();
          resolve(model);
        }
      };
      const unsubscribe = models.subscribe(look);
      look();
    });
  }

  /** With the messages before those that a client has at first. */
  async #whole(model: LoadedConversation): Promise<LoadedConversation> {
    const { id } = model.conversation;
    const { models } = this.#client;
    let current = model;
    while (current.hasEarlier) {
      const query = { before: String(current.messages[0]?.sequence ?? 1), limit: String(PAGE) };
      const page = await asked(
        this.#client.call((routes) => routes.conversations[":id"].messages.$get({ param: { id }, query })),
      );
      const messages = page.messages as readonly Message[];
      const input = { name: "earlier.loaded", data: { messages } } as const;
      models.apply({ kind: "conversation_input", id, input, now: Date.now() });
      const next = models.conversation(id);
      if (next.kind !== "loaded" || next.messages.length === current.messages.length) return current;
      current = next;
    }
    return current;
  }
}
