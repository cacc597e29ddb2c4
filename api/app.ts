/**
 * Owns: the whole HTTP interface put together (docs/http.md): guard, page, routes, the OpenAPI document, errors.
 * Not here: sockets and processes (main.ts). Tests call `app.request()`.
 */
import type { Context, MiddlewareHandler } from "hono";
import { neededRoles } from "./access/roles.ts";
import { bodies } from "./bodies.ts";
import type { Deps } from "./deps.ts";
import { guard } from "./guard.ts";
import { page } from "./page.ts";
import { notFound, toProblem, unavailable } from "./problem.ts";
import { createDatabaseProbe, type DatabaseProbe } from "./database-probe.ts";
import { recordRequests, requestIdOf } from "./requests.ts";
import { createRouter } from "./router.ts";
import { chatRoutes } from "./routes/chat.ts";
import { codecRoutes } from "./routes/codec.ts";
import { controlRoutes } from "./routes/control.ts";
import { REQUEST_DEADLINE_MS } from "../protocol/timing.ts";
import { conversationRoutes } from "./routes/conversations.ts";
import { cycleRoutes } from "./routes/cycles.ts";
import { eventRoutes } from "./routes/events.ts";
import { messageRoutes } from "./routes/messages.ts";
import { spendingRoutes } from "./routes/spending.ts";
import { systemRoutes } from "./routes/system.ts";
import { traceRoutes } from "./routes/traces.ts";

/** For the typed client: `hc<Api>(url)`. */
export type Api = ReturnType<typeof createApp>;

export function createApp(deps: Deps) {
  const app = createRouter();
  const probe = createDatabaseProbe(deps.db);
  app.onError((error, c) => toProblem(error, deps.report, requestIdOf(c.req.raw)).toResponse());
  app.notFound(() => notFound("resource").toResponse());
  const roleOf = (c: Context) => roleOfRoute(c);
  app.use(
    recordRequests(deps),
    headers,
    ...guard({ ...deps, roleOf, open: page(deps.page) }),
    bodies(deps.uploads),
  );
  app.use("/api/*", deadline(probe));
  app.openAPIRegistry.registerComponent("securitySchemes", "token", {
    type: "http",
    scheme: "bearer",
    description:
      "Never in the query. `x-role` of an operation says which role it needs: `read`, `talk`, `approve` or `admin`, each of which includes those before it. Without a token one has the role of the server's `ANONYMOUS_ROLE`, if any.",
  });

  const routes = app
    .route("/", conversationRoutes(deps))
    .route("/", messageRoutes(deps))
    .route("/", controlRoutes(deps))
    .route("/", cycleRoutes(deps))
    .route("/", traceRoutes(deps))
    .route("/", eventRoutes(deps))
    .route("/", chatRoutes(deps))
    .route("/", codecRoutes(deps))
    .route("/", spendingRoutes(deps))
    .route("/", systemRoutes(deps, probe));
  routes.doc31("/openapi.json", {
    openapi: "3.1.0",
    info: {
      title: "Bedrock",
      version: "1",
      description:
        "Durable conversations with a coding agent. 201 and 202 come after the commit: the next GET shows what was answered. A 503 means that it is not known whether the request was carried out: repeat it with the same id. Errors are problem documents (RFC 9457); decide by their `code`.",
    },
    security: [{ token: [] }],
  });
  const roleOfRoute = neededRoles(routes);
  return routes;
}

const headers: MiddlewareHandler = async (c, next) => {
  await next();
  c.res.headers.set("x-content-type-options", "nosniff");
  // A page of another origin cannot even embed an answer.
  c.res.headers.set("cross-origin-resource-policy", "same-origin");
  // An answer that a browser shows by itself may do nothing there. Only the page's files may (page.ts).
  if (!c.res.headers.has("content-security-policy")) {
    c.res.headers.set("content-security-policy", "default-src 'none'; frame-ancestors 'none'");
  }
  if (!c.res.headers.has("cache-control")) c.res.headers.set("cache-control", "no-store");
};

/** Answers 503 when the database hangs, and when a request takes longer than REQUEST_DEADLINE_MS. */
function deadline(probe: DatabaseProbe): MiddlewareHandler {
  return async (_, next) => {
    let stop = (): void => undefined;
    const givenUp = new Promise<never>((_, reject) => {
      const timeout = setTimeout(
        () => reject(unavailable("The request took too long.")),
        REQUEST_DEADLINE_MS,
      );
      const unwatch = probe.watch(() => reject(unavailable("The database does not answer.")));
      stop = () => {
        clearTimeout(timeout);
        unwatch();
      };
    });
    try {
      await Promise.race([next(), givenUp]);
    } finally {
      stop();
    }
  };
}
