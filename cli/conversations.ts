/** Owns: the commands that do one thing to conversations and end: list, new, send, cancel, decide, mode, wrap up. */
import { setTimeout as pause } from "node:timers/promises";
import { allConversations } from "../client/all-conversations.ts";
import { describeState } from "../client/phase.ts";
import { makeConversation, newId, type Calls, type Server } from "../client/index.ts";
import type { Decision } from "./approval.ts";
import type { Candidates } from "./completion.ts";
import { sendDecision, type AskToken } from "./decide.ts";
import { UsageError } from "./exit-codes.ts";
import { readImage } from "./images.ts";
import { conversationOf } from "./server.ts";
import type { Terminal } from "./terminal.ts";

/** What a command needs: where it prints, whether as JSON, and the server. */
export type Context = { readonly terminal: Terminal; readonly calls: Calls; readonly isJson: boolean };

/** What a decision needs besides: whom to ask for a token. */
export type DecisionContext = Context & { readonly server: Server; readonly askToken: AskToken | null };

/** As much of an id as differs between conversations that were not made in the same millisecond. */
const SHORT_ID = 13;

export async function list({ terminal, calls, isJson }: Context, archived: boolean): Promise<void> {
  const conversations = await allConversations(calls.call, archived ? "all" : "false");
  if (isJson) {
    terminal.data(JSON.stringify({ conversations }));
    return;
  }
  if (conversations.length === 0) terminal.tell('There is no conversation yet. Begin one: bedrock run "…"');
  for (const { id, title, cwd, state, mode, updatedAt } of conversations) {
    const at = updatedAt.slice(0, 16).replace("T", " ");
    const isOpen = mode === "unrestricted";
    terminal.words(
      `${id.slice(0, SHORT_ID)}  ${at}  ${describeState(state).padEnd(14)}  ${isOpen ? "U" : "R"}  ${oneLine(title)}  (${oneLine(cwd)})\n`,
    );
  }
}

/** Milliseconds that a person who has pressed Tab waits. */
const PRESS_WITHIN = 2_000;
/** Of so many conversations a person can choose. */
const CHOICE = 100;

/** One line for each candidate: the word, a tab, what it is. Of conversations, the newest. */
export async function complete(
  { terminal, calls: { call } }: Context,
  candidates: Candidates,
): Promise<void> {
  const print = (word: string, description: string) =>
    terminal.words(`${word}${description === "" ? "" : `\t${description}`}\n`);
  switch (candidates.kind) {
    case "anything":
      return;
    case "words":
      for (const { word, description } of candidates.words) print(word, description);
      return;
    case "conversations": {
      const { before, beginning } = candidates;
      const query = { archived: "false", limit: String(CHOICE) } as const;
      const asked = call((routes) => routes.conversations.$get({ query }));
      // Nobody can type as long as the shell waits.
      const answer = await Promise.race([asked, pause(PRESS_WITHIN)]);
      for (const { id, title } of answer?.conversations ?? [])
        if (id.startsWith(beginning)) print(`${before}${shortOf(id, beginning)}`, oneLine(title));
    }
  }
}

/** As long as what the person has typed of it, at least. */
const shortOf = (id: string, typed: string): string => id.slice(0, Math.max(SHORT_ID, typed.length));

const oneLine = (text: string): string => text.replaceAll(/\s+/g, " ");

export type NewOptions = {
  readonly cwd: string | null;
  readonly host: string | null;
  readonly model: string | null;
  readonly title: string | null;
  /** The conversation that it continues. */
  readonly continues: string | null;
  /** Whether it begins with the summary of that one. */
  readonly seed: boolean;
};

export async function create({ terminal, calls, isJson }: Context, options: NewOptions): Promise<void> {
  const { cwd, host, model, title, continues, seed } = options;
  const from = continues === null ? null : (await conversationOf(calls, continues)).id;
  const json = {
    id: newId(),
    ...(cwd === null ? (from === null ? { cwd: process.cwd() } : {}) : { cwd }),
    ...(host === null ? {} : { host }),
    ...(model === null ? {} : { model }),
    ...(title === null ? {} : { title }),
    ...(from === null ? {} : { continuedFrom: { id: from, seed } }),
  };
  const made = await makeConversation(calls, json);
  terminal.data(isJson ? JSON.stringify(made) : made.id);
}

export type Delivery = "direct" | "steer" | "followUp";

export async function send(
  { terminal, calls, isJson }: Context,
  given: string,
  text: string,
  options: { readonly delivery: Delivery | null; readonly images: readonly string[] },
): Promise<void> {
  const { delivery } = options;
  const images = options.images.map(readImage);
  const { id } = await conversationOf(calls, given);
  const json = {
    id: newId(),
    text,
    ...(images.length === 0 ? {} : { images }),
    ...(delivery === null ? {} : { delivery }),
  };
  const sent = await calls.persist((routes) =>
    routes.conversations[":id"].messages.$post({ param: { id }, json }),
  );
  terminal.data(isJson ? JSON.stringify(sent) : sent.messageId);
}

export async function cancel(
  { terminal, calls, isJson }: Context,
  given: string,
  queue: "run" | "hold" | "clear",
): Promise<void> {
  const { id } = await conversationOf(calls, given);
  const answer = await calls.persist((routes) =>
    routes.conversations[":id"].cancel.$post({ param: { id }, json: { queue } }),
  );
  if (isJson) {
    terminal.data(JSON.stringify(answer));
    return;
  }
  terminal.tell(answer.state.kind === "cancelling" ? "Stopping." : "Nothing runs any more.");
}

export async function release({ terminal, calls, isJson }: Context, given: string): Promise<void> {
  const { id } = await conversationOf(calls, given);
  const answer = await calls.persist((routes) =>
    routes.conversations[":id"].queue.release.$post({ param: { id } }),
  );
  if (isJson) {
    terminal.data(JSON.stringify(answer));
    return;
  }
  terminal.tell("What waits goes on.");
}

/** @throws UsageError where nothing waits for a decision */
export async function decide(
  { terminal, calls, isJson, server, askToken }: DecisionContext,
  given: string,
  decision: Decision,
): Promise<void> {
  const { id, state } = await conversationOf(calls, given);
  if (state.kind !== "awaiting_mode_approval")
    throw new UsageError(`The conversation waits for no approval: ${describeState(state)}.`);
  const { signal } = new AbortController();
  const answer = await sendDecision(
    { calls, server, askToken },
    { id, decision, toolCallId: state.toolCall.id, signal },
  );
  if (isJson) {
    terminal.data(JSON.stringify(answer));
    return;
  }
  terminal.tell(
    decision === "approve"
      ? `Allowed: ${state.reason}\nIts commands have your rights now. Back to Restricted: bedrock mode ${id} restricted`
      : "Denied.",
  );
}

export async function restrict({ terminal, calls, isJson }: Context, given: string): Promise<void> {
  const { id } = await conversationOf(calls, given);
  const answer = await calls.persist((routes) =>
    routes.conversations[":id"].mode.$post({ param: { id }, json: { mode: "restricted" } }),
  );
  if (isJson) {
    terminal.data(JSON.stringify(answer));
    return;
  }
  terminal.tell("Restricted: its next commands can read, and change nothing.");
}

export async function wrapUp({ terminal, calls, isJson }: Context, given: string): Promise<void> {
  const { id } = await conversationOf(calls, given);
  const answer = await calls.persist((routes) =>
    routes.conversations[":id"].continuation.$post({ param: { id } }),
  );
  if (isJson) {
    terminal.data(JSON.stringify(answer));
    return;
  }
  terminal.tell(`It writes a summary. Then go on with: bedrock new --continue ${id}`);
}
