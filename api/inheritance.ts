/**
 * Owns: what a new conversation takes over from the one that it continues (REQ-BED-021): a text for its model, and the
 * messages that waited. The text is the summary. Where none could be written, it is an excerpt that needs no model.
 */
import type { ConversationView } from "../db/views.ts";
import { readExcerpt } from "../db/excerpt.ts";
import { WRITING_TOOLS } from "../machine/control-tools.ts";
import type { Inheritance } from "../machine/conversation.ts";
import { bounded } from "../machine/size.ts";
import { withdrawMessageUpdate } from "../protocol/workflow.ts";
import type { Deps } from "./deps.ts";
import { Problem } from "./problem.ts";
import { awaitRevision } from "./projection.ts";

/** Requests and files of an excerpt, and the bytes of each. */
const LIMITS = { requests: 8, files: 50 };
const REQUEST_BYTES = 4 * 1024;
const PATH_BYTES = 1024;

/**
 * @throws Problem `no_summary` if a seed is wanted and the conversation has not ended; `sub_agent_read_only`.
 */
export async function inheritanceFrom(
  { db }: Pick<Deps, "db">,
  earlier: ConversationView,
  wanted: { readonly seed: boolean; readonly queue?: boolean | undefined },
): Promise<Inheritance> {
  const { id, state, queue, parentId } = earlier;
  if (parentId !== null) throw new Problem("sub_agent_read_only", "A sub-agent cannot be continued.");
  const isEnded = state.kind === "context_exhausted";
  // Elsewhere the messages are still to be delivered.
  const inherited = isEnded && wanted.queue !== false ? queue : [];
  if (!wanted.seed) return { seed: null, queue: inherited };
  if (!isEnded) {
    throw new Problem(
      "no_summary",
      "That conversation has no summary yet. End it with POST …/continuation first, or go on without its summary (`seed: false`).",
      { state },
    );
  }
  if (state.source === "model") {
    return {
      seed: { source: "summary", text: `${INTRODUCTION} Its summary:\n\n${state.summary}` },
      queue: inherited,
    };
  }
  const excerpt = excerptText(await readExcerpt(db, id, WRITING_TOOLS, LIMITS));
  return { seed: { source: "excerpt", text: excerpt }, queue: inherited };
}

/**
 * Takes the messages that came along out of the earlier conversation. The new one has them already, so nothing is lost
 * if this fails; they are then offered once more.
 */
export async function handOver(
  deps: Pick<Deps, "db" | "hub" | "workflows">,
  from: string,
  { queue }: Inheritance,
): Promise<void> {
  let last = 0;
  for (const { messageId } of queue) {
    try {
      last = (await deps.workflows.update(from, withdrawMessageUpdate, [{ messageId }])).revision;
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
    }
  }
  if (last > 0) await awaitRevision(deps, from, last);
}

const INTRODUCTION = "This conversation continues an earlier one whose context was exhausted.";

function excerptText({ requests, files }: Awaited<ReturnType<typeof readExcerpt>>): string {
  const parts = [`${INTRODUCTION} No summary of it could be written.`];
  if (requests.length > 0) {
    const list = requests.map((text, index) => `${index + 1}. ${bounded(text, REQUEST_BYTES)}`);
    parts.push(`The user's last requests there, oldest first:\n\n${list.join("\n\n")}`);
  }
  if (files.length > 0) {
    const list = files.map((path) => `- ${bounded(path, PATH_BYTES)}`);
    parts.push(`The files that were changed there, the latest last:\n\n${list.join("\n")}`);
  }
  parts.push("How far the last request came is unknown: look at the files before you go on.");
  return parts.join("\n\n");
}
