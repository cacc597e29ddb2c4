/**
 * Owns: one conversation as an editor's session: it tells the editor what is new, asks it for approvals, and knows when
 * the run of a prompt has ended.
 */
import {
  RequestError,
  type AgentContext,
  type PromptResponse,
  type StopReason,
} from "@agentclientprotocol/sdk";
import { newId, type Client, type Conversation, type LoadedConversation } from "../client/index.ts";
import { outcomeOf, type Approval, type Outcome } from "../client/outcome.ts";
import { isAtWork } from "../client/outcome.ts";
import type { Prompt } from "./prompt.ts";
import { Updates } from "./updates.ts";

type Waiting = {
  readonly messageId: string;
  readonly resolve: (response: PromptResponse) => void;
  readonly reject: (error: unknown) => void;
};

const ALLOW = "allow";
const DENY = "deny";

export class Session {
  readonly id: string;
  readonly #client: Client;
  readonly #editor: AgentContext;
  readonly #updates = new Updates();
  readonly #waiting = new Set<Waiting>();
  readonly #close: () => void;
  readonly #unsubscribe: () => void;
  /** Updates go out in their order. */
  #sent: Promise<void> = Promise.resolve();
  #asked: { readonly toolCallId: string; readonly question: AbortController } | null = null;
  #isShown = false;

  /** @param from of a conversation that the editor has just made; null: it existed before */
  constructor(client: Client, editor: AgentContext, id: string, from: Conversation | null) {
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
    for (const { reject } of this.#waiting) reject(RequestError.requestCancelled());
    this.#waiting.clear();
  }

  /** Everything that was said, and then what comes. Resolves when the editor has got it. */
  async show(model: LoadedConversation): Promise<void> {
    this.#send(model);
    await this.#sent;
    this.#begin();
  }

  /** What comes from now on. */
  resume(model: LoadedConversation): void {
    this.#updates.skip(model);
    this.#begin();
  }

  /** From the next turn of the event loop on, so that the answer to the editor's request comes first. */
  #begin(): void {
    setImmediate(() => {
      this.#isShown = true;
      this.#look();
    });
  }

  /** Resolves when the run has ended. While one is under way, the prompt joins it. */
  prompt({ text, images }: Prompt): Promise<PromptResponse> {
    const messageId = newId();
    this.#updates.know(messageId);
    const model = this.#client.models.conversation(this.id);
    const isBusy = model.kind === "loaded" && isAtWork(model.conversation.state);
    const json = {
      id: messageId,
      text,
      ...(images.length === 0 ? {} : { images: [...images] }),
      ...(isBusy ? { delivery: "steer" as const } : {}),
    };
    return new Promise((resolve, reject) => {
      const waiting = { messageId, resolve, reject };
      this.#waiting.add(waiting);
      this.#client
        .persist((routes) => routes.conversations[":id"].messages.$post({ param: { id: this.id }, json }))
        .then(
          () => this.#look(),
          (error: unknown) => {
            this.#waiting.delete(waiting);
            reject(RequestError.internalError(undefined, (error as Error).message));
          },
        );
    });
  }

  async cancel(): Promise<void> {
    const json = { queue: "hold" } as const;
    await this.#client.persist((routes) =>
      routes.conversations[":id"].cancel.$post({ param: { id: this.id }, json }),
    );
  }

  #look(): void {
    if (!this.#isShown) return;
    const model = this.#client.models.conversation(this.id);
    if (model.kind === "gone") return this.end();
    if (model.kind === "loading") return;
    this.#send(model);
    this.#seeApproval(model);
    for (const waiting of [...this.#waiting]) {
      const outcome = outcomeOf(model, waiting.messageId);
      if (outcome === null) continue;
      this.#waiting.delete(waiting);
      // The editor has everything that belongs to the turn before the turn's end.
      void this.#sent.then(() => settle(waiting, outcome));
    }
  }

  #send(model: LoadedConversation): void {
    for (const update of this.#updates.next(model)) {
      const notice = { sessionId: this.id, update };
      // An editor that has gone needs nothing more.
      this.#sent = this.#sent
        .then(() => this.#editor.notify("session/update", notice))
        .catch(() => undefined);
    }
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
    void this.#sent.then(() => this.#ask(approval, question.signal));
  }

  async #ask({ toolCall, reason }: Approval, signal: AbortSignal): Promise<void> {
    const answer = await this.#editor
      .request(
        "session/request_permission",
        {
          sessionId: this.id,
          toolCall: {
            toolCallId: toolCall.id,
            title: `Leave Restricted mode: ${reason}`,
            kind: "switch_mode",
            status: "pending",
          },
          options: [
            { optionId: DENY, name: "Deny: stay in Restricted mode", kind: "reject_once" },
            { optionId: ALLOW, name: "Allow: commands have your rights", kind: "allow_once" },
          ],
        },
        { cancellationSignal: signal, stopWaitingOnCancel: true },
      )
      // It was decided elsewhere, or the editor has gone: who comes back is asked again.
      .catch(() => null);
    if (answer?.outcome.outcome !== "selected" || signal.aborted) return;
    const decision = answer.outcome.optionId === ALLOW ? "approve" : "deny";
    const json = { decision, toolCallId: toolCall.id } as const;
    await this.#client
      .persist((routes) => routes.conversations[":id"].approval.$post({ param: { id: this.id }, json }))
      // Somebody else was faster.
      .catch(() => undefined);
  }
}

function settle({ resolve, reject }: Waiting, outcome: Outcome): void {
  if (outcome.kind === "failed") reject(RequestError.internalError(undefined, outcome.reason));
  else if (outcome.kind === "held")
    reject(RequestError.internalError(undefined, `The message waits (${outcome.reason}).`));
  else resolve({ stopReason: STOP_REASONS[outcome.kind] });
}

const STOP_REASONS: { readonly [kind in Exclude<Outcome["kind"], "failed" | "held">]: StopReason } = {
  done: "end_turn",
  cancelled: "cancelled",
  exhausted: "max_tokens",
};
