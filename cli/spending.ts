/** Owns: `bedrock spending`: what was spent today, or by a conversation, and the limits on it. */
import { limitInWords, spentInWords } from "../client/spending.ts";
import type { Context } from "./conversations.ts";
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
  const { id } = await conversationOf(calls, given);
  const [{ spent }, { conversation }] = await Promise.all([
    calls.call((routes) => routes.conversations[":id"].$get({ param: { id } })),
    calls.call((routes) => routes.spending.$get()),
  ]);
  const { limit } = conversation;
  terminal.data(
    isJson
      ? JSON.stringify({ conversationId: id, spent, limit })
      : `This conversation and its sub-agents: ${spentInWords(spent)}. Limit: ${limitInWords(limit) ?? "none"}.`,
  );
}
