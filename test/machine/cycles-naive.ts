/**
 * Owns: a second, naive implementation of the projection, written from the request-cycle model for comparison
 * with machine/cycles.ts. It trusts the messages' `cycleId`, which the transition writes and the fold never reads.
 */
import type { Delivery, Message, ProviderBlock } from "../../machine/message.ts";

const READ = ["ls", "read", "grep", "find"];
const WRITE = ["write", "edit"];

/** Every cycle in both views of `viewOf`, and the messages between cycles. */
export function naiveCycles(messages: readonly Message[]) {
  const ids = [...new Set(messages.flatMap(({ cycleId }) => (cycleId === null ? [] : [cycleId])))];
  return {
    between: messages.filter(({ cycleId }) => cycleId === null).map(({ id }) => id),
    cycles: ids.map((id) => {
      const own = messages.filter(({ cycleId }) => cycleId === id);
      const stop = own.find((message) => message.type === "run_stop");
      const head = {
        id,
        root: id,
        startedAt: own[0]?.createdAt,
        stoppedAt: stop?.createdAt ?? null,
        reason: stop?.content[0].reason ?? null,
      };
      return { steps: { ...head, steps: naiveSteps(own) }, rounds: { ...head, rounds: naiveRounds(own) } };
    }),
  };
}

type Part =
  | { readonly is: "user"; readonly step: { kind: "user"; messageId: string; delivery: Delivery } }
  | { readonly is: "item"; readonly item: { type: string; text: string } }
  | { readonly is: "call"; readonly kind: string; readonly call: { toolCallId: string } };

/** Lists all visible parts in order, then cuts the list into steps, and each step's calls into groups. */
function naiveSteps(own: readonly Message[]) {
  const row = own.flatMap((message): Part[] => {
    if (message.type === "user") {
      return [{ is: "user", step: { kind: "user", messageId: message.id, delivery: message.display.kind } }];
    }
    return message.type === "agent" ? message.content.flatMap((block) => partOf(block, own)) : [];
  });
  const steps = cut(row, (part, before) => part.is !== "call" || before.is === "user");
  return steps.map(([first, ...rest]) => {
    if (first.is === "user") return first.step;
    const calls = [first, ...rest].flatMap((part) => (part.is === "call" ? [part] : []));
    const groups = cut(calls, (call, before) => call.kind !== before.kind);
    return {
      kind: "ai_block",
      item: first.is === "item" ? first.item : null,
      groups: groups.map((group) => ({ kind: group[0].kind, calls: group.map(({ call }) => call) })),
    };
  });
}

/** Cuts the row into pieces. A piece begins at the first element, and wherever `begins(one, before)` is true. */
function cut<T>(row: readonly T[], begins: (one: T, before: T) => boolean): [T, ...T[]][] {
  const [first, second] = row;
  if (first === undefined) return [];
  if (second === undefined) return [[first]];
  const [piece, ...pieces] = cut(row.slice(1), begins);
  if (piece === undefined) return [[first]];
  return begins(second, first) ? [[first], piece, ...pieces] : [[first, ...piece], ...pieces];
}

function partOf(block: ProviderBlock, own: readonly Message[]): Part[] {
  const field = (name: string) => block[name] as string;
  if (block.type === "text") return [{ is: "item", item: { type: "assistant", text: field("text") } }];
  if (block.type === "thinking")
    return [{ is: "item", item: { type: "reasoning", text: field("thinking") } }];
  if (block.type === "redacted_thinking") return [{ is: "item", item: { type: "reasoning", text: "" } }];
  if (block.type !== "tool_use") return [];
  const name = field("name");
  const kind = READ.includes(name)
    ? "read"
    : WRITE.includes(name)
      ? "write"
      : name === "bash"
        ? "bash"
        : "other";
  const outcome = own
    .flatMap((message) => (message.type === "tool" ? message.content : []))
    .find(({ toolCallId }) => toolCallId === block["id"]);
  const { status, durationMs } = outcome ?? { status: null, durationMs: null };
  const call = { toolCallId: field("id"), name, input: block["input"], status, durationMs };
  return [{ is: "call", kind, call }];
}

function naiveRounds(own: readonly Message[]) {
  const answers = own.flatMap((message, index) => (message.type === "agent" ? [{ message, index }] : []));
  const idsOf = (types: readonly string[], from: number, to?: number) =>
    own
      .slice(from, to)
      .filter(({ type }) => types.includes(type))
      .map(({ id }) => id);
  return answers.map(({ message: { id, usage, display }, index }, n) => ({
    requestId: display.requestId,
    input: idsOf(["user", "system", "tool"], answers[n - 1]?.index ?? 0, index),
    output: id,
    results: idsOf(["tool"], index, answers[n + 1]?.index),
    usage,
    durationMs: display.durationMs,
  }));
}
