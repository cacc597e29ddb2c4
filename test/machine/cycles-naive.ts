/**
 * Owns: a second, naive implementation of the projection, written from the request-cycle model for comparison
 * with machine/cycles.ts. It trusts the messages' `cycleId`, which the transition writes and the fold never reads.
 */
import type { Json, Message, ProviderBlock } from "../../machine/message.ts";

const READ = ["ls", "read", "grep", "find"];
const WRITE = ["write", "edit"];

/** What `viewOf` shows of every cycle, in both views, and what lies between. */
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

/** All that is shown, in a row; the row is then cut into steps, and each step's calls into groups. */
function naiveSteps(own: readonly Message[]) {
  const row = own.flatMap((message) => {
    if (message.type === "user") return [{ user: message.id, delivery: message.display.kind }];
    return message.type === "agent" ? message.content.flatMap((block) => shownOf(block, own)) : [];
  });
  const opens = (index: number) => {
    const [at, before] = [row[index], row[index - 1]];
    return at !== undefined && (!("call" in at) || (before !== undefined && "user" in before));
  };
  const starts = row.flatMap((_, index) => (opens(index) ? [index] : []));
  return starts.map((start, n) => {
    const [first, ...rest] = row.slice(start, starts[n + 1]);
    if (first !== undefined && "user" in first) {
      return { kind: "user", messageId: first.user, delivery: first.delivery };
    }
    const calls = [first, ...rest].flatMap((part) => (part !== undefined && "call" in part ? [part] : []));
    const cuts = calls.flatMap(({ kind }, index) => (kind === calls[index - 1]?.kind ? [] : [index]));
    return {
      kind: "ai_block",
      item: first !== undefined && "item" in first ? first.item : null,
      groups: cuts.map((cut, g) => ({
        kind: calls[cut]?.kind,
        calls: calls.slice(cut, cuts[g + 1]).map(({ call }) => call),
      })),
    };
  });
}

function shownOf(block: ProviderBlock, own: readonly Message[]) {
  const field = (name: string) => block[name] as string;
  if (block.type === "text") return [{ item: { type: "assistant", text: field("text") } }];
  if (block.type === "thinking") return [{ item: { type: "reasoning", text: field("thinking") } }];
  if (block.type === "redacted_thinking") return [{ item: { type: "reasoning", text: "" } }];
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
  return [{ kind, call: { toolCallId: field("id"), name, input: block["input"] ?? {}, status, durationMs } }];
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
