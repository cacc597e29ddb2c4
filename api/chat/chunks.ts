/**
 * Owns: a run as the chunks of the AI SDK's UI message stream. Whoever makes them, and whenever, the nth chunk of a run
 * is the same, so that a client that has n of them can go on with any process. Therefore text is cut into cells of a
 * fixed length, and nothing of a command's output is told before its end. Pure.
 */
import { UPGRADE_TOOL } from "../../machine/control-tools.ts";
import {
  plainText,
  stringIn,
  type Block,
  type Message,
  type ProviderBlock,
  type ToolOutcome,
} from "../../machine/message.ts";
import type { LiveAnswer } from "../../protocol/live-text.ts";
import type { Run } from "./run.ts";

/** What `ai` calls a UIMessageChunk; those that are used here. */
export type Chunk =
  | { readonly type: "start"; readonly messageId: string }
  | { readonly type: "start-step" | "finish-step" }
  | { readonly type: "text-start" | "text-end" | "reasoning-start" | "reasoning-end"; readonly id: string }
  | { readonly type: "text-delta" | "reasoning-delta"; readonly id: string; readonly delta: string }
  | {
      readonly type: "tool-input-available";
      readonly toolCallId: string;
      readonly toolName: string;
      readonly input: unknown;
      readonly dynamic: true;
    }
  | { readonly type: "tool-approval-request"; readonly approvalId: string; readonly toolCallId: string }
  | { readonly type: "tool-approval-response"; readonly approvalId: string; readonly approved: boolean }
  | {
      readonly type: "tool-output-available";
      readonly toolCallId: string;
      readonly output: string;
      readonly dynamic: true;
    }
  | {
      readonly type: "tool-output-error";
      readonly toolCallId: string;
      readonly errorText: string;
      readonly dynamic: true;
    }
  /** What a person has said meanwhile by another client, and what the system remarks. */
  | {
      readonly type: "data-user" | "data-note";
      readonly id: string;
      readonly data: { readonly text: string };
    }
  | { readonly type: "abort" }
  | { readonly type: "error"; readonly errorText: string }
  | { readonly type: "finish"; readonly finishReason: "stop" | "tool-calls" | "error" | "other" };

export type Chunks = {
  readonly chunks: readonly Chunk[];
  /** Those before are of stored messages. Those from here on may vanish: the request may be tried again. */
  readonly stored: number;
  /** The last of them ends the response. */
  readonly isEnded: boolean;
};

/** UTF-16 code units of one chunk of text: about four words. */
const CELL = 24;

/** The id of the message that the run's answers make up, for the client. */
export const answerIdOf = (runId: string): string => `${runId}.answer`;

/** The run of such a message; null: the id is another. */
export const runIdOf = (answerId: string): string | null =>
  answerId.endsWith(".answer") ? answerId.slice(0, -".answer".length) : null;

/** The chunks of a run as it goes on. */
export class RunChunks {
  readonly #stored: Teller;
  #told = 0;

  /**
   * @param decided the call that asked for the approval after which they begin: a client that decides gets what
   *   follows; null: from the beginning
   */
  constructor(runId: string, decided: string | null) {
    this.#stored = new Teller([{ type: "start", messageId: answerIdOf(runId) }], decided, false);
  }

  /** The chunks so far. @param run each time the same one, further on */
  of({ messages, answer, state }: Run): Chunks {
    const stored = this.#stored;
    for (const message of messages.slice(this.#told)) stored.tell(message);
    this.#told = messages.length;
    const live = new Teller([], null, stored.isInStep);
    if (!stored.isEnded && answer !== null) live.tellLive(answer);
    if (!stored.isEnded && state.kind === "awaiting_mode_approval") live.askApproval(state.toolCall.id);
    return {
      chunks: [...stored.chunks, ...live.chunks],
      stored: stored.chunks.length,
      isEnded: stored.isEnded || live.isEnded,
    };
  }
}

class Teller {
  chunks: Chunk[];
  isInStep: boolean;
  isEnded = false;
  readonly #first: readonly Chunk[];
  readonly #decided: string | null;
  #error: string | null = null;

  constructor(first: readonly Chunk[], decided: string | null, isInStep: boolean) {
    this.#first = first;
    this.#decided = decided;
    this.chunks = [...first];
    this.isInStep = isInStep;
  }

  tell(message: Message): void {
    switch (message.type) {
      case "user":
        // The first one began the run: the client has sent it.
        if (message.id !== message.cycleId) this.#remark("data-user", message.id, message.content);
        return;
      case "agent":
        this.#startStep();
        for (const [index, block] of message.content.entries())
          this.#tellBlock(`${message.display.requestId}.${index}`, block);
        return;
      case "tool":
        this.#tellOutcome(message.content[0]);
        return;
      case "note":
        this.#remark("data-note", message.id, message.content);
        return;
      case "error":
        this.#error = message.content[0].message;
        return;
      case "continuation":
        this.#startStep();
        this.#tellText("text", message.id, message.content[0].summary);
        return;
      case "run_stop":
        this.#end(message.content[0].reason);
        return;
      // For the model.
      case "system":
        return;
    }
  }

  /** Whole cells only, but of a block that another one follows. */
  tellLive({ requestId, blocks }: LiveAnswer): void {
    this.#startStep();
    for (const [place, { kind, index, text }] of blocks.entries()) {
      const id = `${requestId}.${index}`;
      const isWhole = place < blocks.length - 1;
      this.#tellText(kind, id, isWhole ? text : text.slice(0, text.length - (text.length % CELL)), isWhole);
    }
  }

  askApproval(toolCallId: string): void {
    this.chunks.push({ type: "tool-approval-request", approvalId: toolCallId, toolCallId });
    this.#finish("tool-calls");
  }

  #startStep(): void {
    if (this.isInStep) this.chunks.push({ type: "finish-step" });
    this.chunks.push({ type: "start-step" });
    this.isInStep = true;
  }

  #tellBlock(id: string, block: ProviderBlock): void {
    switch (block.type) {
      case "text":
        this.#tellText("text", id, stringIn(block, "text"));
        return;
      case "thinking":
        this.#tellText("thinking", id, stringIn(block, "thinking"));
        return;
      case "tool_use":
        this.chunks.push({
          type: "tool-input-available",
          toolCallId: stringIn(block, "id"),
          toolName: stringIn(block, "name"),
          input: block["input"] ?? null,
          dynamic: true,
        });
        return;
      // The provider's other blocks say nothing to a person.
      default:
    }
  }

  /** @param isWhole false: more of it follows */
  #tellText(kind: "text" | "thinking", id: string, text: string, isWhole = true): void {
    if (text === "") return;
    const name = kind === "text" ? "text" : "reasoning";
    this.chunks.push({ type: `${name}-start`, id });
    for (let at = 0; at < text.length; at += CELL)
      this.chunks.push({ type: `${name}-delta`, id, delta: text.slice(at, at + CELL) });
    if (isWhole) this.chunks.push({ type: `${name}-end`, id });
  }

  #tellOutcome({ toolCallId, name, status, output }: ToolOutcome): void {
    if (name === UPGRADE_TOOL) {
      this.chunks.push(
        { type: "tool-approval-request", approvalId: toolCallId, toolCallId },
        { type: "tool-approval-response", approvalId: toolCallId, approved: status === "completed" },
      );
      if (toolCallId === this.#decided) this.chunks = [...this.#first];
    }
    const text = plainText(output);
    this.chunks.push(
      status === "completed"
        ? { type: "tool-output-available", toolCallId, output: text, dynamic: true }
        : { type: "tool-output-error", toolCallId, errorText: text === "" ? status : text, dynamic: true },
    );
  }

  #remark(type: "data-user" | "data-note", id: string, content: readonly Block[]): void {
    this.chunks.push({ type, id, data: { text: plainText(content) } });
  }

  #end(reason: "completed" | "interrupted" | "error"): void {
    switch (reason) {
      case "completed":
        this.#finish("stop");
        return;
      case "interrupted":
        this.#closeStep();
        this.chunks.push({ type: "abort" });
        this.#finish("other");
        return;
      case "error":
        this.#closeStep();
        this.chunks.push({ type: "error", errorText: this.#error ?? "The run ended by an error." });
        this.#finish("error");
    }
  }

  #finish(finishReason: "stop" | "tool-calls" | "error" | "other"): void {
    this.#closeStep();
    this.chunks.push({ type: "finish", finishReason });
    this.isEnded = true;
  }

  #closeStep(): void {
    if (this.isInStep) this.chunks.push({ type: "finish-step" });
    this.isInStep = false;
  }
}
