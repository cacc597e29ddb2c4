/** Owns: how a group of routes is made. All of them answer a request that does not fit its schema in the same way. */
import { OpenAPIHono } from "@hono/zod-openapi";
import type { MiddlewareHandler } from "hono";
import type { ZodError } from "zod";
import type { HttpBindings } from "@hono/node-server";
import type { Caller } from "./access/access.ts";
import { notFound, Problem } from "./problem.ts";
import { TOO_LARGE } from "./schemas/common.ts";

/** What the guard tells the routes. A request that did not come by a socket has no `incoming`. */
export type ApiEnv = {
  readonly Variables: { readonly caller: Caller };
  readonly Bindings: Partial<Pick<HttpBindings, "incoming">>;
};

export function createRouter(): OpenAPIHono<ApiEnv> {
  return new OpenAPIHono<ApiEnv>({
    defaultHook: (result) => {
      if (!result.success) throw invalid(result.target, result.error);
    },
  });
}

/**
 * A malformed id in a path is answered as unknown. A body or query that does not fit its schema is the client's to
 * correct.
 */
function invalid(target: string, error: ZodError): Problem {
  if (target === "param") return notFound("resource");
  const large = error.issues.find((issue) => issue.code === "custom" && issue.params === TOO_LARGE);
  if (large !== undefined) return new Problem("payload_too_large", large.message);
  return invalidRequest(
    error.issues.map((issue) => ({ path: issue.path.map(String).join("."), message: issue.message })),
  );
}

export type RequestError = { readonly path: string; readonly message: string };

export function invalidRequest(errors: readonly RequestError[]): Problem {
  const [first] = errors;
  const where = first === undefined || first.path === "" ? "" : ` ${first.path}:`;
  return new Problem("invalid_request", `The request is not valid.${where} ${first?.message ?? ""}`.trim(), {
    errors,
  });
}

/** For a route whose body is optional: an empty body counts as none, even with the content type JSON. */
export const acceptEmptyBody: MiddlewareHandler = async (c, next) => {
  if (c.req.header("content-type") !== undefined && (await c.req.text()).trim() === "") {
    // Hono caches the promise of a body that was read, although its type says `string`.
    Object.assign(c.req.bodyCache, { text: Promise.resolve("{}") });
  }
  await next();
};
