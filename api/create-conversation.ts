/**
 * Owns: making a conversation (REQ-BED-010, 014, 021): its directory and host, its mode, and the one that it continues.
 */
import { conversationExists } from "../db/conversations.ts";
import { type ConversationView, getConversation } from "../db/views.ts";
import { titleOf } from "../protocol/title.ts";
import type { CreateInput } from "../protocol/workflow.ts";
import type { Deps } from "./deps.ts";
import { newId } from "./ids.ts";
import { handOver, inheritanceFrom } from "./inheritance.ts";
import { notFound, Problem, unavailable } from "./problem.ts";
import { toolHostOf } from "./tool-hosts.ts";
import { invalidRequest } from "./router.ts";
import { awaitProjection } from "./projection.ts";
import { readImages } from "./images.ts";
import { refuseOverLimit } from "./spending.ts";
import { sendMessage } from "./send-message.ts";
import type { newConversation } from "./schemas/conversation.ts";
import type { z } from "@hono/zod-openapi";

export type NewConversation = z.output<typeof newConversation>;

/**
 * Resolves when the conversation, and its first message if there is one, can be read.
 *
 * @param gone aborts when the client no longer waits.
 */
export async function createConversation(
  deps: Deps,
  wanted: NewConversation,
  gone: AbortSignal,
): Promise<ConversationView & { readonly pending?: true }> {
  const { db, hub, workflows } = deps;
  const { message } = wanted;
  const prepared = message === undefined ? [] : await readImages(message, "message.", gone);
  const id = wanted.id ?? newId();
  // Checked for a new id, too: without Postgres a workflow would be started in vain.
  if (await conversationExists(db, id)) throw alreadyExists(id);

  const createInput = await createInputOf(deps, id, wanted);
  const isNew = await workflows.open(id, createInput);
  const look = () => getConversation(db, id);
  const opened = await awaitProjection(hub, id, look);
  if (opened === null)
    throw unavailable("The conversation is being made, but the database does not show it yet.");
  // Said only of a conversation that can be read: an earlier request may still be making it.
  if (!isNew) throw alreadyExists(id);
  const { inherited } = createInput;
  if (wanted.continuedFrom !== undefined && inherited !== null)
    await handOver(deps, wanted.continuedFrom.id, inherited);
  if (message === undefined) return opened;

  const sent = await sendMessage(deps, id, message, () => Promise.resolve(prepared));
  const conversation = (await look()) ?? opened;
  return sent.pending === true ? { ...conversation, pending: true } : conversation;
}

async function createInputOf(deps: Deps, id: string, wanted: NewConversation): Promise<CreateInput> {
  const { workflows, scripted, defaultModel } = deps;
  const { continuedFrom } = wanted;
  if (scripted && wanted.model !== undefined && wanted.model !== defaultModel) {
    const message = `Without a key of a provider there is only ${defaultModel}.`;
    throw invalidRequest([{ path: "model", message }]);
  }
  const earlier = continuedFrom === undefined ? null : await existingConversation(deps, continuedFrom.id);
  const inherited =
    earlier === null || continuedFrom === undefined
      ? null
      : await inheritanceFrom(deps, earlier, continuedFrom);
  // A directory belongs to a host: without a `cwd` the new conversation lives on the host of the earlier one.
  const host =
    wanted.host === undefined && wanted.cwd === undefined && earlier !== null
      ? earlier.host
      : toolHostOf(deps, wanted.host);
  const directory = absolute(wanted.cwd ?? earlier?.cwd);
  const [cwd, sandbox] = await Promise.all([existing(deps, host, directory), workflows.sandboxOf(host)]);
  // Nothing may be concluded from it: an Unrestricted conversation is Unrestricted for as long as it lives.
  if (sandbox.kind === "unknown") throw sandboxUnknown(sandbox.reason);
  const title = wanted.title?.trim() ?? "";
  const model = wanted.model ?? earlier?.model ?? defaultModel;
  await refuseOverLimit(deps, { kind: "new", model });
  return {
    config: {
      id,
      cwd,
      host,
      model,
      scripted,
      sandbox,
      initialMode: sandbox.kind === "available" ? "restricted" : "unrestricted",
      parentId: null,
      continuedFrom: continuedFrom?.id ?? null,
      userInitiated: true,
    },
    // The first commit makes the slug from the title, so the title is taken from the first message here already.
    title: title === "" ? titleOf(wanted.message?.text ?? "") : title,
    inherited,
    task: null,
  };
}

async function existingConversation({ db }: Deps, id: string): Promise<ConversationView> {
  const conversation = await getConversation(db, id);
  if (conversation === null) throw notFound("conversation to continue");
  return conversation;
}

function absolute(cwd: string | undefined): string {
  if (cwd === undefined) throw invalidCwd("Say in which directory the agent shall work.");
  if (!cwd.startsWith("/") || cwd.includes("\0"))
    throw invalidCwd("A working directory is an absolute path.");
  return cwd;
}

/** The directory, checked on its host. */
async function existing({ workflows }: Deps, host: string, cwd: string): Promise<string> {
  const checked = await workflows.checkDirectory(host, cwd);
  if (!checked.ok) throw invalidCwd(checked.reason);
  return checked.cwd;
}

const invalidCwd = (reason: string): Problem =>
  new Problem("invalid_cwd", reason, { errors: [{ path: "cwd", message: reason }] });

const sandboxUnknown = (reason: string): Problem =>
  new Problem(
    "sandbox_unknown",
    `The host could not find out whether it can enforce Restricted mode. ${reason} Nothing was created. Try again.`,
  );

const alreadyExists = (id: string): Problem =>
  new Problem("already_exists", "A conversation with this id exists. Read it, or choose another id.", { id });
