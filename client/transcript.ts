/**
 * Owns: a conversation as a person reads it, as rows: what was said, and the tool calls in groups (request-cycle model,
 * section 6.2, ResolutionStep). Notes, errors and the ends of runs have their place among them. A pure function of the
 * messages; rows that did not change are the same objects.
 */
import { groupOf, type ToolGroup } from "../machine/cycle-steps.ts";
import { SPAWN_TOOL } from "../machine/control-tools.ts";
import {
  stringIn,
  type Decided,
  type FileDiff,
  type Json,
  type ProviderBlock,
  type ToolDisplay,
  type ToolOutcome,
} from "../machine/message.ts";
import type { Message } from "./events.ts";
import type { LiveAnswer } from "../protocol/live-text.ts";

type Of<Type extends Message["type"]> = Extract<Message, { readonly type: Type }>;

export type Call = {
  readonly id: string;
  readonly name: string;
  readonly input: Json;
  /** Null until the call has ended. */
  readonly outcome: ToolOutcome | null;
  /** What it changed in files. */
  readonly diffs: readonly FileDiff[];
  /** Ids of its sub-agents in the order of its tasks, as soon as it has ended. */
  readonly subAgents: readonly string[];
  /** Of a request for a mode upgrade: the decision, and by whom. */
  readonly decided: Decided | null;
};

/** `key` is unique in a conversation, and stays. */
export type Row = { readonly key: string } & (
  | { readonly kind: "user"; readonly message: Of<"user"> }
  | { readonly kind: "text"; readonly text: string; readonly isLive: boolean }
  /** Empty where the provider encrypted it. */
  | { readonly kind: "thinking"; readonly text: string; readonly isLive: boolean }
  /** Adjacent calls of one kind. */
  | { readonly kind: "calls"; readonly group: ToolGroup["kind"]; readonly calls: readonly Call[] }
  | { readonly kind: "sub_agents"; readonly call: Call }
  | { readonly kind: "system"; readonly message: Of<"system"> }
  | { readonly kind: "note"; readonly message: Of<"note"> }
  | { readonly kind: "error"; readonly message: Of<"error"> }
  | { readonly kind: "summary"; readonly message: Of<"continuation"> }
  | { readonly kind: "run_stop"; readonly message: Of<"run_stop"> }
);

type RowOf<Kind extends Row["kind"]> = Extract<Row, { readonly kind: Kind }>;

/** Makes the rows of a conversation again and again, and keeps those that did not change. */
export class Transcript {
  #rows = new Map<string, Row>();
  #calls = new Map<string, Call>();

  /** @param messages ascending */
  rowsOf(messages: readonly Message[]): readonly Row[] {
    const results = resultsIn(messages);
    const rows: Row[] = [];
    const calls = new Map<string, Call>();
    for (const message of messages) {
      if (message.type !== "agent") rows.push(...rowOf(message));
      else
        for (const [index, block] of message.content.entries()) {
          const call = callIn(block, results);
          if (call === null) rows.push(...textOf(keyOf(message.display.requestId, index), block));
          else {
            const kept = same(this.#calls.get(call.id), call);
            calls.set(call.id, kept);
            addCall(rows, kept);
          }
        }
    }
    this.#calls = calls;
    const kept = rows.map((row) => keep(this.#rows.get(row.key), row));
    this.#rows = new Map(kept.map((row) => [row.key, row]));
    return kept;
  }
}

/** The rows of an answer that is being written. They have the keys of the rows that its stored message will make. */
export function liveRowsOf(answer: LiveAnswer | null): readonly Row[] {
  if (answer === null) return [];
  return answer.blocks.map(({ kind, index, text }) => ({
    key: keyOf(answer.requestId, index),
    kind,
    text,
    isLive: true,
  }));
}

/** A request makes one answer, so its id and the block's place name the block, stored or not. */
const keyOf = (requestId: string, index: number): string => `${requestId}.${index}`;

type Result = Pick<Call, "diffs" | "subAgents" | "decided"> & { readonly outcome: ToolOutcome };

const NOTHING: ToolDisplay = {};
const NONE: readonly never[] = [];
const NO_RESULT = { outcome: null, diffs: NONE, subAgents: NONE, decided: null };

/** By the call's id. */
function resultsIn(messages: readonly Message[]): ReadonlyMap<string, Result> {
  const results = new Map<string, Result>();
  for (const message of messages) {
    if (message.type !== "tool") continue;
    const [outcome] = message.content;
    const { diffs = NONE, subAgents = NONE, decided = null } = message.display ?? NOTHING;
    results.set(outcome.toolCallId, { outcome, diffs, subAgents, decided });
  }
  return results;
}

function rowOf(message: Exclude<Message, Of<"agent">>): Row[] {
  const key = message.id;
  switch (message.type) {
    case "user":
      return [{ key, kind: "user", message }];
    case "system":
      return [{ key, kind: "system", message }];
    case "note":
      return [{ key, kind: "note", message }];
    case "error":
      return [{ key, kind: "error", message }];
    case "continuation":
      return [{ key, kind: "summary", message }];
    case "run_stop":
      return [{ key, kind: "run_stop", message }];
    // It is shown with its call.
    case "tool":
      return [];
  }
}

function textOf(key: string, block: ProviderBlock): Row[] {
  const isLive = false;
  switch (block.type) {
    case "text": {
      const text = stringIn(block, "text");
      return text.trim() === "" ? [] : [{ key, kind: "text", text, isLive }];
    }
    case "thinking":
      return [{ key, kind: "thinking", text: stringIn(block, "thinking"), isLive }];
    case "redacted_thinking":
      return [{ key, kind: "thinking", text: "", isLive }];
    default:
      return [];
  }
}

function callIn(block: ProviderBlock, results: ReadonlyMap<string, Result>): Call | null {
  if (block.type !== "tool_use") return null;
  const id = stringIn(block, "id");
  const result = results.get(id) ?? NO_RESULT;
  return { id, name: stringIn(block, "name"), input: block["input"] ?? null, ...result };
}

function addCall(rows: Row[], call: Call): void {
  if (call.name === SPAWN_TOOL) {
    rows.push({ key: call.id, kind: "sub_agents", call });
    return;
  }
  const group = groupOf(call.name);
  const last = rows.at(-1);
  if (last?.kind === "calls" && last.group === group)
    rows[rows.length - 1] = { ...last, calls: [...last.calls, call] };
  else rows.push({ key: call.id, kind: "calls", group, calls: [call] });
}

const same = (old: Call | undefined, now: Call): Call =>
  old?.outcome === now.outcome && old.input === now.input ? old : now;

/** The old row, if it says the same. */
function keep(old: Row | undefined, now: Row): Row {
  if (old?.kind !== now.kind) return now;
  switch (now.kind) {
    case "text":
    case "thinking":
      return (old as typeof now).text === now.text && (old as typeof now).isLive === now.isLive ? old : now;
    case "calls": {
      const { calls } = old as RowOf<"calls">;
      return calls.length === now.calls.length && calls.every((call, n) => call === now.calls[n]) ? old : now;
    }
    case "sub_agents":
      return (old as typeof now).call === now.call ? old : now;
    case "user":
    case "system":
    case "note":
    case "error":
    case "summary":
    case "run_stop":
      return (old as typeof now).message === now.message ? old : now;
  }
}
