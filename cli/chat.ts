/**
 * Owns: `bedrock chat`: a conversation line by line. A line is a message; one that begins with "/" is an order. Nothing
 * that is typed as a message approves anything.
 */
import { createInterface, cursorTo, clearLine, type Interface } from "node:readline";
import {
  createClient,
  makeConversation,
  newId,
  Refused,
  type Calls,
  type Client,
  type Conversation,
  type Server,
} from "../client/index.ts";
import { describeState } from "../client/phase.ts";
import { codeOf, EXIT, exitCodeOf, type ExitCode } from "./exit-codes.ts";
import { readImage } from "./images.ts";
import { insistent } from "./insist.ts";
import { outcomeOf } from "../client/outcome.ts";
import { isWorking } from "../machine/conversation.ts";
import { LinkWatch } from "./link-watch.ts";
import type { Place } from "./place.ts";
import { Printer } from "./printer.ts";
import { conversationOf } from "./server.ts";
import { Terminal, type Output, type ProcessStreams } from "./terminal.ts";

export type ChatFlags = {
  /** Null: a new conversation. */
  readonly conversation: string | null;
  readonly place: Place;
  /** Seconds for which the server may be away where nobody is at the terminal. */
  readonly patience: number;
};

const HELP = `A line is a message. While the agent works it joins the next request (steer).
  /follow TEXT   a message that starts when this run has ended
  /image FILE    adds an image to the next message
  /stop          stops the run; what waits is held
  /release       lets what waits go on
  /approve       allows what the agent asks for
  /deny          denies it
  /restricted    back to Restricted mode
  /wrap-up       a summary now, to go on from in a new conversation
  /quit          ends this chat; the conversation goes on`;

/** Resolves when the person, or the input, has ended. @throws Refused, Unreachable, UsageError */
export async function chat(streams: ProcessStreams, server: Server, flags: ChatFlags): Promise<ExitCode> {
  const client = createClient(server, { list: false });
  try {
    const calls = insistent(client, { terminal: new Terminal(streams) });
    const conversation = await conversationFor(calls, flags);
    return await new Chat(streams, client, conversation, flags.patience).end;
  } finally {
    client.end();
  }
}

function conversationFor(calls: Calls, { conversation, place }: ChatFlags): Promise<Conversation> {
  if (conversation !== null) return conversationOf(calls, conversation);
  return makeConversation(calls, { id: newId(), ...place });
}

class Chat {
  readonly end: Promise<ExitCode>;
  readonly #client: Client;
  readonly #id: string;
  readonly #terminal: Terminal;
  readonly #lines: Interface;
  readonly #isInteractive: boolean;
  /** The terminal knows lines alone: nothing is written over what stands there. */
  readonly #isDumb: boolean;
  readonly #printer: Printer;
  readonly #link: LinkWatch;
  /** Images for the next message. */
  #images: string[] = [];
  /** Without a terminal: lines that were read, which wait for the run before. */
  readonly #waiting: string[] = [];
  #hasInputEnded = false;
  #lastSent: string | null = null;
  #isObeying = false;
  #prompted: string | null = null;
  /** The last line on a dumb terminal is the prompt, and what is typed behind it. */
  #isAtPrompt = false;
  #toldApproval: string | null = null;
  #code: ExitCode = EXIT.done;
  #finish: (code: ExitCode) => void = () => undefined;

  constructor(streams: ProcessStreams, client: Client, conversation: Conversation, patience: number) {
    const { id, lastEvent, mode, title } = conversation;
    this.#client = client;
    this.#id = id;
    this.#isInteractive = streams.input.isTTY && streams.output.isTTY;
    this.#isDumb = process.env["TERM"] === "dumb";
    this.#lines = createInterface({
      input: streams.input,
      output: streams.output,
      terminal: this.#isInteractive,
      prompt: this.#isInteractive ? "› " : "",
    });
    const { input, output, errors } = streams;
    this.#terminal = new Terminal(
      this.#isInteractive ? { input, output: this.#above(output), errors: this.#above(errors) } : streams,
    );
    this.#printer = new Printer(this.#terminal, { from: 0, without: null });
    this.#link = new LinkWatch(this.#terminal, this.#isInteractive ? null : patience * 1000, () =>
      this.#finish(EXIT.unreachable),
    );
    this.#terminal.tell(`${id} · ${mode.toUpperCase()} · ${title}`, "dim");
    if (this.#isInteractive) this.#terminal.tell("/help says what else there is.", "dim");
    client.open(id, { conversation, after: lastEvent });
    this.end = new Promise((resolve) => (this.#finish = resolve));
    const unsubscribe = client.models.subscribe(() => this.#look());
    this.#lines.on("line", (line) => {
      this.#isAtPrompt = false;
      void this.#take(line);
    });
    this.#lines.on("SIGINT", () => this.#interrupt());
    // Those of a terminal that is closed, whose end comes as well.
    this.#lines.on("error", () => undefined);
    this.#lines.on("close", () => {
      this.#hasInputEnded = true;
      if (this.#isInteractive) this.#finish(EXIT.done);
      else this.#next();
    });
    void this.end.then(() => {
      unsubscribe();
      this.#link.end();
      this.#lines.close();
      if (this.#isInteractive) this.#terminal.tell(`It goes on with: bedrock chat ${id}`);
    });
    this.#prompt();
  }

  #prompt(): void {
    if (!this.#isDumb) this.#lines.prompt(true);
    else if (!this.#isAtPrompt) {
      this.#lines.prompt();
      this.#isAtPrompt = true;
    }
  }

  /** Lines that come while the person types go above what they type; on a dumb terminal, below. */
  #above(output: NodeJS.WriteStream): Output {
    let rest = "";
    const write: Output["write"] = (text, done) => {
      const whole = (rest + text).split("\n");
      rest = whole.pop() ?? "";
      const lines = `${whole.join("\n")}\n`;
      if (whole.length > 0 && this.#isDumb) {
        output.write(this.#isAtPrompt ? `\n${lines}` : lines);
        this.#isAtPrompt = false;
      } else if (whole.length > 0) {
        cursorTo(output, 0);
        clearLine(output, 0);
        output.write(lines);
        this.#prompt();
      }
      done?.();
      return true;
    };
    return { write, on: output.on.bind(output), isTTY: true, hasColors: () => output.hasColors() };
  }

  #look(): void {
    const { models } = this.#client;
    this.#link.see(models.link);
    if (models.link.kind === "unauthorized") return this.#finish(EXIT.unauthorized);
    const model = models.conversation(this.#id);
    if (model.kind === "gone") {
      this.#terminal.tell("The conversation was deleted.", "red");
      return this.#finish(EXIT.failed);
    }
    if (model.kind !== "loaded") return;
    this.#printer.print(model);
    const { state } = model.conversation;
    if (state.kind === "awaiting_mode_approval" && this.#toldApproval !== state.toolCall.id) {
      this.#toldApproval = state.toolCall.id;
      this.#terminal.tell(`The agent asks to leave Restricted mode: ${state.reason}`, "yellow");
      if (!this.#isInteractive) return this.#waits();
      this.#terminal.tell("If you allow it, its commands have your rights. /approve or /deny");
    }
    const phase = isWorking(state) ? `${describeState(state)} ` : "";
    if (this.#isInteractive && phase !== this.#prompted) {
      this.#prompted = phase;
      if (!this.#isDumb) this.#lines.setPrompt(`${phase}› `);
      if (!this.#isDumb || phase === "") this.#prompt();
    }
    this.#next();
  }

  /** Nobody is there to decide, and a line that was written before the question decides nothing. */
  #waits(): void {
    this.#terminal.tell(`Allow it with: bedrock approve ${this.#id}`);
    this.#terminal.tell(`Deny it with:  bedrock deny ${this.#id}`);
    const rest = this.#waiting.length;
    if (rest > 0) this.#terminal.tell(`${rest} more ${rest === 1 ? "line was" : "lines were"} not sent.`);
    this.#finish(EXIT.waits);
  }

  /** Without a terminal a line waits until the run of the line before has ended. */
  #next(): void {
    if (this.#isInteractive || this.#isObeying) return;
    const model = this.#client.models.conversation(this.#id);
    if (this.#lastSent !== null) {
      if (model.kind !== "loaded") return;
      const outcome = outcomeOf(model, this.#lastSent);
      if (outcome === null) return;
      this.#lastSent = null;
      if (outcome.kind !== "done") this.#code = codeOf(outcome);
    }
    const line = this.#waiting.shift();
    if (line !== undefined) void this.#obey(line);
    else if (this.#hasInputEnded) this.#finish(this.#code);
  }

  async #take(line: string): Promise<void> {
    if (this.#isInteractive) return this.#obey(line);
    this.#waiting.push(line);
    this.#next();
  }

  async #obey(line: string): Promise<void> {
    const text = line.trim();
    const [, order, rest = ""] = /^\/(\S+)\s*(.*)$/s.exec(text) ?? [];
    this.#isObeying = true;
    try {
      if (text === "") return;
      if (order === undefined) {
        await this.#send(text, null);
        return;
      }
      await this.#order(order, rest);
    } catch (error) {
      this.#terminal.tell((error as Error).message, "red");
      this.#code = exitCodeOf(error);
    } finally {
      this.#isObeying = false;
      if (this.#isInteractive) this.#prompt();
      else this.#next();
    }
  }

  async #order(order: string, rest: string): Promise<void> {
    const { call } = this.#client;
    const param = { id: this.#id };
    switch (order) {
      case "help": {
        this.#terminal.tell(HELP);
        return;
      }
      case "quit": {
        this.#finish(EXIT.done);
        return;
      }
      case "follow":
        return this.#send(rest, "followUp");
      case "image":
        readImage(rest);
        this.#images.push(rest);
        {
          this.#terminal.tell(
            `The next message has ${this.#images.length === 1 ? "an image" : "images"}.`,
            "dim",
          );
          return;
        }
      case "stop":
        await call((routes) => routes.conversations[":id"].cancel.$post({ param, json: { queue: "hold" } }));
        return;
      case "release":
        await call((routes) => routes.conversations[":id"].queue.release.$post({ param }));
        return;
      case "approve":
      case "deny":
        return this.#decide(order);
      case "restricted":
        await call((routes) =>
          routes.conversations[":id"].mode.$post({ param, json: { mode: "restricted" } }),
        );
        {
          this.#terminal.tell("Restricted.", "dim");
          return;
        }
      case "wrap-up":
        await call((routes) => routes.conversations[":id"].continuation.$post({ param }));
        return;
      default: {
        this.#terminal.tell(`There is no /${order}. /help says what there is.`, "yellow");
        return;
      }
    }
  }

  async #decide(decision: "approve" | "deny"): Promise<void> {
    const model = this.#client.models.conversation(this.#id);
    const state = model.kind === "loaded" ? model.conversation.state : null;
    if (state?.kind !== "awaiting_mode_approval") {
      this.#terminal.tell("Nothing waits for an approval.");
      return;
    }
    const json = { decision, toolCallId: state.toolCall.id };
    try {
      await this.#client.call((routes) =>
        routes.conversations[":id"].approval.$post({ param: { id: this.#id }, json }),
      );
    } catch (error) {
      if (!(error instanceof Refused && error.problem.code === "forbidden_role")) throw error;
      this.#terminal.tell(error.message, "yellow");
      this.#terminal.tell(`In another terminal, this asks for a token: bedrock ${decision} ${this.#id}`);
      this.#code = exitCodeOf(error);
    }
  }

  async #send(text: string, delivery: "followUp" | null): Promise<void> {
    const model = this.#client.models.conversation(this.#id);
    const isBusy = model.kind === "loaded" && isWorking(model.conversation.state);
    const images = this.#images.map(readImage);
    const id = newId();
    const json = {
      id,
      text,
      ...(images.length === 0 ? {} : { images }),
      ...(delivery !== null ? { delivery } : isBusy ? { delivery: "steer" as const } : {}),
    };
    await this.#client.persist((routes) =>
      routes.conversations[":id"].messages.$post({ param: { id: this.#id }, json }),
    );
    this.#images = [];
    this.#lastSent = id;
  }

  #interrupt(): void {
    const model = this.#client.models.conversation(this.#id);
    if (model.kind === "loaded" && isWorking(model.conversation.state)) void this.#obey("/stop");
    else this.#finish(EXIT.done);
  }
}
