/**
 * Owns: a conversation of thousands of messages, stored in seconds: through the commit, but without a workflow. The next
 * message to it starts one from its row. Rounds of tools, Markdown and diffs alternate as in real work.
 */
import { commit } from "../../db/commit.ts";
import type { Database } from "../../db/connect.ts";
import { signThinking } from "../../local/scripted/signature.ts";
import { newConversation } from "../../machine/conversation.ts";
import type { JsonObject, Message, MessageBody, ToolDisplay, ToolStatus } from "../../machine/message.ts";
import { chain, configOf, message, newId } from "../db/records.ts";

/** A turn has ten messages, and six calls. */
export const MESSAGES_A_TURN = 10;
export const CALLS_A_TURN = 6;
/** Turns of one commit. */
const TURNS_A_COMMIT = 20;
const MODEL = "claude-opus-4-8";
const EMPTY = newConversation("unrestricted", 1_000_000);

export type Stored = {
  readonly id: string;
  /** The text of the first message, and of the last. */
  readonly first: string;
  readonly last: string;
};

/** @param turns at least one */
export async function storeLong(
  db: Database,
  { title, host, cwd, turns }: { title: string; host: string; cwd: string; turns: number },
): Promise<Stored> {
  const id = newId();
  const revisions = chain(
    Array.from({ length: turns }, (_, turn) => ({
      conversation: { ...EMPTY, hasMessages: true, sequence: (turn + 1) * MESSAGES_A_TURN },
      messages: messagesOf(title, turn, `${id}-${turn}`),
    })),
  );
  for (let from = 0; from < turns; from += TURNS_A_COMMIT) {
    const { diverged } = await commit(db, id, revisions.slice(from, from + TURNS_A_COMMIT), {
      config: configOf(id, { cwd, host, model: MODEL }),
      title,
    });
    if (diverged) throw new Error(`the conversation was not stored from turn ${from} on`);
  }
  return { id, first: questionOf(title, 0), last: closingOf(title, turns - 1) };
}

const questionOf = (title: string, turn: number): string => `Question ${turn} of ${title}: how does it work?`;
const closingOf = (title: string, turn: number): string => `That was part ${turn} of ${title}.`;

function messagesOf(title: string, turn: number, id: string): readonly Message[] {
  const thinking = `Part ${turn} is in three places.`;
  const bodies: readonly MessageBody[] = [
    {
      type: "user",
      actor: "human",
      content: [{ type: "text", text: questionOf(title, turn) }],
      display: { kind: "direct" },
    },
    agent(`${id}-a`, [
      { type: "thinking", thinking, signature: signThinking(thinking) },
      { type: "text", text: `I look at part ${turn}.` },
      call(`${id}-1`, "read", { path: `src/part-${turn}.ts` }),
      call(`${id}-2`, "grep", { pattern: `part${turn}`, path: "src" }),
      call(`${id}-3`, "bash", { command: `npm test -- part-${turn}` }),
    ]),
    result(`${id}-1`, "read", linesOf(turn, 40)),
    result(`${id}-2`, "grep", linesOf(turn, 6)),
    result(`${id}-3`, "bash", linesOf(turn, 25), turn % 7 === 0 ? "failed" : "completed"),
    agent(`${id}-b`, [
      { type: "text", text: `It is in \`src/part-${turn}.ts\`. I change it and look again.` },
      call(`${id}-4`, "write", { path: `src/part-${turn}.ts`, content: "" }),
      call(`${id}-5`, "bash", { command: `npm test -- part-${turn}` }),
      call(`${id}-6`, "bash", { command: "git diff --stat" }),
    ]),
    result(`${id}-4`, "write", "Written.", "completed", diffOf(turn)),
    result(`${id}-5`, "bash", linesOf(turn, 25)),
    result(`${id}-6`, "bash", linesOf(turn, 3)),
    agent(`${id}-c`, [{ type: "text", text: answerOf(title, turn) }]),
  ];
  return bodies.map((body, at) => message(turn * MESSAGES_A_TURN + at + 1, body));
}

const USAGE = { inputTokens: 900, outputTokens: 100, cacheReadTokens: 0, cacheCreationTokens: 0 };

const agent = (requestId: string, content: readonly (JsonObject & { type: string })[]): MessageBody => ({
  type: "agent",
  actor: "llm_agent",
  content,
  usage: USAGE,
  display: { requestId, stopReason: "tool_use", durationMs: 1_200 },
});

const call = (id: string, name: string, input: JsonObject) => ({ type: "tool_use", id, name, input });

const result = (
  toolCallId: string,
  name: string,
  text: string,
  status: ToolStatus = "completed",
  display: ToolDisplay | null = null,
): MessageBody => ({
  type: "tool",
  actor: "system",
  content: [{ toolCallId, name, status, output: [{ type: "text", text }], durationMs: 40 }],
  ...(display === null ? {} : { display }),
});

const linesOf = (turn: number, count: number): string =>
  Array.from({ length: count }, (_, line) => `${line}: part ${turn} has a line like this one.`).join("\n");

const diffOf = (turn: number): ToolDisplay => ({
  diffs: [
    {
      path: `/home/me/app/src/part-${turn}.ts`,
      change: "modified",
      diff: `@@ -1,3 +1,3 @@\n export const a = 1;\n-export const b = 2;\n+export const b = ${turn};\n export const c = 3;\n`,
      addedLines: 1,
      removedLines: 1,
      truncated: false,
    },
  ],
});

const answerOf = (title: string, turn: number): string =>
  [
    `## Part ${turn}`,
    `It **works** like this, in ${(turn % 4) + 2} steps:`,
    Array.from(
      { length: (turn % 4) + 2 },
      (_, at) => `- step ${at}, with \`code\` and *words* about it`,
    ).join("\n"),
    `\`\`\`ts\nexport function part${turn}(value: number): number {\n  return value * ${turn};\n}\n\`\`\``,
    closingOf(title, turn),
  ].join("\n\n");
