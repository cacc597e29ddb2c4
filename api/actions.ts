/**
 * Owns: the requests with which a client can go on when a context is full or nearly full (REQ-BED-012, 021). They come
 * with the events and with the refused message, so that a client can offer them as buttons.
 */
import type { EventView } from "../db/events.ts";

type Call = { readonly method: "POST"; readonly path: string; readonly body: object };

const create = (body: object): Call => ({ method: "POST", path: "/api/conversations", body });

/** Ends the conversation with a summary. */
const windUp = (id: string): Call => ({
  method: "POST",
  path: `/api/conversations/${id}/continuation`,
  body: {},
});

/** A new conversation that begins with the summary, or with an excerpt where there is none. */
export const continueWithSummary = (id: string): Call => create({ continuedFrom: { id, seed: true } });

/** Adds the requests to the data of an event, as clients get it. */
export function withActions(id: string, { name, data }: EventView): object {
  if (name === "context.warned")
    return { ...data, actions: { windUp: windUp(id), startAnew: startAnew(id) } };
  if (name !== "context.exhausted") return data;
  return { ...data, actions: { continueWithSummary: continueWithSummary(id), startAnew: startAnew(id) } };
}

/** A new conversation in the same directory that knows nothing of this one. */
const startAnew = (id: string): Call => create({ continuedFrom: { id, seed: false } });
