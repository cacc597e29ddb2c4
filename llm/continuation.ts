/**
 * Owns: the request for the summary that ends a conversation (REQ-BED-020). It has no tools, and the history as one
 * text, trimmed so that it always fits the model's window.
 */
import type { MessageCreateParamsStreaming } from "@anthropic-ai/sdk/resources/messages";
import { plainText, type Block, type Message, type ProviderBlock } from "../machine/message.ts";
import type { Model } from "./models.ts";

export type ContinuationInput = {
  /** Ascending; the beginning and the end of a long history are enough (`shareOfRoom`). */
  readonly messages: readonly Message[];
  readonly model: Model;
  /** Names of the calls that were requested and not executed. */
  readonly rejectedTools: readonly string[];
};

const SYSTEM =
  "You write the summary with which the work of a coding agent is handed over to a new conversation. You have no tools; answer with the summary alone.";

const PROMPT = `The conversation context is nearly full. Please provide a brief continuation summary that could seed a new conversation.

Include:
1. Current task status (if any)
2. Key files or concepts discussed
3. Suggested next steps

Keep your response concise.`;

/** Tokens for the summary; at most a quarter of a small window. */
const SUMMARY_TOKENS = 16_000;
/** The history may take this part of the remaining window, because our count of tokens differs from the provider's. */
const SAFETY = 0.8;
/** No single message may take more than this part of the history. */
const LARGEST_SHARE = 1 / 8;

/** The request for a continuation summary; its history fits the model's window. */
export function buildContinuationRequest(input: ContinuationInput): MessageCreateParamsStreaming {
  const prompt = continuationPrompt(input.rejectedTools);
  const budget = (roomOf(input.model) - estimateTokens(SYSTEM + prompt)) * SAFETY;
  return {
    model: input.model.id,
    max_tokens: summaryTokensOf(input.model),
    system: SYSTEM,
    messages: [
      {
        role: "user",
        content: [
          { type: "text", text: `<conversation>\n${trimHistory(input.messages, budget)}\n</conversation>` },
          { type: "text", text: prompt },
        ],
      },
    ],
    stream: true,
  };
}

const summaryTokensOf = ({ contextWindow, maxOutputTokens }: Model): number =>
  Math.min(SUMMARY_TOKENS, maxOutputTokens, Math.floor(contextWindow / 4));

const roomOf = (model: Model): number => model.contextWindow - summaryTokensOf(model);

/**
 * An upper bound of the share that these messages take of the room for a history. A caller that reads the newest
 * messages first has read enough at 1.
 */
export function shareOfRoom(messages: readonly Message[], model: Model): number {
  const room = roomOf(model) * SAFETY;
  const tokens = messages.map((message) => Math.min(estimateTokens(render(message)), room * LARGEST_SHARE));
  return tokens.reduce((sum, each) => sum + each, 0) / room;
}

/** A response may have many calls, with long names. */
const MAX_NAMED = 20;
const MAX_NAME_TOKENS = 80;

function continuationPrompt(rejectedTools: readonly string[]): string {
  if (rejectedTools.length === 0) return PROMPT;
  const named = rejectedTools.slice(0, MAX_NAMED).map((name) => `- ${shorten(name, MAX_NAME_TOKENS)}`);
  const more = rejectedTools.length - named.length;
  const names = [...named, ...(more > 0 ? [`- … and ${more} more`] : [])].join("\n");
  return `${PROMPT}\n\nNote: The following tool calls were requested but not executed due to context limits:\n${names}`;
}

/** Keeps the first message, which holds the task, and as many of the newest as fit; the oldest are left out first. */
function trimHistory(messages: readonly Message[], budget: number): string {
  const largest = budget * LARGEST_SHARE;
  const firstIndex = messages.findIndex((message) => render(message) !== "");
  const first = messages[firstIndex];
  if (first === undefined) return "(empty)";
  const head = shorten(render(first), largest);
  let left = budget - estimateTokens(head) - 100;
  const tail: string[] = [];
  let oldest = (messages.at(-1)?.sequence ?? 0) + 1;
  for (const message of messages.slice(firstIndex + 1).reverse()) {
    const text = shorten(render(message), largest);
    left -= text === "" ? 0 : estimateTokens(text) + 2;
    if (left < 0) break;
    if (text !== "") tail.push(text);
    oldest = message.sequence;
  }
  const omitted = oldest - first.sequence - 1;
  if (omitted > 0) tail.push(`[… ${omitted} messages left out …]`);
  return [head, ...tail.reverse()].join("\n\n");
}

/** One message as text; empty for a message that the model never saw. */
function render(message: Message): string {
  switch (message.type) {
    case "user":
      return `User:\n${renderBlocks(message.content)}`;
    case "system":
      return `System:\n${renderBlocks(message.content)}`;
    case "agent": {
      const text = message.content.map(renderProviderBlock).filter((part) => part !== "");
      return text.length === 0 ? "" : `Agent:\n${text.join("\n")}`;
    }
    case "tool": {
      const [outcome] = message.content;
      return `Tool ${outcome.name} (${outcome.status}):\n${renderBlocks(outcome.output)}`;
    }
    case "note":
    case "error":
    case "continuation":
    case "run_stop":
      return "";
  }
}

const renderBlocks = (blocks: readonly Block[]): string => plainText(blocks) || "(nothing)";

/** Thinking is left out: it is not needed for a summary, and may be unreadable. */
function renderProviderBlock(block: ProviderBlock): string {
  if (block.type === "text" && typeof block["text"] === "string") return block["text"].trim();
  if (block.type === "tool_use")
    return `[calls ${JSON.stringify(block["name"])} ${JSON.stringify(block["input"])}]`;
  return "";
}

/** More tokens than the note on the cut has. */
const CUT_NOTE_TOKENS = 50;

/** A text of at most `tokens`, cut in its middle. */
function shorten(text: string, tokens: number): string {
  const estimate = estimateTokens(text);
  if (estimate <= tokens) return text;
  // Dense text may sit at either end, so a proportional cut can still be too long; each round at least halves it.
  const keep = Math.floor((text.length * (tokens - CUT_NOTE_TOKENS)) / estimate / 2);
  if (keep <= 0) return "[…]";
  const cut = wellFormed(
    `${text.slice(0, keep)}\n[… ${text.length - 2 * keep} characters cut …]\n${text.slice(-keep)}`,
  );
  return estimateTokens(cut) <= tokens ? cut : shorten(cut.slice(0, keep), tokens);
}

/** A cut may halve a surrogate pair, which the provider refuses. */
const wellFormed = (text: string): string => text.replace(/\p{Surrogate}/gu, "\ufffd");

/**
 * An upper estimate of a text's tokens. A tokenizer never makes more tokens than UTF-8 bytes. In every text that people
 * or programs write, a token holds at least two letters or blanks.
 */
export function estimateTokens(text: string): number {
  let halves = 0;
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index);
    if (code > 0x7ff)
      halves += code >= 0xd800 && code <= 0xdfff ? 4 : 6; // a surrogate is half of four bytes
    else if (code > 0x7f) halves += 4;
    else halves += isLetterOrBlank(code) ? 1 : 2;
  }
  return Math.ceil(halves / 2);
}

function isLetterOrBlank(code: number): boolean {
  return code === 0x20 || code === 0x0a || (code >= 0x61 && code <= 0x7a) || (code >= 0x41 && code <= 0x5a);
}
