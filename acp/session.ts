/**
 * Owns: one conversation as an editor's session: it tells the editor what is new, asks it for approvals, and knows when
 * a prompt is in the conversation and when its run has ended. In the words of no version of the protocol.
 */
import { RequestError } from "@agentclientprotocol/sdk";
import { newId, Refused, type Client, type Conversation, type LoadedConversation } from "../client/index.ts";
import { outcomeOf, type Approval, type Outcome } from "../client/outcome.ts";
import { isWorking } from "../machine/conversation.ts";
import { asked } from "./asked.ts";
import { Changes, workOf, type Change } from "./changes.ts";
import type { Prompt } from "./prompt.ts";

/** The other side, by a version of the protocol. */
export type Editor = {
  readonly tell: (sessionId: string, change: Change) => Promise<void>;
  /** Rejects when the question was taken back or the editor has gone. Null: the person decided nothing. */
  readonly ask: (
    sessionId: string,
    approval: Approval,
    signal: AbortSignal,
  ) => Promise<"approve" | "deny" | null>;
};

type Watcher = {
  /** True: it has what it waited for. */
  readonly look: (model: LoadedConversation) => boolean;
  readonly reject: (error: unknown) => void;
};

export class Session {
  readonly id: string;
  readonly #client: Client;
  readonly #editor: Editor;
  readonly #changes = new Changes();
  readonly #watchers = new Set<Watcher>();
  readonly #close: () => void;
  readonly #unsubscribe: () => void;
  /** Changes are told in their order. */
  #told: Promise<void> = Promise.resolve();
  #asked: { readonly toolCallId: string; readonly question: AbortController } | null = null;
  #isShown = false;

  /** @param from of a conversation that the editor has just made; null: it existed before */
  constructor(client: Client, editor: Editor, id: string, from: Conversation | null) {
    this.id = id;
    this.#client = client;
    this.#editor = editor;
    this.#unsubscribe = client.models.subscribe((change) => {
      if (change.kind === "conversation_input" && change.id === id) this.#look();
    });
    this.#close =
      from === null ? client.open(id) : client.open(id, { conversation: from, after: from.lastEvent });
  }

  end(): void {
    this.#unsubscribe();
    this.#close();
    this.#asked?.question.abort();
    for (const { reject } of this.#watchers) reject(RequestError.requestCancelled());
    this.#watchers.clear();
  }

  /** Everything that was said, and then what comes. Resolves when the editor has got it. */
  async show(model: LoadedConversation): Promise<void> {
    this.#tell(this.#changes.next(model));
    await this.#told;
    this.#begin();
  }

  /** What comes from now on. Resolves when the editor knows what the agent does now. */
  async resume(model: LoadedConversation): Promise<void> {
    this.#changes.skip(model);
    const work = workOf(model);
    if (work !== null) this.#tell([{ kind: "work", work }]);
    await this.#told;
    this.#begin();
  }

  /** What comes in a conversation that the editor has just made. */
  begin(model: LoadedConversation): void {
    this.#changes.skip(model);
    this.#begin();
  }

  /** Only an approval leads out of Restricted mode. Resolves with the conversation in this mode. */
  async changeMode(mode: string): Promise<Conversation> {
    if (mode !== "restricted")
      throw RequestError.invalidParams(
        { mode },
        "Only an approval leads out of Restricted mode: the agent asks for it when it needs it.",
      );
    const json = { mode } as const;
    await asked(
      this.#client.call((routes) => routes.conversations[":id"].mode.$post({ param: { id: this.id }, json })),
    );
    return this.#until(({ conversation }) => (conversation.mode === mode ? conversation : null));
  }

  /** From the next turn of the event loop on, so that the answer to the editor's request comes first. */
  #begin(): void {
    setImmediate(() => {
      this.#isShown = true;
      this.#look();
    });
  }

  /** Sends a prompt; while a run is under way, it joins it. Resolves with its message's id when the server has it. */
  async send({ text, images }: Prompt): Promise<string> {
    const id = newId();
    const model = this.#client.models.conversation(this.id);
    const isBusy = model.kind === "loaded" && isWorking(model.conversation.state);
    const json = {
      id,
      text,
      ...(images.length === 0 ? {} : { images: [...images] }),
      ...(isBusy ? { delivery: "steer" as const } : {}),
    };
    this.#changes.own(id);
    await asked(
      this.#client.persist((routes) =>
        routes.conversations[":id"].messages.$post({ param: { id: this.id }, json }),
      ),
    );
    return id;
  }

  /** Resolves when the message is part of the conversation. Rejects where it was taken back, or never will be. */
  async inserted(messageId: string): Promise<void> {
    let wasQueued = false;
    const found = await this.#until((model) => {
      if (model.messages.some(({ id }) => id === messageId)) return "inserted";
      const isQueued = model.conversation.queue.some((queued) => queued.messageId === messageId);
      if (wasQueued && !isQueued) return "taken back";
      wasQueued = isQueued;
      const outcome = outcomeOf(model, messageId);
      return outcome?.kind === "held" || outcome?.kind === "exhausted" ? outcome.kind : null;
    });
    switch (found) {
      case "inserted":
        return;
      case "taken back":
        throw RequestError.requestCancelled();
      case "held":
        await this.#takeBack(messageId);
        throw RequestError.requestCancelled();
      case "exhausted":
        throw RequestError.internalError(undefined, "The context is exhausted: go on in a new session.");
    }
  }

  /** An editor gives an unanswered prompt back to the person, so it must not wait here as well. */
  async #takeBack(messageId: string): Promise<void> {
    const param = { id: this.id, messageId };
    await asked(
      this.#client.persist((routes) => routes.conversations[":id"].queue[":messageId"].$delete({ param })),
    );
  }

  /** Resolves when the run of the message has ended, and the editor was told all of it. */
  async ended(messageId: string): Promise<Outcome> {
    const outcome = await this.#until((model) => outcomeOf(model, messageId));
    await this.#told;
    return outcome;
  }

  /** Stop: resolves when the server has it. What waits is held. */
  async cancel(): Promise<void> {
    const json = { queue: "hold" } as const;
    await this.#client.persist((routes) =>
      routes.conversations[":id"].cancel.$post({ param: { id: this.id }, json }),
    );
  }

  /** As the protocol has it: closing a session stops its work. Resolves when it has stopped. */
  async close(): Promise<void> {
    const model = this.#client.models.conversation(this.id);
    if (model.kind === "loaded" && isWorking(model.conversation.state)) {
      await this.cancel();
      await this.#until(({ conversation }) => (isWorking(conversation.state) ? null : true));
    }
    await this.#told;
    this.end();
  }

  /** Resolves with what `find` finds, as soon as there is something; rejects when the session ends before. */
  #until<T>(find: (model: LoadedConversation) => T | null): Promise<T> {
    return new Promise((resolve, reject) => {
      const look = (model: LoadedConversation): boolean => {
        const found = find(model);
        if (found !== null) resolve(found);
        return found !== null;
      };
      const model = this.#client.models.conversation(this.id);
      if (model.kind === "loaded" && look(model)) return;
      this.#watchers.add({ look, reject });
    });
  }

  #look(): void {
    if (!this.#isShown) return;
    const model = this.#client.models.conversation(this.id);
    if (model.kind === "gone") return this.end();
    if (model.kind === "loading") return;
    this.#tell(this.#changes.next(model));
    this.#seeApproval(model);
    for (const watcher of this.#watchers) if (watcher.look(model)) this.#watchers.delete(watcher);
  }

  #tell(changes: readonly Change[]): void {
    for (const change of changes)
      this.#told = this.#told
        .then(() => this.#editor.tell(this.id, change))
        // An editor that has gone needs nothing more.
        .catch(() => undefined);
  }

  #seeApproval({ conversation: { state }, isSynced }: LoadedConversation): void {
    const approval = state.kind === "awaiting_mode_approval" && isSynced ? state : null;
    if (this.#asked !== null && this.#asked.toolCallId !== approval?.toolCall.id) {
      this.#asked.question.abort();
      this.#asked = null;
    }
    if (approval === null || this.#asked !== null) return;
    const question = new AbortController();
    this.#asked = { toolCallId: approval.toolCall.id, question };
    void this.#told.then(() => this.#ask(approval, question.signal));
  }

  /** The question stands, and this bridge cannot answer it. */
  #tellRefused({ toolCall }: Approval, error: Refused): void {
    const text = `Not decided: ${error.message} Or decide on the page, or in a terminal: bedrock approve ${this.id}\n\n`;
    this.#tell([{ kind: "text", messageId: `${toolCall.id}.refused`, text }]);
  }

  async #ask(approval: Approval, signal: AbortSignal): Promise<void> {
    const decision = await this.#editor
      .ask(this.id, approval, signal)
      // It was decided elsewhere, or the editor has gone: who comes back is asked again.
      .catch(() => null);
    if (decision === null || signal.aborted) return;
    const json = { decision, toolCallId: approval.toolCall.id };
    await this.#client
      .persist((routes) => routes.conversations[":id"].approval.$post({ param: { id: this.id }, json }))
      .catch((error: unknown) => {
        // Otherwise somebody else was faster.
        if (error instanceof Refused && error.problem.status !== 409) this.#tellRefused(approval, error);
      });
  }
}
