/**
 * Owns: staying with a conversation until a run has ended: what is printed, who is asked for an approval, what Ctrl-C
 * does, and how long a server may be away.
 */
import {
  Refused,
  type Client,
  type ConversationModel,
  type Link,
  type Message,
  type Server,
} from "../client/index.ts";
import { sendDecision, type AskToken } from "./decide.ts";
import type { Decision } from "./approval.ts";
import { codeOf, EXIT, exitCodeOf, type ExitCode } from "./exit-codes.ts";
import { outcomeOf, type Approval, type Outcome } from "../client/outcome.ts";
import { LinkWatch } from "./link-watch.ts";
import type { Printer } from "./printer.ts";
import type { Terminal } from "./terminal.ts";

/** What becomes of a run that asks for an approval. */
export type OnApproval = "ask" | "exit" | "deny" | "wait";

export type Ask = (approval: Approval, signal: AbortSignal) => Promise<Decision | "nobody" | null>;

export type FollowOptions = {
  readonly client: Client;
  readonly server: Server;
  readonly terminal: Terminal;
  readonly id: string;
  /** Null: whatever runs. */
  readonly messageId: string | null;
  /** Null: nothing is printed as it comes. */
  readonly printer: Printer | null;
  readonly onApproval: OnApproval;
  /**
   * Asks the person at the terminal; resolves with null when the signal takes the question back, with "nobody" when the
   * terminal is closed.
   */
  readonly ask: Ask;
  /** Null: nobody can be asked for a token. */
  readonly askToken: AskToken | null;
  /** Milliseconds for which the server may be away. */
  readonly patience: number;
  /** Milliseconds after which the run is stopped; null: never. */
  readonly timeout: number | null;
  /** Whether Ctrl-C stops the run; otherwise it ends the watching. */
  readonly stopsRun: boolean;
  /** Ctrl-C was pressed before. */
  readonly isInterrupted: boolean;
};

export type Followed = {
  readonly code: ExitCode;
  /** Null: the command ended before the run. */
  readonly outcome: Outcome | null;
};

/** Resolves when the run has ended, or when there is a reason not to wait for that. */
export function follow(options: FollowOptions): Promise<Followed> {
  return new Promise((resolve) => {
    const following = new Following(options, (followed) => {
      following.end();
      resolve(followed);
    });
  });
}

/** Above that of any message. */
const LAST_SEQUENCE = 2 ** 31 - 1;

const hasEnd = (messages: readonly { readonly type: string }[]): boolean =>
  messages.some(({ type }) => type === "run_stop");

type Asked = {
  readonly toolCallId: string;
  /** Takes the question back. */
  readonly question: AbortController;
  /** The person has not answered yet. */
  isOpen: boolean;
};

class Following {
  readonly #options: FollowOptions;
  readonly #done: (followed: Followed) => void;
  readonly #unsubscribe: () => void;
  readonly #timers = new Set<NodeJS.Timeout>();
  readonly #onInterrupt = (): void => this.#interrupt();
  readonly #link: LinkWatch;
  /** The approval that was dealt with. */
  #asked: Asked | null = null;
  #stopping: "interrupt" | "timeout" | null = null;
  #isOver = false;
  #isLookingBack = false;

  constructor(options: FollowOptions, done: (followed: Followed) => void) {
    this.#options = options;
    this.#done = done;
    const { client, terminal, patience, timeout, isInterrupted } = options;
    this.#link = new LinkWatch(terminal, patience, () => this.#finish(EXIT.unreachable, null));
    this.#unsubscribe = client.models.subscribe(() => this.#look());
    process.on("SIGINT", this.#onInterrupt);
    if (timeout !== null) this.#timers.add(setTimeout(() => this.#stop("timeout"), timeout));
    queueMicrotask(() => {
      if (isInterrupted) this.#interrupt();
      this.#look();
    });
  }

  end(): void {
    this.#isOver = true;
    this.#unsubscribe();
    process.off("SIGINT", this.#onInterrupt);
    for (const timer of this.#timers) clearTimeout(timer);
    this.#link.end();
    this.#asked?.question.abort();
  }

  #look(): void {
    const { client, id } = this.#options;
    this.#seeLink(client.models.link);
    this.#seeModel(client.models.conversation(id));
  }

  #seeLink(link: Link): void {
    if (this.#isOver) return;
    this.#link.see(link);
    if (link.kind !== "unauthorized") return;
    const { terminal } = this.#options;
    terminal.tell("The server asks for another token. Set BEDROCK_TOKEN or BEDROCK_TOKEN_FILE.", "red");
    this.#finish(EXIT.unauthorized, null);
  }

  #seeModel(model: ConversationModel): void {
    if (this.#isOver) return;
    const { terminal, printer, messageId } = this.#options;
    if (model.kind === "gone") {
      terminal.tell("The conversation was deleted.", "red");
      return this.#finish(EXIT.failed, null);
    }
    if (model.kind === "loading") return;
    const { state } = model.conversation;
    const approval = state.kind === "awaiting_mode_approval" && model.isSynced ? state : null;
    if (this.#asked !== null && this.#asked.toolCallId !== approval?.toolCall.id) this.#takeBack(this.#asked);
    printer?.print(model);
    const outcome = outcomeOf(model, messageId);
    if (outcome !== null && messageId === null && !hasEnd(model.messages)) return this.#lookBack();
    if (outcome !== null) return this.#finish(this.#codeOf(outcome), outcome);
    if (approval !== null && this.#asked === null) this.#seeApproval(approval);
  }

  /** The last run has ended before all events that this client has: how, is read once. */
  #lookBack(): void {
    if (this.#isLookingBack) return;
    this.#isLookingBack = true;
    const { client, terminal, id } = this.#options;
    const query = { before: String(LAST_SEQUENCE) };
    client
      .persist((routes) => routes.conversations[":id"].messages.$get({ param: { id }, query }))
      .then(
        ({ messages }) => {
          this.#isLookingBack = false;
          const model = client.models.conversation(id);
          if (this.#isOver || model.kind !== "loaded") return;
          const outcome = outcomeOf({ ...model, messages: messages as readonly Message[] }, null);
          // Another run has begun meanwhile.
          if (outcome === null) return;
          if (outcome.kind !== "done" || hasEnd(messages)) return this.#finish(codeOf(outcome), outcome);
          terminal.tell("Nothing has run in this conversation yet.", "yellow");
          this.#finish(EXIT.usage, null);
        },
        (error: unknown) => {
          terminal.tell((error as Error).message, "red");
          this.#finish(exitCodeOf(error), null);
        },
      );
  }

  #takeBack({ question, isOpen }: Asked): void {
    question.abort();
    this.#asked = null;
    if (isOpen && this.#stopping === null) this.#options.terminal.tell("Decided elsewhere.", "dim");
  }

  #seeApproval(approval: Approval): void {
    const { onApproval, terminal, id } = this.#options;
    const question = new AbortController();
    const toolCallId = approval.toolCall.id;
    const asked: Asked = { toolCallId, question, isOpen: onApproval === "ask" };
    this.#asked = asked;
    const tell = () => {
      terminal.tell(`The agent asks to leave Restricted mode: ${approval.reason}`, "yellow");
      terminal.tell(`Allow it with: bedrock approve ${id}`);
      terminal.tell(`Deny it with:  bedrock deny ${id}`);
    };
    switch (onApproval) {
      case "exit":
        tell();
        return this.#finish(EXIT.waits, null);
      case "wait":
        return tell();
      case "deny":
        return this.#decide("deny", toolCallId, question.signal);
      case "ask":
        void this.#options.ask(approval, question.signal).then((decision) => {
          asked.isOpen = false;
          if (decision === "nobody") this.#finish(EXIT.waits, null);
          else if (decision !== null) this.#decide(decision, toolCallId, question.signal);
        });
    }
  }

  #decide(decision: Decision, toolCallId: string, signal: AbortSignal): void {
    const { client, server, askToken, terminal, id } = this.#options;
    sendDecision({ calls: client, server, askToken }, { id, decision, toolCallId, signal }).then(
      () => terminal.tell(decision === "approve" ? "Allowed." : "Denied.", "dim"),
      (error: unknown) => this.#seeRefusal(error, signal),
    );
  }

  /** A decision was refused. Where the question still stands, nobody here can answer it. */
  #seeRefusal(error: unknown, signal: AbortSignal): void {
    const { terminal, id } = this.#options;
    if (this.#isOver) return;
    if (signal.aborted && this.#stopping === null) return terminal.tell("Decided elsewhere.", "dim");
    terminal.tell((error as Error).message, "yellow");
    if (!(error instanceof Refused && ["forbidden_role", "unauthorized"].includes(error.problem.code)))
      return;
    terminal.tell(`It waits. Allow it with: bedrock approve ${id}, or on the page.`);
    this.#finish(EXIT.waits, null);
  }

  #interrupt(): void {
    const { stopsRun, terminal, id } = this.#options;
    if (!stopsRun) {
      terminal.tell(`Not watched any more. It goes on; stop it with: bedrock cancel ${id}`);
      return this.#finish(EXIT.cancelled, null);
    }
    // Once more: the person does not want to wait for the answer.
    if (this.#stopping !== null) return this.#finish(EXIT.cancelled, null);
    this.#stop("interrupt");
  }

  #stop(reason: "interrupt" | "timeout"): void {
    if (this.#stopping !== null) return;
    this.#stopping = reason;
    const { client, terminal, id } = this.#options;
    this.#asked?.question.abort();
    terminal.tell(reason === "timeout" ? "The time is over: stopping …" : "Stopping …", "yellow");
    const json = { queue: "hold" } as const;
    client
      .persist((routes) => routes.conversations[":id"].cancel.$post({ param: { id }, json }))
      .catch((error: unknown) => {
        terminal.tell((error as Error).message, "red");
        this.#finish(EXIT.failed, null);
      });
  }

  #codeOf(outcome: Outcome): ExitCode {
    return this.#stopping === "timeout" ? EXIT.timeout : codeOf(outcome);
  }

  #finish(code: ExitCode, outcome: Outcome | null): void {
    if (this.#isOver) return;
    this.#done({ code, outcome });
  }
}
