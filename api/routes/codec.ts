/**
 * Owns: signing and reading payloads for operators. It is the codec server of Temporal's command line
 * (`--codec-endpoint`), so that workflows accept the signals that it sends.
 * Not here: what a signature is (protocol/payload-signature.ts).
 */
import { createRoute, z } from "@hono/zod-openapi";
import type { Payload } from "@temporalio/common";
import { PayloadSignature, withoutSignature } from "../../protocol/payload-signature.ts";
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

const route = (name: "encode" | "decode", summary: string, description: string) =>
  createRoute({
    method: "post",
    path: `/api/conversations/{id}/codec/${name}`,
    operationId: `${name}Payloads`,
    // Who may sign may do everything: an approval is one of the orders.
    ...needs(name === "encode" ? "admin" : "read"),
    tags: ["System"],
    summary,
    description,
    request: {
      params: conversationParams,
      body: { required: true, content: { "application/json": { schema: payloads } } },
    },
    responses: {
      200: { description: "The same payloads.", content: { "application/json": { schema: payloads } } },
      ...problems(
        "malformed_json",
        "not_found",
        "unsupported_media_type",
        "payload_too_large",
        "invalid_request",
      ),
    },
  });

const encode = route(
  "encode",
  "Sign payloads for a conversation",
  "For `temporal workflow signal --codec-endpoint …/codec`: the workflow takes no signal that is not signed. Who may ask this may do everything.",
);
const decode = route(
  "decode",
  "Read payloads of a conversation",
  "Takes the signatures off, for display; whether they hold is not looked at.",
);

export function codecRoutes({ payloadKey, temporalNamespace: namespace }: Deps) {
  const codec = payloadKey === null ? null : new PayloadSignature(payloadKey);
  return createRouter()
    .openapi(encode, async (c) => {
      const { name } = c.var.caller;
      const given = c.req.valid("json").payloads.map((payload) => withName(payloadOf(payload), name));
      const context = { type: "workflow", namespace, workflowId: c.req.valid("param").id } as const;
      const signed = codec === null ? given : await codec.encode(given, context);
      return c.json({ payloads: signed.map(shown) }, 200);
    })
    .openapi(decode, (c) => {
      const given = c.req.valid("json").payloads.map(payloadOf);
      return c.json({ payloads: given.map(withoutSignature).map(shown) }, 200);
    });
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
