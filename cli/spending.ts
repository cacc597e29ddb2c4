/** Owns: `bedrock spending`: what was spent today, or by a conversation, and the limits on it. */
import { limitInWords, spentInWords } from "../client/spending.ts";
import type { Context } from "./conversations.ts";
import { UsageError } from "./exit-codes.ts";
import { conversationOf } from "./server.ts";

/** @param given null: today, by all conversations */
export async function spending({ terminal, calls, isJson }: Context, given: string | null): Promise<void> {
  if (given === null) {
    const report = await calls.call((routes) => routes.spending.$get());
    const { date, spent, limit } = report.day;
    terminal.data(
      isJson
        ? JSON.stringify(report)
        : `Today (${date} UTC), all conversations: ${spentInWords(spent)}. Limit: ${limitInWords(limit) ?? "none"}.`,
    );
    return;
  }
  const { id, spent, parentId } = await conversationOf(calls, given);
  if (spent === null)
    throw new UsageError(
      `It is a sub-agent: what it spends counts with its parent. \`bedrock spending ${parentId ?? ""}\` shows that.`,
    );
  const { limit } = (await calls.call((routes) => routes.spending.$get())).conversation;
  terminal.data(
    isJson
      ? JSON.stringify({ conversationId: id, spent, limit })
      : `This conversation and its sub-agents: ${spentInWords(spent)}. Limit: ${limitInWords(limit) ?? "none"}.`,
  );
}
