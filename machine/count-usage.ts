/** Owns: what a response's token counts change (REQ-BED-012), and the warning that is said once (REQ-BED-023). */
import type { Draft } from "./draft.ts";
import type { TokenUsage } from "./message.ts";
import { afterResponse, contextRatio, isWarning } from "./usage.ts";

export function countUsage(draft: Draft, response: TokenUsage): void {
  const { conversation, context } = draft;
  const { contextWindow } = context;
  const usage = afterResponse(conversation.usage, response, contextWindow);
  draft.set({ usage, lastUsage: response });
  if (conversation.warned || !isWarning(usage.contextUsed, contextWindow)) return;
  draft.set({ warned: true });
  const ratio = contextRatio(usage.contextUsed, contextWindow);
  draft.notify({ name: "context.warned", data: { contextRatio: ratio } });
}
