/**
 * Owns: assembling a response from its stream events without altering it. The blocks are stored and sent back as
 * received, also blocks of a type that is not known here.
 */
import type { RawMessageStreamEvent } from "@anthropic-ai/sdk/resources/messages";
import { NO_TOKENS, type CallDefect } from "../machine/conversation.ts";
import type { Json, JsonObject, ProviderBlock, TokenUsage } from "../machine/message.ts";
import { jsonBytes } from "../machine/size.ts";
import { MAX_CALL_NAME_LENGTH, MAX_CALLS, MAX_CALLS_BYTES, MAX_RESPONSE_BYTES } from "../protocol/formats.ts";
import { TooMuch } from "./limits.ts";

type Defect = { readonly call: number; readonly defect: CallDefect };

export type Accumulated = {
  readonly content: readonly ProviderBlock[];
  readonly stopReason: string;
  readonly usage: TokenUsage;
  /** By the call's position among the tool_use blocks. */
  readonly defects: readonly Defect[];
};

export type Delta = {
  readonly kind: "text" | "thinking";
  /** The block's position in the response. */
  readonly index: number;
  readonly text: string;
};

/** The events do not make up a message. */
export class BrokenStream extends Error {
  override readonly name = "BrokenStream";
}

type MutableBlock = Record<string, Json> & { type: string };
type Part = { readonly block: MutableBlock; json: string };

/**
 * Levels of a call's input. JSON is parsed at any depth, but written recursively: a few thousand levels overflow the
 * stack.
 */
const MAX_DEPTH = 100;
/** Stop reasons that can end a response anywhere, also in the middle of a call's input. */
const CUT_OFF = new Set(["max_tokens", "model_context_window_exceeded", "refusal"]);

export class Accumulator {
  readonly #parts = new Map<number, Part>();
  #stopReason: string | null = null;
  #usage: TokenUsage | null = null;
  #complete = false;
  /** Bytes of everything that is held. */
  #bytes = 0;
  #calls = 0;

  /** `message_stop` has been received; without it a response is not complete. */
  get complete(): boolean {
    return this.#complete;
  }

  /** What the provider has reported so far; null: nothing. */
  get usage(): TokenUsage | null {
    return this.#usage;
  }

  /**
   * Takes one event and returns what a person may see of it. Throws BrokenStream, or TooMuch as soon as a limit is
   * exceeded.
   */
  push(event: RawMessageStreamEvent): Delta | null {
    let delta: Delta | null = null;
    switch (event.type) {
      case "message_start":
        this.#count(event.message.usage);
        break;
      case "content_block_start": {
        const block = { ...event.content_block } as unknown as MutableBlock;
        this.#hold(jsonBytes(block));
        if (block.type === "tool_use") this.#countCall(block);
        this.#parts.set(event.index, { block, json: "" });
        delta = toDelta(event.index, block);
        break;
      }
      case "content_block_delta":
        delta = this.#extend(event.index, event.delta as unknown as MutableBlock);
        break;
      case "content_block_stop":
        break;
      case "message_delta":
        this.#stopReason = event.delta.stop_reason ?? this.#stopReason;
        this.#count(event.usage);
        break;
      case "message_stop":
        this.#complete = true;
        break;
    }
    // Events of a type that is not known here come to this line, too.
    return delta;
  }

  /** The whole response. Throws BrokenStream when it has no stop reason, TooMuch when it cannot be stored. */
  finish(): Accumulated {
    if (this.#stopReason === null) throw new BrokenStream("The response has no stop reason.");
    const parts = [...this.#parts.entries()].sort(([a], [b]) => a - b).map(([, part]) => part);
    const defects: Defect[] = [];
    let [call, bytes] = [0, 0];
    for (const part of parts) {
      const isLast = part === parts.at(-1);
      let defect = parseInput(part, CUT_OFF.has(this.#stopReason) && isLast);
      if (part.block.type !== "tool_use") continue;
      // Checked again, because a delta may have made the name longer.
      checkName(part.block["name"]);
      const size = jsonBytes(part.block["input"]);
      if (bytes + size <= MAX_CALLS_BYTES) bytes += size;
      else {
        defect ??= "too_long";
        part.block["input"] = {};
      }
      if (defect !== null) defects.push({ call, defect });
      call++;
    }
    const content = parts.map((part) => part.block);
    // Numbers may have become longer when they were written anew.
    if (jsonBytes(content) > MAX_RESPONSE_BYTES) throw tooLong();
    return {
      content,
      stopReason: this.#stopReason,
      usage: this.#usage ?? NO_TOKENS,
      defects,
    };
  }

  #extend(index: number, delta: MutableBlock): Delta | null {
    const part = this.#parts.get(index);
    if (part === undefined) throw new BrokenStream(`A delta came for block ${index}, which was not started.`);
    const { type, ...fields } = delta;
    switch (type) {
      case "input_json_delta": {
        const json = asText(fields["partial_json"]);
        this.#hold(Buffer.byteLength(json));
        part.json += json;
        return null;
      }
      case "signature_delta":
        this.#hold(jsonBytes(fields["signature"] ?? null));
        part.block["signature"] = fields["signature"] ?? null;
        return null;
      case "citations_delta":
        this.#extendBy(part.block, "citations", [fields["citation"] ?? null]);
        return null;
      default:
        for (const [key, value] of Object.entries(fields)) this.#extendBy(part.block, key, value);
        return toDelta(index, { ...fields, type: part.block.type });
    }
  }

  /** Texts and lists grow, anything else is replaced. */
  #extendBy(block: MutableBlock, key: string, more: Json): void {
    const known = block[key];
    if (typeof known === "string" && typeof more === "string") {
      this.#hold(jsonBytes(more) - jsonBytes(""));
      block[key] = known + more;
    } else if (isList(known) && isList(more)) {
      this.#hold(jsonBytes(more) - jsonBytes([]));
      // Extends the existing list, because it may grow thousands of times.
      for (const item of more) known.push(item);
    } else {
      this.#hold(jsonBytes({ [key]: more }));
      block[key] = more;
    }
  }

  #hold(bytes: number): void {
    this.#bytes += bytes;
    if (this.#bytes > MAX_RESPONSE_BYTES) throw tooLong();
  }

  #countCall({ name }: MutableBlock): void {
    checkName(name);
    if (++this.#calls > MAX_CALLS) throw new TooMuch(`it has more than ${MAX_CALLS} calls`);
  }

  /** Counts are cumulative: the last value holds. */
  #count(usage: {
    readonly input_tokens?: number | null;
    readonly output_tokens?: number | null;
    readonly cache_read_input_tokens?: number | null;
    readonly cache_creation_input_tokens?: number | null;
  }): void {
    const before = this.#usage ?? NO_TOKENS;
    this.#usage = {
      inputTokens: usage.input_tokens ?? before.inputTokens,
      outputTokens: usage.output_tokens ?? before.outputTokens,
      cacheReadTokens: usage.cache_read_input_tokens ?? before.cacheReadTokens,
      cacheCreationTokens: usage.cache_creation_input_tokens ?? before.cacheCreationTokens,
    };
  }
}

function checkName(name: Json | undefined): void {
  if (typeof name === "string" && name.length <= MAX_CALL_NAME_LENGTH) return;
  throw new TooMuch(`one of its calls has no name, or one of more than ${MAX_CALL_NAME_LENGTH} characters`);
}

const tooLong = (): TooMuch => new TooMuch(`it is longer than ${MAX_RESPONSE_BYTES} bytes`);

/**
 * Sets the input of a call from its JSON and returns its defect, if there is one. A defective input is stored as {}.
 */
function parseInput(part: Part, cutOff: boolean): CallDefect | null {
  if (part.json === "") {
    // A call without arguments has no JSON at all. A call that was cut off at once looks the same.
    return cutOff && isEmptyObject(part.block["input"]) ? "truncated" : null;
  }
  try {
    const input = JSON.parse(part.json) as Json;
    if (isObject(input) && !isDeeperThan(MAX_DEPTH, input)) {
      part.block["input"] = input;
      return null;
    }
  } catch {
    // The defect reports it.
  }
  part.block["input"] = {};
  return cutOff ? "truncated" : "malformed_json";
}

function isDeeperThan(levels: number, value: Json): boolean {
  if (typeof value !== "object" || value === null) return false;
  return levels === 0 || Object.values(value).some((part: Json) => isDeeperThan(levels - 1, part));
}

function toDelta(index: number, block: MutableBlock): Delta | null {
  if (block.type !== "text" && block.type !== "thinking") return null;
  const text = asText(block[block.type]);
  return text === "" ? null : { kind: block.type, index, text };
}

const asText = (value: Json | undefined): string => (typeof value === "string" ? value : "");
const isList = (value: Json | undefined): value is Json[] => Array.isArray(value);
const isObject = (value: Json | undefined): value is JsonObject =>
  typeof value === "object" && value !== null && !isList(value);
const isEmptyObject = (value: Json | undefined): boolean =>
  isObject(value) && Object.keys(value).length === 0;
