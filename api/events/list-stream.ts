/**
 * Owns: `GET /api/events`: the fields that a list of conversations shows, as they change. No replay: a client
 * subscribes, waits for `synced`, reads the list, and reads it again on `resync`.
 * All clients share one reader. If a conversation changes quickly, the reader sends only the values at the time of each
 * read.
 */
import { isUnavailable } from "../../db/errors.ts";
import type { Unsubscribe } from "../../db/notifications.ts";
import { type ConversationView, readSnapshot } from "../../db/views.ts";
import type { Deps } from "../deps.ts";
import type { Notice } from "./hub.ts";
import { SseWriter, type ServerSentEvent } from "./sse-writer.ts";

/** Bytes that may wait for one client. */
const WAITING_LIMIT = 1024 * 1024;
/** Conversations whose last facts are remembered; a forgotten one is sent in full again. */
const REMEMBERED = 10_000;
const RETRY_MS = 500;

export type ListStreams = {
  /** A new client's stream. */
  open(): SseWriter;
};

type Wanted = Pick<Deps, "db" | "hub" | "report"> & { readonly heartbeatMs?: number };

export function createListStreams(deps: Wanted): ListStreams {
  const clients = new Set<SseWriter>();
  const told = new Map<string, { readonly facts: string; readonly state: string }>();
  const changed = new Set<string>();
  let unwatch: Unsubscribe | null = null;
  let reading = false;
  /** The conversation that is being read, and whether it was deleted meanwhile. */
  let current = { id: "", gone: false };

  const broadcast = (event: ServerSentEvent) => {
    for (const client of clients) {
      client.send(event);
      if (client.waiting > WAITING_LIMIT) client.cut();
    }
  };

  const receive = (notice: Notice) => {
    if (notice.kind === "reconnected") {
      told.clear();
      broadcast({ name: "resync", data: {} });
    } else if (notice.parentId !== null) {
      return;
    } else if (notice.kind === "deleted") {
      changed.delete(notice.conversationId);
      told.delete(notice.conversationId);
      if (current.id === notice.conversationId) current.gone = true;
      broadcast({ name: "conversation.deleted", data: { id: notice.conversationId } });
    } else {
      changed.add(notice.conversationId);
      if (!reading) void readChanged();
    }
  };

  const readChanged = async () => {
    reading = true;
    while (changed.size > 0) {
      try {
        for (const id of changed) {
          changed.delete(id);
          await tell(id);
        }
      } catch (error) {
        if (!isUnavailable(error)) deps.report("list stream", error);
        await new Promise((resolve) => setTimeout(resolve, RETRY_MS).unref());
        // The clients read for themselves what could not be sent.
        changed.clear();
        told.clear();
        broadcast({ name: "resync", data: {} });
      }
    }
    reading = false;
  };

  const tell = async (id: string) => {
    current = { id, gone: false };
    const snapshot = await readSnapshot(deps.db, id, 1);
    if (snapshot === null || current.gone) return;
    const { conversation, messages } = snapshot;
    const last = told.get(id);
    const facts = factsOf(conversation);
    const now = { facts: JSON.stringify(facts), state: JSON.stringify(conversation.state) };
    if (last?.facts !== now.facts) {
      broadcast({ name: "conversation.changed", data: { ...facts, updatedAt: conversation.updatedAt } });
    }
    if (last?.state !== now.state) {
      const cycleId = messages.at(-1)?.cycleId ?? null;
      broadcast({ name: "state.changed", data: { id, state: conversation.state, cycleId } });
    }
    remember(told, id, now);
  };

  return {
    open() {
      const client = new SseWriter(undefined, deps.heartbeatMs);
      clients.add(client);
      unwatch ??= deps.hub.watchAll(receive);
      void client.closed.then(() => {
        clients.delete(client);
        if (clients.size > 0) return;
        unwatch?.();
        unwatch = null;
        changed.clear();
        told.clear();
      });
      client.send({ name: "synced", data: { lastEvent: null } });
      return client;
    },
  };
}

function factsOf(conversation: ConversationView) {
  const { id, slug, title, cwd, host, model, scripted, mode, archived, continuedFrom, createdAt } =
    conversation;
  return { id, slug, title, cwd, host, model, scripted, mode, archived, continuedFrom, createdAt };
}

function remember<T>(map: Map<string, T>, key: string, value: T): void {
  map.delete(key);
  map.set(key, value);
  const [oldest] = map.keys();
  if (map.size > REMEMBERED && oldest !== undefined) map.delete(oldest);
}
