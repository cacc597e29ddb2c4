/** Owns: a whole conversation as a file: as Markdown for people, as JSON for programs; and its cycles. */
import type { Calls, Conversation, Message } from "../client/index.ts";
import { Transcript, type Call, type Row } from "../client/transcript.ts";
import type { Context } from "./conversations.ts";
import { conversationOf } from "./server.ts";

/** Messages of one request. */
const PAGE = 1000;

export async function exportConversation({ terminal, calls, isJson }: Context, given: string): Promise<void> {
  const conversation = await conversationOf(calls, given);
  const messages = await allMessages(calls, conversation.id);
  if (isJson) terminal.data(JSON.stringify({ conversation, messages }));
  else terminal.data(markdownOf(conversation, messages));
}

async function allMessages({ call }: Calls, id: string): Promise<readonly Message[]> {
  const messages: Message[] = [];
  for (;;) {
    const query = { after: String(messages.at(-1)?.sequence ?? 0), limit: String(PAGE) };
    const page = await call((routes) => routes.conversations[":id"].messages.$get({ param: { id }, query }));
    // The same type: hono only writes "any JSON value" in another way.
    messages.push(...(page.messages as readonly Message[]));
    if (page.messages.length < PAGE) return messages;
  }
}

/** The conversation as a person reads it. Pure. */
function markdownOf(conversation: Conversation, messages: readonly Message[]): string {
  const { title, cwd, model, id, createdAt } = conversation;
  const head = `# ${title}\n\n${cwd} · ${model} · ${createdAt.slice(0, 10)} · ${id}`;
  const rows = new Transcript().rowsOf(messages).map(rowText);
  return [head, ...rows.filter((text) => text !== "")].join("\n\n");
}

function rowText(row: Row): string {
  switch (row.kind) {
    case "user":
      return `## You\n\n${blocksText(row.message.content)}`;
    case "text":
      return row.text.trim();
    case "thinking":
      return row.text === "" ? "" : `<details><summary>Thought</summary>\n\n${row.text.trim()}\n\n</details>`;
    case "calls":
      return row.calls.map(callText).join("\n\n");
    case "sub_agents":
      return callText(row.call);
    case "system":
    case "note":
      return quoted(blocksText(row.message.content));
    case "error":
      return quoted(`Error: ${row.message.content[0].message}`);
    case "summary":
      return `## Summary\n\n${row.message.content[0].summary}`;
    case "run_stop":
      return row.message.content[0].reason === "completed"
        ? ""
        : quoted(row.message.content[0].reason === "interrupted" ? "Stopped." : "Ended by an error.");
  }
}

function callText({ name, input, outcome, diffs }: Call): string {
  const parts = [`**${name}** ${outcome === null ? "(no result)" : `(${outcome.status})`}`];
  parts.push(fence(typeof input === "string" ? input : JSON.stringify(input, null, 2), "json"));
  for (const { diff } of diffs) parts.push(fence(diff.trimEnd(), "diff"));
  if (outcome !== null && diffs.length === 0) parts.push(fence(blocksText(outcome.output).trimEnd(), ""));
  return parts.join("\n\n");
}

const blocksText = (blocks: readonly { readonly type: string; readonly text?: string }[]): string =>
  blocks.map((block) => block.text ?? `[${block.type}]`).join("\n\n");

const quoted = (text: string): string =>
  text
    .split("\n")
    .map((line) => `> ${line}`.trimEnd())
    .join("\n");

/** A fence that is longer than any in the text, so that nothing in it ends it. */
function fence(text: string, language: string): string {
  const longest = Math.max(2, ...[...text.matchAll(/`+/g)].map(([ticks]) => ticks.length));
  const marks = "`".repeat(longest + 1);
  return `${marks}${language}\n${text}\n${marks}`;
}

export async function cycles(
  { terminal, calls, isJson }: Context,
  given: string,
  view: "steps" | "rounds",
): Promise<void> {
  const { id } = await conversationOf(calls, given);
  const answer = await calls.call((routes) =>
    routes.conversations[":id"].cycles.$get({ param: { id }, query: { view } }),
  );
  if (isJson) {
    terminal.data(JSON.stringify(answer));
    return;
  }
  for (const cycle of answer.cycles) terminal.data(JSON.stringify(cycle, null, 2));
}
