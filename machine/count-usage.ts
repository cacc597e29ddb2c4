/** Owns: what a response's token counts change (REQ-BED-012), and the warning, which is sent once (REQ-BED-023). */
import type { Draft } from "./draft.ts";
import type { TokenUsage } from "./message.ts";
import { afterResponse, contextRatio, isWarning } from "./usage.ts";

type Counted = { readonly usage: TokenUsage; readonly contextWindow?: number };

/** `contextWindow` is the one known when the model answered; without it, the one known when the workflow run began. */
export function countUsage(
  draft: Draft,
  { usage: response, contextWindow = draft.context.contextWindow }: Counted,
): void {
  const { conversation } = draft;
  const usage = afterResponse(conversation.usage, response, contextWindow);
  draft.set({ usage, lastUsage: response });
  if (conversation.warned || !isWarning(usage.contextUsed, contextWindow)) return;
  draft.set({ warned: true });
  const ratio = contextRatio(usage.contextUsed, contextWindow);
  draft.notify({ name: "context.warned", data: { contextRatio: ratio } });
}
