/** Owns: `bedrock run` and `bedrock attach`: one run from its message, or from where it is, to its end. */
import {
  createCalls,
  createClient,
  makeConversation,
  newId,
  type Calls,
  type Client,
  type Conversation,
  type ConversationModel,
} from "../client/index.ts";
import type { Server } from "../client/index.ts";
import type { AskToken } from "./decide.ts";
import { EXIT, type ExitCode } from "./exit-codes.ts";
import { follow, type Ask, type Followed, type OnApproval } from "./follow.ts";
import { readImage } from "./images.ts";
import { insistent } from "./insist.ts";
import type { Place } from "./place.ts";
import { Printer } from "./printer.ts";
import { conversationOf } from "./server.ts";
import type { Terminal } from "./terminal.ts";

export type Format = "text" | "json" | "stream-json";

type FollowFlags = {
  readonly format: Format;
  readonly onApproval: OnApproval;
  readonly ask: Ask;
  /** Null: nobody can be asked for a token. */
  readonly askToken: AskToken | null;
  /** Seconds. */
  readonly patience: number;
  /** Seconds; null: as long as it takes. */
  readonly timeout: number | null;
};

export type RunFlags = FollowFlags & {
  readonly prompt: string;
  /** Null: a new conversation. */
  readonly conversation: string | null;
  readonly place: Place;
  readonly images: readonly string[];
};

/** @throws Refused, Unreachable, UsageError */
export async function run(terminal: Terminal, server: Server, flags: RunFlags): Promise<ExitCode> {
  const messageId = newId();
  const images = flags.images.map(readImage);
  const message = { id: messageId, text: flags.prompt, ...(images.length === 0 ? {} : { images }) };
  const isText = flags.format === "text";
  const early = earlyInterrupt(terminal);
  // The request goes before the one for the stream.
  const { id: chosen, sent } = send(createCalls(server), terminal, message, flags);
  const client = clientFor(terminal, server, flags.format);
  try {
    // The write takes a while: the person sees before that the server is there, and what the conversation is called.
    const forget = onceConnected(client, () => {
      if (isText && chosen !== null) terminal.begin(chosen);
    });
    const conversation = await sent.finally(forget);
    const { id, mode, lastEvent } = conversation;
    client.open(id, { conversation, after: chosen === null ? lastEvent : 0 });
    if (isText) terminal.goOn(id, ` · ${mode.toUpperCase()}`);
    // The person knows what they have said.
    const printer = isText ? new Printer(terminal, { from: 0, without: messageId }) : null;
    const isInterrupted = early.end();
    return await stay(client, terminal, id, {
      ...flags,
      server,
      messageId,
      printer,
      stopsRun: true,
      isInterrupted,
    });
  } finally {
    early.end();
    client.end();
    await terminal.flush();
  }
}

type Message = { readonly id: string; readonly text: string };

type Sending = {
  /** The id of the new conversation; null: it is not new. */
  readonly id: string | null;
  /** The conversation, as it was before the message, or is with it. */
  readonly sent: Promise<Conversation>;
};

/** Sends the message, to a new conversation or one that there is. */
function send(
  calls: Calls,
  terminal: Terminal,
  message: Message,
  { conversation: given, place, patience }: RunFlags,
): Sending {
  const insisting = (doubt: string) => insistent(calls, { terminal, patience: patience * 1000, doubt });
  if (given === null) {
    const json = { id: newId(), ...place, message };
    const doubt = `If it has begun all the same, it goes on. Look with: bedrock attach ${json.id}`;
    return { id: json.id, sent: makeConversation(insisting(doubt), json) };
  }
  const toExisting = async (): Promise<Conversation> => {
    const conversation = await conversationOf(calls, given);
    const { id } = conversation;
    const doubt = `If the message has arrived all the same, the agent works on it. Look with: bedrock attach ${id}`;
    await insisting(doubt).persist((routes) =>
      routes.conversations[":id"].messages.$post({ param: { id }, json: message }),
    );
    return conversation;
  };
  return { id: null, sent: toExisting() };
}

/** @returns the end of waiting for that */
function onceConnected({ models }: Client, act: () => void): () => void {
  const unsubscribe = models.subscribe(() => {
    if (models.link.kind !== "connected") return;
    unsubscribe();
    act();
  });
  return unsubscribe;
}

/** Ctrl-C before the server has answered, which is carried out afterwards. A second one ends this process. */
function earlyInterrupt(terminal: Terminal): { readonly end: () => boolean } {
  let isInterrupted = false;
  const hear = (): void => {
    isInterrupted = true;
    terminal.tell(
      "Stopping, as soon as the server has answered. Once more ends this command alone.",
      "yellow",
    );
  };
  process.once("SIGINT", hear);
  return {
    end: () => {
      process.off("SIGINT", hear);
      return isInterrupted;
    },
  };
}

export type AttachFlags = FollowFlags & {
  readonly conversation: string;
  /** The number of the last event that the caller has; null: the last run is shown. */
  readonly after: number | null;
};

/** @throws Refused, Unreachable, UsageError */
export async function attach(terminal: Terminal, server: Server, flags: AttachFlags): Promise<ExitCode> {
  const client = clientFor(terminal, server, flags.format);
  try {
    const conversation = await conversationOf(client, flags.conversation);
    const { id } = conversation;
    if (flags.after === null) client.open(id);
    else client.open(id, { conversation, after: flags.after });
    const from = flags.after === null ? ("last run" as const) : 0;
    const printer = flags.format === "text" ? new Printer(terminal, { from, without: null }) : null;
    const options = { ...flags, server, messageId: null, printer, stopsRun: false, isInterrupted: false };
    return await stay(client, terminal, id, options);
  } finally {
    client.end();
    await terminal.flush();
  }
}

function clientFor(terminal: Terminal, server: Server, format: Format): Client {
  return createClient(server, {
    list: false,
    onEvent: (_id, { name, data }, number) => {
      if (format === "stream-json") terminal.data(JSON.stringify({ number, event: name, data }));
    },
  });
}

type StayOptions = FollowFlags & {
  readonly server: Server;
  readonly messageId: string | null;
  readonly printer: Printer | null;
  readonly stopsRun: boolean;
  readonly isInterrupted: boolean;
};

async function stay(client: Client, terminal: Terminal, id: string, options: StayOptions): Promise<ExitCode> {
  const {
    format,
    server,
    onApproval,
    ask,
    askToken,
    patience,
    timeout,
    messageId,
    printer,
    stopsRun,
    isInterrupted,
  } = options;
  const followed = await follow({
    client,
    server,
    terminal,
    id,
    messageId,
    printer,
    onApproval,
    ask,
    askToken,
    patience: patience * 1000,
    timeout: timeout === null ? null : timeout * 1000,
    stopsRun,
    isInterrupted,
  });
  terminal.endLine();
  const model = client.models.conversation(id);
  if (format === "json") terminal.data(JSON.stringify({ ...endingOf(id, followed), ...shownOf(model) }));
  tellEnd(terminal, id, followed);
  return followed.code;
}

/** The report of `--json` (docs/command-line.md): how the command ended, and what is known of the conversation. */
const endingOf = (id: string, { code, outcome }: Followed): object => ({
  conversationId: id,
  outcome: outcome?.kind ?? OUTCOMES[code] ?? "failed",
  exitCode: code,
});

function shownOf(model: ConversationModel): object {
  if (model.kind !== "loaded") return {};
  const { conversation, messages } = model;
  const { title, cwd, mode, state, usage, spent } = conversation;
  const answer = messages.findLast(({ type }) => type === "agent");
  const text =
    answer?.type === "agent"
      ? answer.content.map(({ text }) => (typeof text === "string" ? text : "")).join("")
      : "";
  return { text, title, cwd, mode, state, usage, spent };
}

/** Of a command that ended before the run. */
const OUTCOMES: { readonly [code: number]: string } = {
  [EXIT.waits]: "waits",
  [EXIT.unreachable]: "unreachable",
  [EXIT.unauthorized]: "unauthorized",
  [EXIT.cancelled]: "cancelled",
};

function tellEnd(terminal: Terminal, id: string, { code, outcome }: Followed): void {
  switch (code) {
    case EXIT.cancelled:
    case EXIT.timeout:
      return terminal.tell(`Go on with: bedrock run -c ${id} "…"`);
    case EXIT.unreachable:
      return terminal.tell(`Follow it again with: bedrock attach ${id}`);
    case EXIT.exhausted:
      return terminal.tell(`The context is used up. Go on with: bedrock new --continue ${id}`, "yellow");
    case EXIT.failed:
      if (outcome?.kind === "held")
        terminal.tell(
          `The message waits (${outcome.reason}). Let it go on with: bedrock release ${id}`,
          "yellow",
        );
      return;
    case EXIT.done:
    case EXIT.waits:
    case EXIT.usage:
    case EXIT.unauthorized:
      return;
  }
}
