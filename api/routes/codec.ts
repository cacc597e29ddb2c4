/**
 * Owns: encrypting and decrypting payloads for operators. It is the codec server of Temporal's command line
 * (`--codec-endpoint`), so that it shows what conversations have and workflows accept what it sends, and of its Web UI.
 * Not here: what encryption is (protocol/payload-encryption.ts).
 */
import { createRoute, z } from "@hono/zod-openapi";
import type { Payload } from "@temporalio/common";
import { PayloadEncryption } from "../../protocol/payload-encryption.ts";
import { needs } from "../access/roles.ts";
import type { Deps } from "../deps.ts";
import { createRouter } from "../router.ts";
import { conversationParams } from "../schemas/common.ts";
import { problems } from "../schemas/problem.ts";

const base64 = z.base64("Base64.");
const payloads = z
  .object({
    payloads: z
      .array(z.object({ metadata: z.record(z.string(), base64).optional(), data: base64.optional() }))
      .max(100)
      // Temporal's own JSON leaves out empty fields.
      .default([]),
  })
  .openapi({
    example: { payloads: [{ metadata: { encoding: "anNvbi9wbGFpbg==" }, data: "eyJ0ZXh0IjoiSGkuIn0=" }] },
  });
type Shown = z.infer<typeof payloads>["payloads"][number];

const body = { required: true, content: { "application/json": { schema: payloads } } };
const responses = {
  200: { description: "The same payloads.", content: { "application/json": { schema: payloads } } },
  ...problems(
    "malformed_json",
    "not_found",
    "unsupported_media_type",
    "payload_too_large",
    "invalid_request",
  ),
};

const encode = createRoute({
  method: "post",
  path: "/api/conversations/{id}/codec/encode",
  operationId: "encodePayloads",
  // Who may encrypt may do everything: an approval is one of the orders.
  ...needs("admin"),
  tags: ["System"],
  summary: "Encrypt payloads for a conversation",
  description:
    "For `temporal workflow signal --codec-endpoint …/codec`: the workflow takes no signal that is not encrypted for it. Who may ask this may do everything.",
  request: { params: conversationParams, body },
  responses,
});
const decode = createRoute({
  method: "post",
  path: "/api/codec/decode",
  operationId: "decodePayloads",
  ...needs("read"),
  tags: ["System"],
  summary: "Decrypt payloads",
  description:
    "For display, in Temporal's Web UI and command line: whatever place a payload belongs to. What cannot be decrypted comes back as it is.",
  request: { body },
  responses,
});
const decodeBesideEncode = createRoute({
  method: "post",
  path: "/api/conversations/{id}/codec/decode",
  operationId: "decodePayloadsOfConversation",
  ...needs("read"),
  tags: ["System"],
  summary: "Decrypt payloads",
  description: "The same as `/api/codec/decode`, where Temporal's command line looks for it beside `encode`.",
  request: { params: conversationParams, body },
  responses,
});

/** What the routes need: Temporal's Web UI has them on its own origin, too (local/temporal/ui.ts). */
export type CodecDeps = Pick<Deps, "payloadKeys" | "temporalNamespace">;

export function codecRoutes({ payloadKeys, temporalNamespace: namespace }: CodecDeps) {
  const codec = payloadKeys.length === 0 ? null : new PayloadEncryption(payloadKeys);
  const revealed = (given: readonly Shown[]) => ({
    payloads: given.map(payloadOf).map((payload) => shown(codec?.reveal(payload) ?? payload)),
  });
  return createRouter()
    .openapi(encode, async (c) => {
      const { name } = c.var.caller;
      const given = c.req.valid("json").payloads.map((payload) => withName(payloadOf(payload), name));
      const context = { type: "workflow", namespace, workflowId: c.req.valid("param").id } as const;
      const encrypted = codec === null ? given : await codec.encode(given, context);
      return c.json({ payloads: encrypted.map(shown) }, 200);
    })
    .openapi(decode, (c) => c.json(revealed(c.req.valid("json").payloads), 200))
    .openapi(decodeBesideEncode, (c) => c.json(revealed(c.req.valid("json").payloads), 200));
}

/** Puts the caller's name, and no other, into the input of a decision (`decideUpgrade`). */
function withName(payload: Payload, name: string | null): Payload {
  const input = inputIn(payload);
  if (input === null || !("decision" in input)) return payload;
  const { by: _, ...decision } = input;
  const named = name === null ? decision : { ...decision, by: name };
  return { ...payload, data: Buffer.from(JSON.stringify(named)) };
}

/** The object that is written in a payload as JSON; null: there is none. */
function inputIn({ metadata, data }: Payload): (object & { readonly by?: unknown }) | null {
  if (Buffer.from(metadata?.["encoding"] ?? []).toString() !== "json/plain") return null;
  try {
    const value: unknown = JSON.parse(Buffer.from(data ?? []).toString());
    return typeof value === "object" && value !== null && !Array.isArray(value) ? value : null;
  } catch {
    return null;
  }
}

const payloadOf = ({ metadata = {}, data = "" }: Shown): Payload => ({
  metadata: Object.fromEntries(Object.entries(metadata).map(([name, value]) => [name, bytes(value)])),
  data: bytes(data),
});

const shown = ({ metadata, data }: Payload): Shown => ({
  metadata: Object.fromEntries(Object.entries(metadata ?? {}).map(([name, value]) => [name, text(value)])),
  data: text(data ?? new Uint8Array()),
});

const bytes = (value: string): Uint8Array => Buffer.from(value, "base64");
const text = (value: Uint8Array): string => Buffer.from(value).toString("base64");
