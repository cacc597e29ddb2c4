/** Owns: what the schemas of requests and answers have in common. */
import { z } from "@hono/zod-openapi";
import type { Json } from "../../machine/message.ts";
import { jsonBytes } from "../../machine/size.ts";
import { CLIENT_ID, MAX_MESSAGE_JSON_BYTES, MAX_TEXT_BYTES } from "../../protocol/formats.ts";

/**
 * The schema of a response. It documents responses and does not parse them, so it takes the type of the response. Tests
 * show that both agree.
 */
export const answer = <T>(schema: z.ZodType): z.ZodType<T> => schema as z.ZodType<T>;

export const json = answer<Json>(z.any().openapi({ description: "Any JSON value." }));

export const time = z.iso.datetime({ precision: 3 }).openapi({
  description: "RFC 3339 UTC with milliseconds.",
  example: "2026-01-31T09:30:00.000Z",
});

/** In a path: a malformed id is unknown, not invalid (docs/http.md). */
export const pathId = (name: string, what: string) =>
  z
    .string()
    .regex(CLIENT_ID)
    .openapi({
      param: { name, in: "path" },
      description: what,
      example: "018f6a3e-5f2a-7000-8a1b-3c4d5e6f7a8b",
    });

export const conversationParams = z.object({ id: pathId("id", "The conversation's id.") });

/** An id that the client chooses. */
export const clientId = (what: string) =>
  z
    .string()
    .regex(CLIENT_ID, "An id has 1 to 64 letters, digits, hyphens and underscores.")
    .openapi({ description: what, example: "018f6a3e-5f2a-7000-8a1b-3c4d5e6f7a8b" });

/** A query parameter. An empty one counts as left out, because forms and URL templates send empty ones. */
export const parameter = <Schema extends z.ZodType>(schema: Schema) =>
  z.preprocess((value) => (value === "" ? undefined : value), schema);

/** A whole number in a query, which may be left out. */
export const queryInteger = (least: number, most: number) => {
  const message = `A whole number from ${least} to ${most}.`;
  const integer = z
    .string()
    .regex(/^\d{1,10}$/, message)
    .transform(Number)
    .pipe(z.number().min(least, message).max(most, message))
    .openapi({ type: "integer", minimum: least, maximum: most });
  return parameter(integer.optional());
};

/** Marks an issue that is answered with 413. */
export const TOO_LARGE = { tooLarge: true } as const;

export const text = z.string().refine((value) => Buffer.byteLength(value) <= MAX_TEXT_BYTES, {
  message: `Text has at most ${MAX_TEXT_BYTES} bytes.`,
  params: TOO_LARGE,
});

/** A text that goes through Temporal: control characters take several bytes there. */
export const messageText = text.refine((value) => jsonBytes(value) <= MAX_MESSAGE_JSON_BYTES, {
  message: `Text has at most ${MAX_MESSAGE_JSON_BYTES} bytes with its control characters escaped.`,
  params: TOO_LARGE,
});

/** A change is committed, but the rows that clients read do not show it yet. */
export const pending = z
  .literal(true)
  .optional()
  .openapi({ description: "Accepted and safe, but not yet visible to the next GET. Left out otherwise." });
