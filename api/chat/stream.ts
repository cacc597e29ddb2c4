/**
 * Owns: a run's chunks on their way to one client of the AI SDK, from the run's beginning to its end, or from where the
 * client broke off. What the conversation's event stream says, chunks say in other words.
 */
import { readMessages } from "../../db/messages.ts";
import type { Snapshot } from "../../db/views.ts";
import type { Deps } from "../deps.ts";
import { ConversationFeed, type Sink } from "../events/conversation-feed.ts";
import { SseWriter, type ServerSentEvent } from "../events/sse-writer.ts";
import { RunChunks } from "./chunks.ts";
import { Progress } from "./progress.ts";
import { newRun, reduceRun, type RunEvent } from "./run.ts";

/** Messages of one read. */
const PAGE = 500;

export type RunPlace = {
  readonly conversationId: string;
  /** The id of the message that began it. */
  readonly runId: string;
  /** The call of the approval after which the client goes on; null: from the beginning. */
  readonly decided: string | null;
};

/**
 * The client's stream; it ends with the run, and when the run waits for an approval.
 *
 * @param has chunks that the client has already
 * @throws Problem `not_found`; rejects when the database cannot be reached
 */
export async function streamRun(
  deps: Pick<Deps, "db" | "hub" | "report" | "heartbeatMs">,
  { conversationId, runId, decided }: RunPlace,
  has: number,
): Promise<SseWriter> {
  // Its parser takes every event for a chunk, so a heartbeat is a comment.
  const writer = new SseWriter(
    () => feed.check(),
    deps.heartbeatMs,
    () => ": heartbeat\n\n",
  );
  const chunks = new RunChunks(runId, decided);
  const progress = new Progress(has);
  let run = newRun(runId);

  const tell = (): void => {
    const now = chunks.of(run);
    for (const chunk of progress.next(now)) writer.write(`data: ${JSON.stringify(chunk)}\n\n`);
    if (!now.isEnded) return;
    writer.write("data: [DONE]\n\n");
    writer.end();
  };

  const begin = async ({ messages, conversation }: Snapshot): Promise<void> => {
    const isWhole = messages.some(({ id }) => id === runId);
    const before = isWhole ? [] : await earlier(deps, conversationId, runId, messages[0]?.sequence ?? 1);
    for (const data of [...before, ...messages]) run = reduceRun(run, { name: "message.added", data });
    run = reduceRun(run, { name: "state.changed", data: { state: conversation.state } });
  };

  /** Events wait for the reading of what came before them. */
  let taken = Promise.resolve();
  const sink: Sink = {
    get isOpen() {
      return writer.isOpen;
    },
    get waiting() {
      return writer.waiting;
    },
    closed: writer.closed,
    drained: () => writer.drained(),
    cut: () => writer.cut(),
    send: (event) => {
      taken = taken
        .then(() => take(event))
        .catch((error: unknown) => {
          deps.report(`chat stream of ${conversationId}`, error);
          writer.cut();
        });
    },
  };
  const take = async ({ name, data }: ServerSentEvent): Promise<void> => {
    if (!writer.isOpen) return;
    switch (name) {
      case "snapshot":
        await begin(data as Snapshot);
        return;
      case "synced":
        break;
      case "message.added":
      case "state.changed":
      case "text.delta":
      case "thinking.delta":
        // The feed's events are typed where they are made.
        run = reduceRun(run, { name, data } as RunEvent);
        break;
      case "conversation.deleted":
        writer.end();
        return;
      default:
        return;
    }
    tell();
  };
  const feed = new ConversationFeed(deps, conversationId, sink);
  await feed.open(null);
  return writer;
}

/** Messages of the run that a snapshot does not have. */
async function earlier({ db }: Pick<Deps, "db">, id: string, runId: string, before: number) {
  const found = [];
  let end = before;
  while (end > 1) {
    const page = await readMessages(db, id, { before: end, limit: PAGE });
    found.unshift(...page);
    end = page[0]?.sequence ?? 1;
    if (page.some((message) => message.id === runId)) break;
  }
  return found;
}
