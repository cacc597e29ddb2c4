/** A run as chunks of the AI SDK, whatever breaks off and is tried again (docs/ai-sdk.md). Read by the SDK's own reader. */
import { readUIMessageStream, type UIMessage, type UIMessageChunk } from "ai";
import fc from "fast-check";
import { expect, test } from "vitest";
import { RunChunks, type Chunk } from "../../api/chat/chunks.ts";
import { Progress } from "../../api/chat/progress.ts";
import { uiMessagesOf } from "../../api/chat/ui-messages.ts";
import { newRun, reduceRun, type Run, type RunEvent } from "../../api/chat/run.ts";
import type { State } from "../../machine/conversation.ts";
import type { Message, MessageBody, ProviderBlock } from "../../machine/message.ts";

const RUN = "m1";

type Block = { readonly kind: "text" | "thinking"; readonly text: string };
/** One request: answers that broke off, each after so many characters, and then the one that is stored. */
type Round = {
  readonly dropped: readonly number[];
  readonly blocks: readonly Block[];
  /** Lengths of the pieces in which text comes. */
  readonly pieces: readonly number[];
  readonly usesTool: boolean;
};

const round = fc.record({
  dropped: fc.array(fc.nat({ max: 400 }), { maxLength: 1 }),
  blocks: fc.array(
    fc.record({
      kind: fc.constantFrom("text" as const, "thinking" as const),
      text: fc.string({ unit: "grapheme", minLength: 1, maxLength: 300 }),
    }),
    { minLength: 1, maxLength: 3 },
  ),
  pieces: fc.array(fc.integer({ min: 1, max: 90 }), { minLength: 1, maxLength: 5 }),
  usesTool: fc.boolean(),
});
const rounds = fc.array(round, { minLength: 1, maxLength: 4 });

/** The events of a run, as a client's stream has them. */
function eventsOf(all: readonly Round[]): RunEvent[] {
  const events: RunEvent[] = [];
  let sequence = 0;
  const store = (id: string, body: MessageBody): void => {
    const createdAt = "2026-01-01T00:00:00.000Z";
    const data: Message = { ...body, id, sequence: ++sequence, cycleId: RUN, createdAt };
    events.push({ name: "message.added", data });
  };
  const enter = (state: State): void => void events.push({ name: "state.changed", data: { state } });
  store(RUN, {
    type: "user",
    actor: "human",
    content: [{ type: "text", text: "Go." }],
    display: { kind: "direct" },
  });
  for (const [place, { dropped, blocks, pieces, usesTool }] of all.entries()) {
    const write = (requestId: string, upTo: number): void => {
      enter({ kind: "llm_requesting", requestId, attempt: 1, lost: 0, retry: null });
      let left = upTo;
      for (const [index, { kind, text }] of blocks.entries()) {
        const name = kind === "text" ? ("text.delta" as const) : ("thinking.delta" as const);
        let offset = 0;
        for (let turn = 0; offset < Math.min(text.length, left); turn++) {
          const piece = text.slice(offset, Math.min(left, offset + (pieces[turn % pieces.length] ?? 1)));
          events.push({ name, data: { requestId, index, offset, text: piece } });
          offset += piece.length;
        }
        left -= offset;
        if (left <= 0) return;
      }
    };
    for (const [attempt, upTo] of dropped.entries()) write(`r${place}-${attempt}`, upTo);
    const requestId = `r${place}`;
    write(requestId, Number.POSITIVE_INFINITY);
    const call = { type: "tool_use", id: `t${place}`, name: "bash", input: { command: "ls" } };
    const content: ProviderBlock[] = blocks.map(({ kind, text }) =>
      kind === "text" ? { type: "text", text } : { type: "thinking", thinking: text },
    );
    store(`a${place}`, {
      type: "agent",
      actor: "llm_agent",
      content: usesTool ? [...content, call] : content,
      usage: { inputTokens: 1, outputTokens: 1, cacheReadTokens: 0, cacheCreationTokens: 0 },
      display: { requestId, stopReason: "end_turn", durationMs: 1 },
    });
    if (usesTool)
      store(`o${place}`, {
        type: "tool",
        actor: "system",
        content: [
          {
            toolCallId: call.id,
            name: call.name,
            status: "completed",
            output: [{ type: "text", text: "a b" }],
            durationMs: 1,
          },
        ],
      });
  }
  store("end", { type: "run_stop", actor: "system", content: [{ reason: "completed" }] });
  enter({ kind: "idle" });
  return events;
}

/** A client that gets all chunks, breaks off after the given events, and comes back with what it counts. */
function follow(events: readonly RunEvent[], breaksAfter: ReadonlySet<number>): Chunk[] {
  const got: Chunk[] = [];
  let run: Run = newRun(RUN);
  let chunks = new RunChunks(RUN, null);
  let progress = new Progress(0);
  for (const [place, event] of events.entries()) {
    run = reduceRun(run, event);
    const now = chunks.of(run);
    got.push(...progress.next(now));
    // Else a dropped answer is still to be made up for: its count is ahead of what it has (docs/ai-sdk.md).
    const isEven =
      got.length === now.chunks.length && JSON.stringify(got.at(-1)) === JSON.stringify(now.chunks.at(-1));
    if (breaksAfter.has(place) && isEven) {
      chunks = new RunChunks(RUN, null);
      progress = new Progress(got.length);
    }
  }
  return got;
}

async function read(chunks: readonly Chunk[]): Promise<UIMessage> {
  const stream = new ReadableStream<UIMessageChunk>({
    start(controller) {
      for (const chunk of chunks) controller.enqueue(chunk as UIMessageChunk);
      controller.close();
    },
  });
  let last: UIMessage | null = null;
  for await (const message of readUIMessageStream({ stream })) last = message;
  return last ?? expect.fail("No message was read.");
}

type Shown = { readonly type: string; readonly text?: string };
const shownIn = ({ parts }: UIMessage): Shown[] =>
  parts.flatMap((part): Shown[] => {
    if (part.type === "text" || part.type === "reasoning") return [{ type: part.type, text: part.text }];
    return part.type === "dynamic-tool" ? [{ type: `${part.toolName} ${part.state}` }] : [];
  });

const expectedOf = (all: readonly Round[]): Shown[] =>
  all.flatMap(({ blocks, usesTool }) => [
    ...blocks.map(({ kind, text }) => ({ type: kind === "text" ? "text" : "reasoning", text })),
    ...(usesTool ? [{ type: "bash output-available" }] : []),
  ]);

test("a client that breaks off anywhere and comes back has what one has that never did", () =>
  fc.assert(
    fc.asyncProperty(rounds, fc.array(fc.nat({ max: 60 })), async (all, breaks) => {
      const calm = all.map((each) => ({ ...each, dropped: [] }));
      const events = eventsOf(calm);
      const whole = follow(events, new Set());
      expect(shownIn(await read(whole))).toEqual(expectedOf(calm));
      expect(follow(events, new Set(breaks))).toEqual(whole);
    }),
    { numRuns: 300 },
  ));

test("a page that is loaded after the run reads the message that one has which followed it", () =>
  fc.assert(
    fc.asyncProperty(rounds, async (all) => {
      const events = eventsOf(all.map((each) => ({ ...each, dropped: [] })));
      const { id, parts } = await read(follow(events, new Set()));
      const stored = events.flatMap(({ name, data }) => (name === "message.added" ? [data] : []));
      const [asked, answered] = uiMessagesOf("c1", stored);
      expect(asked).toEqual({ id: RUN, role: "user", parts: [{ type: "text", text: "Go.", state: "done" }] });
      // The reader of version 6 writes down fields that are undefined.
      expect(answered).toEqual(JSON.parse(JSON.stringify({ id, role: "assistant", parts })));
      expect(uiMessagesOf("c1", stored.slice(0, -1))).toEqual([asked]);
    }),
  ));

test("a client that joins late, or whose live text came in other pieces, has the same chunks", () =>
  fc.assert(
    fc.property(rounds, fc.nat({ max: 60 }), (all, place) => {
      const calm = all.map((each) => ({ ...each, dropped: [] }));
      const events = eventsOf(calm);
      const whole = follow(events, new Set());
      let run = newRun(RUN);
      for (const event of events.slice(0, place + 1)) run = reduceRun(run, event);
      const { chunks } = new RunChunks(RUN, null).of(run);
      expect(whole.slice(0, chunks.length)).toEqual(chunks);
      const inOnes = eventsOf(calm.map((each) => ({ ...each, pieces: [1] })));
      expect(follow(inOnes, new Set())).toEqual(whole);
    }),
  ));

test("an answer that was tried again is in the message whole, after what broke off; nothing is lost or doubled", () =>
  fc.assert(
    fc.asyncProperty(rounds, fc.array(fc.nat({ max: 80 })), async (all, breaks) => {
      const message = await read(follow(eventsOf(all), new Set(breaks)));
      const isDropped = dropFilter(all);
      expect(shownIn(message).filter((part) => !isDropped(part))).toEqual(
        expectedOf(all).filter((part) => !isDropped(part)),
      );
      const shown = shownIn(message).map((part) => JSON.stringify(part));
      for (const part of expectedOf(all)) expect(shown).toContain(JSON.stringify(part));
    }),
    { numRuns: 300 },
  ));

/** Parts that may be what broke off: the beginning of a block of a round that was tried again. */
function dropFilter(all: readonly Round[]): (part: Shown) => boolean {
  const blocks = all.filter(({ dropped }) => dropped.length > 0).flatMap((each) => each.blocks);
  return ({ type, text }) =>
    text !== undefined &&
    blocks.some((block) => (block.kind === "text") === (type === "text") && block.text.startsWith(text));
}

test("of a block whose live text has a gap, what comes after the gap waits for the stored message", () => {
  const events = eventsOf([
    { dropped: [], blocks: [{ kind: "text", text: "x".repeat(200) }], pieces: [50], usesTool: false },
  ]);
  const gapped = events.filter((event) => event.name !== "text.delta" || event.data.offset !== 100);
  expect(follow(gapped, new Set())).toEqual(follow(events, new Set()));
});
