/**
 * Owns: the blocks of a Markdown text that is still being written. A block that later text cannot change is lexed once
 * and then kept; an open code fence is appended without lexing it again; the rest is healed (heal.ts) and lexed anew.
 * Runs in the worker.
 */
import { heal } from "./heal.ts";
import { blocksOf, lexBlocks, type LexedBlock, type Outline } from "./lex.ts";
import type { Block } from "./model.ts";
import { patchesBetween, type Patch } from "./patch.ts";
import { appendToPieces } from "./pieces.ts";

/** A fence without indentation whose end has not come. */
type OpenFence = {
  readonly closing: RegExp;
  readonly language: string;
  /** The code of its complete lines, without the last newline. */
  pieces: readonly string[];
  hasLines: boolean;
};

const OPENING = /^(?:[ \t]*\n)*(`{3,}(?=[^`\n]*\n)|~{3,})[^\n]*\n/;
const FENCE = /^ {0,3}(?:`{3,}[^`\n]*|~{3,}[^\n]*)\n/;
/** Perhaps the beginning of a closing fence. */
const MARKS = /^ {0,3}[`~]+ *$/;
const BLANK_LINE = /^[ \t]*\n[ \t]*\n/;

export class GrowingText {
  /** UTF-16 code units that came, before line ends were made equal. */
  length = 0;
  #source = "";
  /** A carriage return came last: a newline may follow. */
  #endsInReturn = false;
  /** The blocks that stay as they are, whatever follows. */
  readonly settled: Block[] = [];
  #settledLength = 0;
  #outline: Outline = [];
  #fence: OpenFence | null = null;
  #shown: readonly Block[] = [];

  append(text: string): void {
    this.length += text.length;
    const whole = this.#endsInReturn ? `\r${text}` : text;
    this.#endsInReturn = whole.endsWith("\r");
    this.#source += unifyLineEnds(this.#endsInReturn ? whole.slice(0, -1) : whole);
  }

  /** What changed since the last call. */
  update(): Patch[] {
    const unsettled = this.#unsettled();
    return this.#show([...this.settled, ...unsettled]);
  }

  /** What changed since the last call, now that the text is complete. */
  finish(): Patch[] {
    return this.#show(completeBlocksOf(this.#endsInReturn ? `${this.#source}\n` : this.#source));
  }

  #show(blocks: readonly Block[]): Patch[] {
    const patches = patchesBetween(this.#shown, blocks);
    this.#shown = blocks;
    return patches;
  }

  /** The blocks after the settled ones; settles what can be. */
  #unsettled(): readonly Block[] {
    for (;;) {
      if (this.#fence !== null) {
        const code = this.#readFence(this.#fence);
        if (code !== null) return [code];
      }
      this.#settle();
      const rest = this.#source.slice(this.#settledLength);
      const opening = OPENING.exec(rest);
      if (opening === null) return blocksOf(lexBlocks(heal(rest)), this.#outline).blocks;
      const [line, marker = ""] = opening;
      const [code] = blocksOf(lexBlocks(line)).blocks;
      this.#fence = {
        closing: new RegExp(`^ {0,3}${marker}${marker.slice(0, 1)}* *$`),
        language: code?.kind === "code" ? code.language : "",
        pieces: [],
        hasLines: false,
      };
      this.#settledLength += line.length;
    }
  }

  /** The code so far; null: the fence is closed, and its code is settled. */
  #readFence(fence: OpenFence): Block | null {
    const { language } = fence;
    let code = "";
    for (;;) {
      const newline = this.#source.indexOf("\n", this.#settledLength);
      if (newline === -1) break;
      const line = this.#source.slice(this.#settledLength, newline);
      this.#settledLength = newline + 1;
      if (fence.closing.test(line)) {
        this.settled.push({ kind: "code", language, nodes: appendToPieces(fence.pieces, code) });
        this.#fence = null;
        return null;
      }
      code += fence.hasLines ? `\n${line}` : line;
      fence.hasLines = true;
    }
    fence.pieces = appendToPieces(fence.pieces, code);
    const last = this.#source.slice(this.#settledLength);
    const isShown = last !== "" && !MARKS.test(last);
    const nodes = isShown ? appendToPieces(fence.pieces, fence.hasLines ? `\n${last}` : last) : fence.pieces;
    return { kind: "code", language, nodes };
  }

  #settle(): void {
    const rest = this.#source.slice(this.#settledLength);
    const lexed = lexBlocks(rest);
    const last = lexed.findLastIndex((block, at) => isSettled(block, lexed[at + 1], rest));
    const end = lexed[last]?.end;
    if (end === undefined) return;
    const { blocks, outline } = blocksOf(lexed.slice(0, last + 1), this.#outline);
    this.settled.push(...blocks);
    this.#outline = outline;
    this.#settledLength += end;
  }
}

/** The blocks of a complete text. */
export const completeBlocksOf = (text: string): readonly Block[] =>
  blocksOf(lexBlocks(unifyLineEnds(text))).blocks;

const unifyLineEnds = (text: string): string => (text.includes("\r") ? text.replace(/\r\n?/g, "\n") : text);

/** Nothing that may follow `source` changes the block, whatever it is. */
function isSettled(block: LexedBlock, next: LexedBlock | undefined, source: string): boolean {
  const { type } = block.token;
  if (type === "heading" || type === "hr") return isLineComplete(block, source);
  const text = source.slice(block.start, block.end).replace(/[ \t\n]+$/, "");
  // Space of other kinds is cut off a list, though its items may go on.
  if (text.trim() === "") return false;
  // Without a blank line, a later line may make one heading, or one table, of both.
  if (!BLANK_LINE.test(source.slice(block.start + text.length)))
    return next !== undefined && isFence(next, source);
  // Others may go on after a blank line.
  const isOver = type === "paragraph" || type === "table" || type === "blockquote";
  return isOver || (next !== undefined && isEstablished(next, source));
}

const isFence = ({ start }: LexedBlock, source: string): boolean => FENCE.test(source.slice(start));

/** Its first line is complete, so it will not turn out to belong to the block before. */
const isEstablished = ({ token, start }: LexedBlock, source: string): boolean =>
  token.raw.trim() !== "" && source.includes("\n", start);

const isLineComplete = ({ start, end }: LexedBlock, source: string): boolean =>
  end < source.length || source.slice(start, end).endsWith("\n");
