/** Owns: the schema of problem documents, and which problems a route may answer. */
import { z } from "@hono/zod-openapi";
import { type ProblemCode, PROBLEMS } from "../problem.ts";
import { json } from "./common.ts";

const codes = Object.keys(PROBLEMS) as [ProblemCode, ...ProblemCode[]];

export const problemSchema = z
  .object({
    type: z.string(),
    title: z.string(),
    status: z.int(),
    code: z.enum(codes).openapi({ description: "Stable; what a program decides by." }),
    detail: z.string().openapi({ description: "For the person: what is wrong and what to do next." }),
    errors: z
      .array(z.object({ path: z.string(), message: z.string() }))
      .optional()
      .openapi({ description: "Of `invalid_request`: each defect and where it is." }),
    state: json.optional().openapi({ description: "Of a refusal: the conversation's state." }),
  })
  .openapi("Problem", {
    description:
      "RFC 9457. Further members by code: `summary` and `startAnew` (context_exhausted), `cancel` (agent_busy), `pendingToolCallId` (approval_mismatch), `requirements` (sandbox_unavailable), `needed` and `role` (forbidden_role), `retryAfter` in seconds (rate_limited), `missing` (readyz).",
    example: {
      type: "urn:bedrock:problem:agent_busy",
      title: "The agent is busy",
      status: 409,
      code: "agent_busy",
      detail:
        "The agent is busy. Cancel the current operation, or send the message as a steer or a follow-up.",
    },
  });

type Content = { readonly "application/problem+json": { readonly schema: typeof problemSchema } };
type Answers<Code extends ProblemCode> = {
  [Status in (typeof PROBLEMS)[Code]["status"]]: { description: string; content: Content };
};

/** Any request may be answered with these. */
const ANYWHERE = [
  "malformed_request",
  "forbidden_origin",
  "request_timeout",
  "headers_too_large",
  "internal",
] as const;
/** Every route but the probes may answer these. */
const GUARDED = [...ANYWHERE, "unauthorized", "forbidden_role", "rate_limited", "unavailable"] as const;
/** For a body that cannot be read. Every route that does not only read may answer these, even if it wants no body. */
export const BODY = ["malformed_json", "payload_too_large", "unsupported_media_type"] as const;

/** Of what makes the agent ask its model. */
export const SPENDING = ["conversation_limit_reached", "daily_limit_reached", "no_price"] as const;

/** The `responses` of a route's problems, one for each status. */
export const problems = <Code extends ProblemCode>(...own: Code[]) =>
  answers<Code | (typeof GUARDED)[number]>(...own, ...GUARDED);

/** The same for a route that needs no token. */
export const problemsOfProbe = <Code extends ProblemCode>(...own: Code[]) =>
  answers<Code | (typeof ANYWHERE)[number]>(...own, ...ANYWHERE);

function answers<Code extends ProblemCode>(...codes: Code[]): Answers<Code> {
  const byStatus = new Map<number, ProblemCode[]>();
  for (const code of codes) {
    const { status } = PROBLEMS[code];
    byStatus.set(status, [...(byStatus.get(status) ?? []), code]);
  }
  const entries = [...byStatus].map(([status, of]) => {
    const description = of.map((code) => `\`${code}\``).join(", ");
    return [status, { description, content: { "application/problem+json": { schema: problemSchema } } }];
  });
  return Object.fromEntries(entries) as Answers<Code>;
}
