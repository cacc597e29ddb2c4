/** Owns: `bedrock run` and `bedrock attach`: one run from its message, or from where it is, to its end. */
import {
  createClient,
  newId,
  type Client,
  type Conversation,
  type LoadedConversation,
} from "../client/index.ts";
import type { Server } from "../client/index.ts";
import { EXIT, type ExitCode } from "./exit-codes.ts";
import { follow, type Ask, type Followed, type OnApproval } from "./follow.ts";
import { readImage } from "./images.ts";
import { Printer } from "./printer.ts";
import { conversationOf } from "./server.ts";
import type { Terminal } from "./terminal.ts";

export type Format = "text" | "json" | "stream-json";

type FollowFlags = {
  readonly format: Format;
  readonly onApproval: OnApproval;
  readonly ask: Ask;
  /** Seconds. */
  readonly patience: number;
  /** Seconds; null: as long as it takes. */
  readonly timeout: number | null;
};

export type RunFlags = FollowFlags & {
  readonly prompt: string;
  /** Null: a new conversation. */
  readonly conversation: string | null;
  readonly cwd: string;
  readonly model: string | null;
  readonly images: readonly string[];
};

/** @throws Refused, Unreachable, UsageError */
export async function run(terminal: Terminal, server: Server, flags: RunFlags): Promise<ExitCode> {
  const messageId = newId();
  const images = flags.images.map(readImage);
  const message = { id: messageId, text: flags.prompt, ...(images.length === 0 ? {} : { images }) };
  const client = clientFor(terminal, server, flags.format);
  try {
    let conversation: Conversation;
    if (flags.conversation === null) {
      const json = {
        id: newId(),
        cwd: flags.cwd,
        message,
        ...(flags.model === null ? {} : { model: flags.model }),
      };
      conversation = (await client.call((routes) => routes.conversations.$post({ json }))) as Conversation;
      // All of it is of this command, from its first event on.
      client.open(conversation.id, { conversation, after: 0 });
    } else {
      conversation = await conversationOf(client, flags.conversation);
      const { id, lastEvent } = conversation;
      client.open(id, { conversation, after: lastEvent });
      await client.call((routes) =>
        routes.conversations[":id"].messages.$post({ param: { id }, json: message }),
      );
    }
    const { id, mode } = conversation;
    if (flags.format === "text") terminal.tell(`${id} · ${mode.toUpperCase()}`, "dim");
    // The person knows what they have said.
    const printer = flags.format === "text" ? new Printer(terminal, { from: 0, without: messageId }) : null;
    return await stay(client, terminal, id, { ...flags, messageId, printer, stopsRun: true });
  } finally {
    client.end();
    await terminal.flush();
  }
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
    const from = flags.format === "text" && flags.after === null ? await lastRunIn(client, id) : 0;
    const printer = flags.format === "text" ? new Printer(terminal, { from, without: null }) : null;
    return await stay(client, terminal, id, { ...flags, messageId: null, printer, stopsRun: false });
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

/** The sequence of the last message that began a run. */
function lastRunIn({ models }: Client, id: string): Promise<number> {
  return new Promise((resolve) => {
    const look = (): void => {
      const model = models.conversation(id);
      if (model.kind === "loading" && models.link.kind !== "unauthorized") return;
      unsubscribe();
      const messages = model.kind === "loaded" ? model.messages : [];
      const root = messages.findLast(({ type, id, cycleId }) => type === "user" && id === cycleId);
      resolve(root?.sequence ?? messages[0]?.sequence ?? 0);
    };
    const unsubscribe = models.subscribe(look);
    look();
  });
}

type StayOptions = FollowFlags & {
  readonly messageId: string | null;
  readonly printer: Printer | null;
  readonly stopsRun: boolean;
};

async function stay(client: Client, terminal: Terminal, id: string, options: StayOptions): Promise<ExitCode> {
  const { format, onApproval, ask, patience, timeout, messageId, printer, stopsRun } = options;
  const followed = await follow({
    client,
    terminal,
    id,
    messageId,
    printer,
    onApproval,
    ask,
    patience: patience * 1000,
    timeout: timeout === null ? null : timeout * 1000,
    stopsRun,
  });
  terminal.endLine();
  const model = client.models.conversation(id);
  if (format === "json" && model.kind === "loaded") terminal.data(JSON.stringify(reportOf(model, followed)));
  tellEnd(terminal, id, followed);
  return followed.code;
}

/** docs/command-line.md, `--json`. */
function reportOf({ conversation, messages }: LoadedConversation, { code, outcome }: Followed): object {
  const { id, title, cwd, mode, state, usage } = conversation;
  const answer = messages.findLast(({ type }) => type === "agent");
  const text =
    answer?.type === "agent"
      ? answer.content.map(({ text }) => (typeof text === "string" ? text : "")).join("")
      : "";
  return {
    conversationId: id,
    outcome: outcome?.kind ?? OUTCOMES[code] ?? "failed",
    exitCode: code,
    text,
    title,
    cwd,
    mode,
    state,
    usage,
  };
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
