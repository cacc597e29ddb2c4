/**
 * Owns: what a stored message is. A conversation's messages are an append-only list, numbered without gaps;
 * the same shapes are stored, sent to clients and read by the request builder.
 * Not here: the provider's wire format beyond "a block has a type" (llm/).
 */

/** Any JSON value. */
export type Json = string | number | boolean | null | readonly Json[] | { readonly [key: string]: Json };
export type JsonObject = { readonly [key: string]: Json };

type TextBlock = { readonly type: "text"; readonly text: string };
/** A reference to stored bytes; `hash` is the lower-case hex SHA-256 of them. Width and height in pixels. */
export type ImageBlock = {
  readonly type: "image";
  readonly hash: string;
  readonly mediaType: string;
  readonly width: number;
  readonly height: number;
};
export type Block = TextBlock | ImageBlock;

/** A content block exactly as the provider sent it. Only a tool_use id in it may be replaced (tool-ids.ts). */
export type ProviderBlock = JsonObject & { readonly type: string };

/** Token counts of one response, or sums of them. */
export type TokenUsage = {
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly cacheReadTokens: number;
  readonly cacheCreationTokens: number;
};

/** What one request used, as its provider reported it, and what that cost. */
export type Charge = TokenUsage & {
  /** Billionths of a US dollar; null: the model's price is not known. */
  readonly nanodollars: number | null;
};

/** How a message came in (request-cycle model, section 3). */
export type Delivery = "direct" | "steer" | "followUp";

export type ToolStatus = "completed" | "failed" | "cancelled" | "skipped" | "interrupted";

/** The one result of one call; `durationMs` is 0 for a call that never ran. */
export type ToolOutcome = {
  readonly toolCallId: string;
  readonly name: string;
  readonly status: ToolStatus;
  readonly output: readonly Block[];
  readonly durationMs: number;
};

/** What the first message of a conversation that continues another one was made from. */
export type SeedSource = "summary" | "excerpt";

/** What a call changed in one file, for pages and editors; the model does not get it. */
export type FileDiff = {
  /** Absolute and without links. */
  readonly path: string;
  readonly change: "created" | "modified";
  /** A unified diff, well-formed even if truncated. Empty if there are no lines to show. */
  readonly diff: string;
  /** Lines of the whole change, however much of it `diff` shows. */
  readonly addedLines: number;
  readonly removedLines: number;
  /** `diff` does not show the whole change. */
  readonly truncated: boolean;
};

/** What people see of a call beside its output; the model does not get it. */
export type ToolDisplay = {
  /** What the call changed in files; not empty. */
  readonly diffs?: readonly FileDiff[];
  /** Ids of the sub-agents of the call, in the order of its tasks. One that never started is among them. */
  readonly subAgents?: readonly string[];
  /** What became of a request for a mode upgrade, and who decided it, by name, if that is known. */
  readonly decided?: Decided;
};

export type Decided = { readonly decision: "approve" | "deny"; readonly by?: string };

export type RunStopReason = "completed" | "interrupted" | "error";

export type ErrorKind =
  | "auth"
  | "rate_limit"
  | "overloaded"
  | "network"
  | "invalid_request"
  | "context_exhausted"
  | "runaway"
  | "spending_limit"
  | "interrupted"
  | "unknown";

/** The fields that differ between the types of message. */
export type MessageBody =
  | {
      readonly type: "user";
      readonly actor: "human" | "llm_agent";
      readonly content: readonly Block[];
      readonly display: { readonly kind: Delivery };
    }
  | {
      readonly type: "agent";
      readonly actor: "llm_agent";
      readonly content: readonly ProviderBlock[];
      readonly usage: TokenUsage;
      readonly display: {
        readonly requestId: string;
        readonly stopReason: string;
        readonly durationMs: number;
      };
    }
  | {
      readonly type: "tool";
      readonly actor: "system";
      readonly content: readonly [ToolOutcome];
      /** Present if there is something in it. */
      readonly display?: ToolDisplay;
    }
  /** For the model and the person. */
  | {
      readonly type: "system";
      readonly actor: "system";
      readonly content: readonly Block[];
      readonly display?: { readonly seed: SeedSource };
    }
  /** For the person only; never sent to the model. */
  | { readonly type: "note"; readonly actor: "system"; readonly content: readonly Block[] }
  | {
      readonly type: "error";
      readonly actor: "system";
      readonly content: readonly [{ readonly errorKind: ErrorKind; readonly message: string }];
    }
  | {
      readonly type: "continuation";
      readonly actor: "llm_agent" | "system";
      readonly content: readonly [{ readonly summary: string }];
    }
  | {
      readonly type: "run_stop";
      readonly actor: "system";
      readonly content: readonly [{ readonly reason: RunStopReason }];
    };

/** A message as stored. */
export type Message = MessageBody & {
  /** Unique within the conversation. */
  readonly id: string;
  /** 1, 2, 3, … within the conversation. */
  readonly sequence: number;
  /** The id of the run's root message; null between runs. */
  readonly cycleId: string | null;
  /** RFC 3339 UTC. */
  readonly createdAt: string;
};

/** A text field of a block. The block may lack it, because blocks are stored as the provider sent them. */
export function stringIn(block: ProviderBlock, field: string): string {
  const value = block[field];
  return typeof value === "string" ? value : "";
}

/** What blocks say where images cannot be shown. */
export const plainText = (blocks: readonly Block[], separator = "\n"): string =>
  blocks.map((block) => (block.type === "text" ? block.text : "[image]")).join(separator);

/**
 * The blocks of people, tools and the system, which may hold images. The model's own blocks are `ProviderBlock`s and
 * are not among them.
 */
export function blocksOf(message: MessageBody): readonly Block[] {
  switch (message.type) {
    case "user":
    case "system":
    case "note":
      return message.content;
    case "tool":
      return message.content[0].output;
    case "agent":
    case "error":
    case "continuation":
    case "run_stop":
      return [];
  }
}
