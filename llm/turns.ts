/**
 * Owns: how stored messages become the provider's alternating turns. The chain is valid whatever was cancelled, lost or
 * restarted: the very next turn answers every tool_use, results first, and nothing that the provider refuses is sent.
 * Stored messages never change.
 * Not here: caching, limits and the other parameters of a request (request.ts).
 */
import type {
  ContentBlockParam,
  ImageBlockParam,
  TextBlockParam,
  ToolResultBlockParam,
} from "@anthropic-ai/sdk/resources/messages";
import { IMAGE_TYPES } from "../images/format.ts";
import type { Block, Message, ProviderBlock, ToolOutcome, ToolStatus } from "../machine/message.ts";

/** The bytes of an image by its hash, in base64. */
export type LoadedImage = { readonly mediaType: string; readonly data: string };
export type Images = ReadonlyMap<string, LoadedImage>;

/** A block of a user turn. */
type UserBlock = ToolResultBlockParam | TextBlockParam | ImageBlockParam;
type Turn =
  | { readonly role: "user"; content: UserBlock[] }
  | { readonly role: "assistant"; content: ContentBlockParam[] };

const WITHOUT_OUTPUT: Record<ToolStatus, string> = {
  completed: "(no output)",
  failed: "The tool failed without output.",
  cancelled: "Cancelled before it finished; it had printed nothing.",
  skipped: "Skipped: this call was not executed.",
  interrupted:
    "Interrupted: the outcome of this call is unknown. Check before relying on it or repeating it.",
};

const STOPPED: ReadonlySet<ToolStatus> = new Set(["cancelled", "skipped", "interrupted"]);

/** Stands in for a result that should be stored and is not. */
const MISSING_RESULT = WITHOUT_OUTPUT.interrupted;
const MISSING_IMAGE = "(an image that is no longer available)";
const MISSING_BEGINNING = "The beginning of this conversation is not available.";
const GO_ON = "Continue.";

/** A text of the system within a user turn. The system prompt explains the mark to the model. */
export function systemText(text: string): string {
  return `<system-message>\n${text}\n</system-message>`;
}

export type Turns = {
  readonly turns: readonly Turn[];
  /** The last blocks of this request and of those before it, ascending: where the provider's cache can be used. */
  readonly ends: readonly UserBlock[];
};

/**
 * The provider's turns. They alternate, and begin and end with the user's. A paused turn at the end goes back as it
 * stands. Linear in the messages.
 */
export function buildTurns(messages: readonly Message[], images: Images): Turns {
  const chain = new Chain(images);
  for (const message of messages) chain.add(message);
  return chain.finish();
}

/** A round in progress: the calls of the last assistant turn, their results, and the steers and system texts since. */
class Chain {
  readonly #images: Images;
  readonly #turns: Turn[] = [];
  readonly #ends: UserBlock[] = [];
  /** Open calls of the last assistant turn, in its order. */
  #calls = new Map<string, ToolResultBlockParam | null>();
  /** Steers and system texts since the last assistant turn. */
  #said: UserBlock[] = [];
  #paused = false;
  /** The last result is that of a call that did not come to its end. */
  #stopped = false;

  constructor(images: Images) {
    this.#images = images;
  }

  add(message: Message): void {
    switch (message.type) {
      case "user":
        this.#said.push(...toUserBlocks(message.content, this.#images, (text) => text));
        return;
      case "system":
        this.#said.push(...toUserBlocks(message.content, this.#images, systemText));
        return;
      case "tool":
        this.#answer(message.content[0]);
        return;
      case "agent":
        this.#speak(message.content, message.display.stopReason === "pause_turn");
        return;
      case "run_stop":
        this.#endRequest();
        return;
      // For the person only.
      case "note":
      case "error":
      case "continuation":
        return;
    }
  }

  finish(): Turns {
    this.#closeUserTurn();
    const last = this.#turns.at(-1);
    if (last === undefined) this.#say(MISSING_BEGINNING);
    else if (last.role === "assistant" && !(this.#paused && isResumable(last.content))) this.#say(GO_ON);
    return { turns: this.#turns, ends: this.#ends };
  }

  /** A run stopped without an answer: the last request reached up to here, unless the run stopped at a call. */
  #endRequest(): void {
    const results = [...this.#calls.values()].filter((result) => result !== null);
    const last = this.#said.at(-1) ?? results.at(-1);
    if (last !== undefined && !this.#stopped) this.#ends.push(last);
  }

  /** The first result of an open call counts. Any other result belongs to no call that is sent, and is dropped. */
  #answer(outcome: ToolOutcome): void {
    if (this.#calls.get(outcome.toolCallId) !== null) return;
    this.#stopped = STOPPED.has(outcome.status);
    const result = toToolResult(outcome, this.#images);
    this.#calls.set(outcome.toolCallId, result.block);
    this.#said.push(...result.after);
  }

  #speak(stored: readonly ProviderBlock[], paused: boolean): void {
    const content = sendable(stored);
    if (content.length === 0) return;
    this.#closeUserTurn();
    const last = this.#turns.at(-1);
    if (last?.role === "assistant") last.content.push(...content);
    else {
      if (last === undefined) this.#say(MISSING_BEGINNING);
      this.#turns.push({ role: "assistant", content });
    }
    for (const block of content) if (block.type === "tool_use") this.#calls.set(block.id, null);
    this.#paused = paused;
  }

  /** Results come first, in the order of the calls; the provider refuses anything before them. */
  #closeUserTurn(): void {
    const content: UserBlock[] = [];
    for (const [id, result] of this.#calls) content.push(result ?? missingResult(id));
    content.push(...this.#said);
    this.#calls = new Map();
    this.#said = [];
    this.#stopped = false;
    const last = content.at(-1);
    if (last === undefined) return;
    this.#turns.push({ role: "user", content });
    this.#ends.push(last);
  }

  #say(text: string): void {
    const block: UserBlock = { type: "text", text: systemText(text) };
    this.#turns.push({ role: "user", content: [block] });
    this.#ends.push(block);
  }
}

/**
 * The blocks exactly as received, without blocks that the provider refuses in a request: blank texts, and thinking that
 * nothing follows (it was cut off, and has no signature).
 */
function sendable(stored: readonly ProviderBlock[]): ContentBlockParam[] {
  const content = stored.filter((block) => !(block.type === "text" && isBlank(block["text"])));
  while (isThinking(content.at(-1))) content.pop();
  // The provider's own blocks: their shape may be newer than the SDK's types.
  return content as unknown as ContentBlockParam[];
}

/** A turn that stopped after text cannot be resumed: the provider would take the text for a prefilled answer. */
const isResumable = (content: readonly ContentBlockParam[]): boolean => content.at(-1)?.type !== "text";

const isThinking = (block: ProviderBlock | undefined): boolean =>
  block?.type === "thinking" || block?.type === "redacted_thinking";

const isBlank = (text: unknown): boolean => typeof text !== "string" || text.trim() === "";

function toUserBlocks(blocks: readonly Block[], images: Images, mark: (text: string) => string) {
  const sent: (TextBlockParam | ImageBlockParam)[] = [];
  for (const block of blocks) {
    if (block.type === "image") sent.push(toImage(block.hash, images));
    else if (!isBlank(block.text)) sent.push({ type: "text", text: mark(block.text) });
  }
  return sent;
}

/** An error may hold only text, so its images come `after` the results. */
function toToolResult(outcome: ToolOutcome, images: Images) {
  const isError = outcome.status !== "completed";
  const blocks = toUserBlocks(outcome.output, images, (text) => text);
  const content = isError ? blocks.filter((block) => block.type === "text") : blocks;
  if (content.length === 0) content.push({ type: "text", text: WITHOUT_OUTPUT[outcome.status] });
  const block: ToolResultBlockParam = { type: "tool_result", tool_use_id: outcome.toolCallId, content };
  if (isError) block.is_error = true;
  return { block, after: isError ? blocks.filter((block) => block.type === "image") : [] };
}

function missingResult(id: string): ToolResultBlockParam {
  return {
    type: "tool_result",
    tool_use_id: id,
    content: [{ type: "text", text: MISSING_RESULT }],
    is_error: true,
  };
}

function toImage(hash: string, images: Images): ImageBlockParam | TextBlockParam {
  const image = images.get(hash);
  const mediaType = IMAGE_TYPES.find((type) => type === image?.mediaType);
  if (image === undefined || mediaType === undefined) return { type: "text", text: MISSING_IMAGE };
  return { type: "image", source: { type: "base64", media_type: mediaType, data: image.data } };
}
