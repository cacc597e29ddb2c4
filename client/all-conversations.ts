/** Owns: reading the list of conversations, page by page. */
import type { Calls } from "./calls.ts";
import type { Conversation } from "./events.ts";

/** Conversations of one request. */
const PAGE = 1_000;

/**
 * All conversations but sub-agents, newest first.
 *
 * @param archived "all", or only those that are archived or not
 * @throws Refused, Unreachable
 */
export async function allConversations(
  request: Calls["call"],
  archived: "true" | "false" | "all",
  cursor: string | null = null,
): Promise<Conversation[]> {
  const query = { archived, limit: String(PAGE), ...(cursor === null ? {} : { cursor }) };
  const { conversations, nextCursor } = await request((routes) => routes.conversations.$get({ query }));
  // The same type: hono only writes "any JSON value" in another way.
  const page = conversations as Conversation[];
  return nextCursor === null ? page : [...page, ...(await allConversations(request, archived, nextCursor))];
}
