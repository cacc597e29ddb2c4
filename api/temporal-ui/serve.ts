/**
 * Owns: Temporal's Web UI behind the checks of the API. The UI itself answers a page whose own name was made to mean this
 * machine (DNS rebinding). Beside it, on the same origin, is the codec by which its page shows payloads in clear: the
 * browser gives it the same token, and no other origin has to be let in.
 * Not here: the UI itself, which is a part of Temporal's server (local/temporal) or a container (docker-compose.yml).
 */
import { Hono, type MiddlewareHandler } from "hono";
import { proxy } from "hono/proxy";
import { unauthorized, type Access } from "../access/access.ts";
import { requireRole } from "../access/roles.ts";
import { bodies } from "../bodies.ts";
import { addressOf, bearerToken, checkHost, checkOrigin, tokenIn } from "../guard.ts";
import { Problem, toProblem, type ReportError } from "../problem.ts";
import type { ApiEnv } from "../router.ts";
import { codecRoutes, type CodecDeps } from "../routes/codec.ts";
import { serve, type Listening } from "../serve.ts";

export type UiOptions = CodecDeps & {
  /** The origin of the UI itself. */
  readonly behind: string;
  /** Where the guarded UI listens. */
  readonly host: string;
  readonly port: number;
  /** Who may everything. A browser gives the token as the password of any user. */
  readonly access: Access;
  /** Receives the failures of this server. */
  readonly report: ReportError;
};

/** Resolves when it answers. */
export function serveUi({ behind, host, port, access, report, ...codec }: UiOptions): Promise<Listening> {
  const app = new Hono<ApiEnv>();
  app.onError((error) => {
    const response = toProblem(error, report).toResponse();
    if (response.status === 401) response.headers.set("www-authenticate", 'Basic realm="Temporal Web UI"');
    return response;
  });
  const checkCaller: MiddlewareHandler<ApiEnv> = async (c, next) => {
    const token = tokenIn(c, tokenOrPassword);
    const caller = await access.admit(token, addressOf(c));
    // A browser asks the person for a token only after this answer.
    if (token === null && caller.role !== "admin") throw unauthorized();
    requireRole(caller, "admin");
    c.set("caller", caller);
    await next();
  };
  app.use(checkHost(host), checkOrigin, checkCaller);
  app.use("/api/codec/*", bodies()).use("/api/conversations/*", bodies());
  app.route("/", codecRoutes(codec));
  app.all("*", ({ req }) => {
    const { pathname, search } = new URL(req.url);
    return proxy(`${behind}${pathname}${search}`, { raw: req.raw, redirect: "manual", customFetch: ask });
  });
  return serve((request, env) => app.fetch(request, env), { host, port }, report);
}

/** @throws Problem when it cannot be reached */
async function ask(request: Request): Promise<Response> {
  // The token is ours, and the UI would forward it to the server. The host must be that of the UI itself.
  for (const name of ["authorization", "host"]) request.headers.delete(name);
  try {
    return await fetch(request);
  } catch {
    throw new Problem("unavailable", "Temporal's Web UI does not answer. Reload in a moment.");
  }
}

function tokenOrPassword(authorization: string): string | null {
  const basic = /^Basic +(\S+)$/i.exec(authorization)?.[1];
  if (basic === undefined) return bearerToken(authorization);
  const [, password = null] = /^[^:]*:(.*)$/s.exec(Buffer.from(basic, "base64").toString()) ?? [];
  return password;
}
