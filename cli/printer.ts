/**
 * Owns: a conversation as lines, as it goes on: the agent's words to standard output, what it does to standard error.
 * It prints each thing once, whatever the model's changes.
 */
import { decisionOf, labelOf, subjectOf } from "../client/call-words.ts";
import type { LiveOutput, LoadedConversation } from "../client/index.ts";
import { liveRowsOf, Transcript, type Call, type Row } from "../client/transcript.ts";
import { plainText } from "../machine/message.ts";
import type { Terminal } from "./terminal.ts";

/** Lines of a command's output, and of a change, that are shown. */
const OUTPUT_LINES = 20;
const DIFF_LINES = 40;

/** Messages from a sequence or from the last run on, without the one that the person has just written. */
export type Wanted = { readonly from: number | "last run"; readonly without: string | null };

type Shown = { readonly kind: "begun" | "ended"; readonly outputLength: number; readonly lines: number };

export class Printer {
  readonly #terminal: Terminal;
  readonly #transcript = new Transcript();
  /** Null: not known before the conversation has loaded. */
  #from: number | null;
  readonly #without: string | null;
  /** Code units of the texts that were printed. */
  readonly #texts = new Map<string, number>();
  readonly #calls = new Map<string, Shown>();
  readonly #others = new Set<string>();

  constructor(terminal: Terminal, { from, without }: Wanted) {
    this.#terminal = terminal;
    this.#from = from === "last run" ? null : from;
    this.#without = without;
  }

  print({ messages, answer, output, conversation }: LoadedConversation): void {
    const from = (this.#from ??= lastRunIn(messages));
    const wanted = messages.filter(({ id, sequence }) => sequence >= from && id !== this.#without);
    const rows = [...this.#transcript.rowsOf(wanted), ...liveRowsOf(answer)];
    for (const row of rows) this.#printRow(row, output, conversation.cwd);
  }

  #printRow(row: Row, output: LiveOutput | null, cwd: string): void {
    switch (row.kind) {
      case "text":
        return this.#printText(row.key, row.text, row.isLive);
      case "thinking":
        if (this.#isNew(row.key)) this.#terminal.tell("thinks …", "dim");
        return;
      case "calls":
        for (const call of row.calls) this.#printCall(call, output, cwd);
        return;
      case "sub_agents":
        return this.#printCall(row.call, null, cwd);
      case "error":
        if (this.#isNew(row.key)) this.#terminal.tell(row.message.content[0].message, "red");
        return;
      case "note":
      case "system":
        if (!this.#isNew(row.key)) return;
        for (const block of row.message.content)
          if (block.type === "text") this.#terminal.tell(block.text.trimEnd(), "dim");
        return;
      case "summary":
        if (this.#isNew(row.key)) this.#terminal.tell(row.message.content[0].summary);
        return;
      case "user": {
        if (!this.#isNew(row.key)) return;
        this.#terminal.tell(`> ${plainText(row.message.content, " ")}`, "bold");
        return;
      }
      case "run_stop":
        if (this.#isNew(row.key) && row.message.content[0].reason === "interrupted")
          this.#terminal.tell("stopped", "yellow");
        return;
    }
  }

  #isNew(key: string): boolean {
    const isNew = !this.#others.has(key);
    this.#others.add(key);
    return isNew;
  }

  #printText(key: string, text: string, isLive: boolean): void {
    const done = this.#texts.get(key) ?? 0;
    if (text.length > done) this.#terminal.words(text.slice(done));
    if (!isLive && done !== Infinity) this.#terminal.endLine();
    this.#texts.set(key, isLive ? text.length : Infinity);
  }

  #printCall(call: Call, output: LiveOutput | null, cwd: string): void {
    let shown = this.#calls.get(call.id);
    if (shown === undefined) {
      this.#terminal.tell(`▸ ${titleOf(call, cwd)}`, "cyan");
      shown = { kind: "begun", outputLength: 0, lines: 0 };
    }
    if (shown.kind === "begun" && output?.toolCallId === call.id) shown = this.#printLive(shown, output);
    if (shown.kind === "begun" && call.outcome !== null) {
      this.#printEnd(call, call.outcome, shown, cwd);
      shown = { ...shown, kind: "ended" };
    }
    this.#calls.set(call.id, shown);
  }

  /** Whole lines, as they come. */
  #printLive(shown: Shown, { parts }: LiveOutput): Shown {
    const text = parts.map((part) => part.text).join("");
    const end = text.lastIndexOf("\n") + 1;
    if (end <= shown.outputLength) return shown;
    const lines = text.slice(shown.outputLength, end - 1).split("\n");
    this.#printOutput(lines, shown.lines);
    return { ...shown, outputLength: end, lines: shown.lines + lines.length };
  }

  #printOutput(lines: readonly string[], before: number): void {
    for (const line of lines.slice(0, Math.max(0, OUTPUT_LINES - before)))
      this.#terminal.tell(`  │ ${line}`, "dim");
    if (before <= OUTPUT_LINES && before + lines.length > OUTPUT_LINES)
      this.#terminal.tell("  │ … more: bedrock export", "dim");
  }

  #printEnd(
    call: Call,
    { status, output, durationMs }: NonNullable<Call["outcome"]>,
    shown: Shown,
    cwd: string,
  ): void {
    const isDone = status === "completed";
    const showsOutput =
      call.name === "bash" ||
      call.name === "spawn_agents" ||
      (!isDone && call.diffs.length === 0 && call.decided === null);
    if (showsOutput && shown.lines === 0) {
      const text = plainText(output);
      if (text.trim() !== "") this.#printOutput(text.trimEnd().split("\n"), 0);
    }
    for (const { diff, addedLines, removedLines, path } of call.diffs) {
      this.#terminal.tell(`  ${belowOf(path, cwd)} +${addedLines} −${removedLines}`, "bold");
      // The first two lines name the file again.
      const lines = diff.trimEnd().split("\n").slice(2);
      for (const line of lines.slice(0, DIFF_LINES))
        this.#terminal.tell(
          `  ${line}`,
          line.startsWith("+") ? "green" : line.startsWith("-") ? "red" : "dim",
        );
      if (lines.length > DIFF_LINES) this.#terminal.tell("  … more: bedrock export", "dim");
    }
    const decision = decisionOf(call);
    if (decision !== null) {
      this.#terminal.tell(isDone ? `  ✓ ${decision}` : `  ✗ ${decision}`, isDone ? "green" : "red");
      return;
    }
    const seconds = `${(durationMs / 1000).toFixed(1)} s`;
    this.#terminal.tell(isDone ? `  ✓ ${seconds}` : `  ✗ ${status} · ${seconds}`, isDone ? "green" : "red");
  }
}

/** The sequence of the last message that began a run. */
function lastRunIn(messages: LoadedConversation["messages"]): number {
  const root = messages.findLast(({ type, id, cycleId }) => type === "user" && id === cycleId);
  return root?.sequence ?? messages[0]?.sequence ?? 0;
}

/** "▸ npm test", "▸ write notes.txt", "▸ Searched: TODO". */
function titleOf(call: Call, cwd: string): string {
  const subject = subjectOf(call, (path) => belowOf(path, cwd)).split("\n")[0] ?? "";
  if (call.name === "bash") return subject;
  const label = labelOf(call);
  return subject === "" ? label : `${label}${label === call.name ? "" : ":"} ${subject}`;
}

const belowOf = (path: string, cwd: string): string =>
  path.startsWith(`${cwd}/`) ? path.slice(cwd.length + 1) : path;
