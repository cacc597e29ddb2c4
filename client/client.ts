/**
 * Owns: a client of one server: the calls, and the models that its one event stream keeps up to date. It runs in
 * browsers and in Node.
 */
import { allConversations } from "./all-conversations.ts";
import { type Calls, createCalls, type Server } from "./calls.ts";
import { known } from "./conversation-model.ts";
import type { Conversation, ConversationEvent, ListEvent } from "./events.ts";
import { Models } from "./models.ts";
import { Stream } from "./stream.ts";

/** What shows a client's models: the client itself, or a page that shares one with other pages. */
export type View = {
  readonly models: Models;
  /** Keeps a conversation up to date until the function that is returned is called. */
  readonly open: (id: string) => () => void;
  /** Comes back at once after the network has changed. */
  readonly reconnect: () => void;
  readonly end: () => void;
};

/** Events that say where a stream stands. They come with the cursor of the last durable event before. */
const OF_STREAM: ReadonlySet<string> = new Set(["snapshot", "synced", "resync"]);

export type Client = Omit<View, "open"> &
  Calls & {
    /**
     * Keeps a conversation up to date until the function that is returned is called.
     *
     * @param from what is known of it, and the number of the last event that is; unless given, the model begins with
     *   the last hundred messages
     */
    readonly open: (
      id: string,
      from?: { readonly conversation: Conversation; readonly after: number },
    ) => () => void;
  };

export type ClientOptions = {
  /** Whether the list of conversations is wanted; true unless given. */
  readonly list?: boolean;
  /**
   * Hears each event of an open conversation before its model changes.
   *
   * @param number of a durable event: one more than that of the event before; null for live text and what the stream
   *   says of itself
   */
  readonly onEvent?: (id: string, event: ConversationEvent, number: number | null) => void;
};

/** Connects at once; `models.link` says how that goes. */
export function createClient(server: Server, { list = true, onEvent }: ClientOptions = {}): Client {
  const calls = createCalls(server);
  const models = new Models();
  const holders = new Map<string, number>();

  const readList = async (): Promise<void> => {
    const conversations = await allConversations(calls.persist, "all");
    const input = { name: "list.loaded", data: { conversations } } as const;
    models.apply({ kind: "list_input", input, now: Date.now() });
  };
  let isListWanted = true;
  const onListEvent = (input: ListEvent): void => {
    models.apply({ kind: "list_input", input, now: Date.now() });
    if (input.name === "resync") isListWanted = true;
    if (input.name !== "synced" || !isListWanted) return;
    isListWanted = false;
    // The next `synced` asks again.
    readList().catch(() => (isListWanted = true));
  };

  const stream = new Stream(server, {
    onLink: (link) => models.apply({ kind: "link", link }),
    onListEvent: list ? onListEvent : null,
    onConversationEvent: (id, input, cursor) => {
      onEvent?.(id, input, cursor === null || OF_STREAM.has(input.name) ? null : Number(cursor));
      models.apply({ kind: "conversation_input", id, input, now: Date.now() });
    },
  });

  return {
    ...calls,
    models,
    open: (id, from) => {
      holders.set(id, (holders.get(id) ?? 0) + 1);
      if (from !== undefined && models.conversation(id).kind === "loading")
        models.apply({ kind: "conversation", id, model: known(from.conversation) });
      stream.open(id, from === undefined ? null : String(from.after));
      let isHeld = true;
      return () => {
        if (!isHeld) return;
        isHeld = false;
        const others = (holders.get(id) ?? 1) - 1;
        if (others > 0) holders.set(id, others);
        else {
          holders.delete(id);
          stream.close(id);
          models.apply({ kind: "closed", id });
        }
      };
    },
    reconnect: () => stream.reconnect(),
    end: () => stream.end(),
  };
}
