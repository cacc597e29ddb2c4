/** Owns: what a client of the AI SDK sends (docs/ai-sdk.md). It sends more than is used, so unknown fields are ignored. */
import { z } from "@hono/zod-openapi";
import { CLIENT_ID } from "../../protocol/formats.ts";
import { invalidRequest } from "../router.ts";
import type { UiMessage } from "../chat/ui-messages.ts";
import { answer, clientId, text } from "./common.ts";
import { newMessage, type NewMessage } from "./message.ts";

const part = z.looseObject({ type: z.string() });

export const chatRequest = z
  .object({
    id: clientId("The chat's id: the conversation's. A new one begins a conversation."),
    messages: z
      .array(
        z.object({ id: z.string(), role: z.enum(["system", "user", "assistant"]), parts: z.array(part) }),
      )
      .min(1)
      .openapi({ description: "Only the last one counts: the server has those before." }),
    trigger: z.enum(["submit-message", "regenerate-message"]).optional(),
    messageId: z.string().nullish(),
    cwd: text.optional().openapi({ description: "Of a new conversation; else the tools' home directory." }),
    model: z.string().min(1).max(200).optional().openapi({ description: "Of a new conversation." }),
  })
  .openapi("ChatRequest");

export const uiMessage = answer<UiMessage>(
  z
    .object({ id: z.string(), role: z.enum(["user", "assistant"]), parts: z.array(part) })
    .openapi("UiMessage", { description: "A UIMessage of the AI SDK." }),
);

export type ChatRequest = z.output<typeof chatRequest>;

/** What a request asks for. */
export type ChatOrder =
  | { readonly kind: "message"; readonly message: NewMessage & { readonly id: string } }
  | {
      readonly kind: "decision";
      /** Of the assistant's message, which has the run's id. */
      readonly answerId: string;
      readonly decision: "approve" | "deny";
      readonly toolCallId: string;
    };

/** @throws Problem `invalid_request` */
export function orderOf({ messages, trigger, messageId }: ChatRequest): ChatOrder {
  const last = messages.at(-1);
  const path = `messages.${messages.length - 1}`;
  if (last === undefined || trigger === "regenerate-message")
    throw invalid("trigger", "A stored conversation only goes on: send a new message.");
  if (last.role === "assistant") {
    const decided = last.parts.map(decisionIn).findLast((decision) => decision !== null);
    if (decided === undefined)
      throw invalid(path, "The last message has to be the person's, or to decide an approval.");
    return { kind: "decision", answerId: last.id, ...decided };
  }
  if (last.role === "system") throw invalid(path, "The last message has to be the person's.");
  if (messageId != null) throw invalid("messageId", "A stored message cannot be replaced: send a new one.");
  const parsed = newMessage.safeParse({
    id: last.id,
    text: last.parts.map(textIn).join(""),
    ...imagesIn(last.parts, path),
  });
  const [issue] = parsed.error?.issues ?? [];
  if (!parsed.success) throw invalid(`${path}.${issue?.path.join(".") ?? ""}`, issue?.message ?? "");
  return { kind: "message", message: { ...parsed.data, id: last.id } };
}

type Part = z.output<typeof part>;

const invalid = (path: string, message: string) => invalidRequest([{ path, message }]);

const textIn = ({ type, text }: Part): string => (type === "text" && typeof text === "string" ? text : "");

const DATA_URL = /^data:([\w.+-]+\/[\w.+-]+);base64,(.*)$/s;

function imagesIn(parts: readonly Part[], path: string) {
  const images = parts.flatMap(({ type, url }, index) => {
    if (type !== "file") return [];
    const [, mediaType, data] = (typeof url === "string" ? DATA_URL.exec(url) : null) ?? [];
    if (mediaType === undefined || data === undefined)
      throw invalid(`${path}.parts.${index}.url`, "A file is an image as a data URL in base64.");
    return [{ mediaType, data }];
  });
  return images.length === 0 ? {} : { images };
}

const approvalResponse = z.object({
  state: z.literal("approval-responded"),
  approval: z.object({ id: z.string().min(1).max(200), approved: z.boolean() }),
});

function decisionIn(part: Part): { decision: "approve" | "deny"; toolCallId: string } | null {
  const response = approvalResponse.safeParse(part);
  if (!response.success) return null;
  const { id: toolCallId, approved } = response.data.approval;
  return { decision: approved ? "approve" : "deny", toolCallId };
}

/** A chat's id, or what the header `x-workflow-run-id` named: `conversation.run`, or `conversation.run.call`. */
const RUN_ID = new RegExp(
  `^(?<conversationId>${idIn(CLIENT_ID)})(\\.(?<runId>${idIn(CLIENT_ID)})(\\.(?<decided>[^/]{1,200}))?)?$`,
);

export const streamParams = z.object({
  id: z
    .string()
    .regex(RUN_ID)
    .openapi({
      param: { name: "id", in: "path" },
      description: "The chat's id, or the value of the header `x-workflow-run-id`.",
    }),
});

/** The parts of such an id; without a run: the one that is under way. */
export function runPlaceIn(id: string) {
  const { conversationId = "", runId = null, decided = null } = RUN_ID.exec(id)?.groups ?? {};
  return { conversationId, runId, decided };
}

function idIn(pattern: RegExp): string {
  return pattern.source.replace(/^\^|\$$/g, "");
}
