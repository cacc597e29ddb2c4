/**
 * Owns: what is recorded of each HTTP request: its id, which the answer and the log have, its line in the log, and its
 * metrics. A proxy may give the id in `x-request-id`.
 */
import { randomUUID } from "node:crypto";
import type { MiddlewareHandler } from "hono";
import { routePath } from "hono/route";
import type { Log, LogFields } from "../observability/log.ts";
import type { ApiMetrics } from "../observability/metrics.ts";

const HEADER = "x-request-id";
const GIVEN = /^[\w-]{1,64}$/;

const ids = new WeakMap<Request, string>();

/** The id of a request that `recordRequests` has seen. */
export const requestIdOf = (request: Request): string => ids.get(request) ?? randomUUID();

export type RequestRecords = { readonly metrics: ApiMetrics; readonly log: Log };

export function recordRequests({ metrics, log }: RequestRecords): MiddlewareHandler {
  return async (c, next) => {
    const started = performance.now();
    const given = c.req.header(HEADER) ?? "";
    const request = GIVEN.test(given) ? given : randomUUID();
    ids.set(c.req.raw, request);
    await next();
    const { status } = c.res;
    c.res.headers.set(HEADER, request);
    const { method } = c.req;
    const route = status === 404 && routePath(c, -1) === "/*" ? "unknown" : routePath(c, -1);
    const milliseconds = performance.now() - started;
    metrics.countRequest(method, route, status, milliseconds / 1_000);
    const level = levelOf(method, status);
    if (!log.isLevelEnabled(level)) return;
    const conversation = c.req.param("id");
    const fields: LogFields = {
      ...{ request, method, route, status, duration: Math.round(milliseconds) },
      ...(conversation === undefined ? {} : { conversation }),
    };
    log[level](fields, "request");
  };
}

/** Reads are many and change nothing. */
function levelOf(method: string, status: number): "debug" | "info" | "warn" {
  if (status >= 500) return "warn";
  return method === "GET" || method === "HEAD" ? "debug" : "info";
}
