/** Owns: lists of stored messages for the tests of the request cycles, in a short notation. */
import type {
  Delivery,
  Message,
  MessageBody,
  ProviderBlock,
  RunStopReason,
  ToolStatus,
} from "../../machine/message.ts";
import { timestamp } from "../../machine/ids.ts";
import { usage } from "./states.ts";
import { START } from "./support.ts";

/** A message without a place in a list yet. */
export type Item = MessageBody & { readonly id: string };

export const user = (
  id: string,
  kind: Delivery = "direct",
  actor: "human" | "llm_agent" = "human",
): Item => ({
  id,
  type: "user",
  actor,
  content: [{ type: "text", text: `text of ${id}` }],
  display: { kind },
});

/** An answer to the request `r-<id>`, which took 5 ms. */
export const agent = (id: string, ...content: ProviderBlock[]): Item => ({
  id,
  type: "agent",
  actor: "llm_agent",
  content,
  usage: usage(),
  display: { requestId: `r-${id}`, stopReason: "end_turn", durationMs: 5 },
});
export const text = (words: string): ProviderBlock => ({ type: "text", text: words });
export const thinking = (words: string): ProviderBlock => ({
  type: "thinking",
  thinking: words,
  signature: "s",
});
export const redacted: ProviderBlock = { type: "redacted_thinking", data: "…" };
export const use = (id: string, name = "bash"): ProviderBlock => ({
  type: "tool_use",
  id,
  name,
  input: { of: id },
});

/** The result of a call; its message has the id `<call>!`. */
export const result = (call: string, status: ToolStatus = "completed", durationMs = 7): Item => ({
  id: `${call}!`,
  type: "tool",
  actor: "system",
  content: [
    { toolCallId: call, name: "bash", status, output: [{ type: "text", text: "output" }], durationMs },
  ],
});

const words = [{ type: "text", text: "words" }] as const;
export const system = (id: string): Item => ({ id, type: "system", actor: "system", content: words });
export const note = (id: string): Item => ({ id, type: "note", actor: "system", content: words });
export const failure = (id: string): Item => ({
  id,
  type: "error",
  actor: "system",
  content: [{ errorKind: "network", message: "no network" }],
});
export const summary = (id: string): Item => ({
  id,
  type: "continuation",
  actor: "llm_agent",
  content: [{ summary: "all said" }],
});
export const stop = (id: string, reason: RunStopReason = "completed"): Item => ({
  id,
  type: "run_stop",
  actor: "system",
  content: [{ reason }],
});

/** When the `n`th message of a list was created. */
export const time = (n: number): string => timestamp(START + n * 1_000);

/** The messages as they are stored: numbered, one second apart, each with the id of its run's root. */
export function list(...items: readonly Item[]): Message[] {
  let run: string | null = null;
  return items.map((item, index) => {
    if (item.type === "user" && item.display.kind !== "steer") run = item.id;
    const message = { ...item, sequence: index + 1, cycleId: run, createdAt: time(index + 1) };
    if (item.type === "run_stop") run = null;
    return message;
  });
}
