/** Owns: making a conversation, and its first message, once, however often the request has to be sent. */
import { Refused, type Calls, type Routes } from "./calls.ts";
import type { Conversation } from "./events.ts";

type Body = Parameters<Routes["conversations"]["$post"]>[0]["json"];

export type NewConversation = Body & { readonly id: string };

/** @throws Refused, Unreachable */
export async function makeConversation(
  { persist }: Pick<Calls, "persist">,
  json: NewConversation,
): Promise<Conversation> {
  const { id, message } = json;
  try {
    return (await persist((routes) => routes.conversations.$post({ json }))) as Conversation;
  } catch (error) {
    if (!(error instanceof Refused && error.problem.code === "already_exists")) throw error;
  }
  // An earlier try got through, but its answer did not. Its message may still be on this side.
  if (message !== undefined)
    await persist((routes) =>
      routes.conversations[":id"].messages.$post({ param: { id }, json: { ...message, delivery: "steer" } }),
    );
  return (await persist((routes) => routes.conversations[":id"].$get({ param: { id } }))) as Conversation;
}
