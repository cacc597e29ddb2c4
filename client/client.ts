/**
 * Owns: a client of one server: the calls, and the models that its one event stream keeps up to date. It runs in
 * browsers and in Node.
 */
import { type Calls, createCalls, type Server } from "./calls.ts";
import type { Conversation } from "./events.ts";
import { Models } from "./models.ts";
import { Stream } from "./stream.ts";

/** Conversations of one request for the list. */
const PAGE = 1_000;

/** What shows a client's models: the client itself, or a page that shares one with other pages. */
export type View = {
  readonly models: Models;
  /** Keeps a conversation up to date until the function that is returned is called. */
  readonly open: (id: string) => () => void;
  /** Comes back at once after the network has changed. */
  readonly reconnect: () => void;
  readonly end: () => void;
};

export type Client = View & Calls;

/** Connects at once; `models.link` says how that goes. */
export function createClient(server: Server): Client {
  const calls = createCalls(server);
  const models = new Models();
  const holders = new Map<string, number>();

  /** The conversations from a page on; null: from the first. */
  const pagesFrom = async (cursor: string | null): Promise<Conversation[]> => {
    const query = { archived: "all" as const, limit: String(PAGE), ...(cursor === null ? {} : { cursor }) };
    const { conversations, nextCursor } = await calls.persist((routes) =>
      routes.conversations.$get({ query }),
    );
    // The same type: hono only writes "any JSON value" in another way.
    const page = conversations as Conversation[];
    return [...page, ...(nextCursor === null ? [] : await pagesFrom(nextCursor))];
  };
  const readList = async (): Promise<void> => {
    const conversations = await pagesFrom(null);
    const input = { name: "list.loaded", data: { conversations } } as const;
    models.apply({ kind: "list_input", input, now: Date.now() });
  };
  let isListWanted = true;

  const stream = new Stream(server, {
    onLink: (link) => models.apply({ kind: "link", link }),
    onListEvent: (input) => {
      models.apply({ kind: "list_input", input, now: Date.now() });
      if (input.name === "resync") isListWanted = true;
      if (input.name !== "synced" || !isListWanted) return;
      isListWanted = false;
      // The next `synced` asks again.
      readList().catch(() => (isListWanted = true));
    },
    onConversationEvent: (id, input) =>
      models.apply({ kind: "conversation_input", id, input, now: Date.now() }),
  });

  return {
    ...calls,
    models,
    open: (id) => {
      holders.set(id, (holders.get(id) ?? 0) + 1);
      stream.open(id);
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
