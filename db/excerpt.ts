/** Owns: reading what a conversation was about without its summary: the last requests, and the files it changed. */
import type { Database } from "./connect.ts";
import { cleanText } from "./json.ts";

export type Excerpt = {
  /** Texts of the person's last messages, oldest first. */
  readonly requests: readonly string[];
  /** Paths as the model gave them, the last changed one last. */
  readonly files: readonly string[];
};

/**
 * The texts of the last user messages, and the paths of the calls of these tools that were completed.
 *
 * @param limits how many of each at most
 */
export async function readExcerpt(
  db: Database,
  id: string,
  tools: readonly string[],
  limits: { readonly requests: number; readonly files: number },
): Promise<Excerpt> {
  const conversationId = cleanText(id);
  const [row] = await db.sql<Excerpt[]>`
    select (
      select coalesce(json_agg(r.text order by r.sequence_id), '[]') from (
        select m.sequence_id, string_agg(b.value ->> 'text', E'\n') as text
        from messages m, jsonb_array_elements(m.content) as b
        where m.conversation_id = ${conversationId} and m.message_type = 'user' and b.value ->> 'type' = 'text'
        group by m.sequence_id order by m.sequence_id desc limit ${limits.requests}) as r
    ) as requests, (
      select coalesce(json_agg(f.path order by f.last), '[]') from (
        select b.value #>> '{input,path}' as path, max(m.sequence_id) as last
        from messages m, jsonb_array_elements(m.content) as b
        where m.conversation_id = ${conversationId} and m.message_type = 'agent'
          and b.value ->> 'type' = 'tool_use' and b.value ->> 'name' in ${db.sql(tools)}
          and jsonb_typeof(b.value #> '{input,path}') = 'string'
          and exists (
            select from messages t where t.conversation_id = m.conversation_id and t.message_type = 'tool'
              and md5(t.content -> 0 ->> 'toolCallId') = md5(b.value ->> 'id')
              and t.content #>> '{0,status}' = 'completed')
        group by path order by last desc limit ${limits.files}) as f
    ) as files`;
  return row ?? { requests: [], files: [] };
}
