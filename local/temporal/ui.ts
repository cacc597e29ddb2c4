/**
 * Owns: Temporal's Web UI, if it is switched on (TEMPORAL_UI), behind the checks of the API. The UI itself answers a
 * page whose own name was made to mean this machine (DNS rebinding). Beside it, on the same origin, is the codec by which
 * its page shows payloads in clear: the browser gives it the same token, and no other origin has to be let in.
 */
import { randomInt } from "node:crypto";
import { Hono, type MiddlewareHandler } from "hono";
import { proxy } from "hono/proxy";
import { unauthorized, type Access } from "../../api/access/access.ts";
import { requireRole } from "../../api/access/roles.ts";
import { bodies } from "../../api/bodies.ts";
import { addressOf, bearerToken, checkHost, checkOrigin, tokenIn } from "../../api/guard.ts";
import { Problem, toProblem, type ReportError } from "../../api/problem.ts";
import type { ApiEnv } from "../../api/router.ts";
import { codecRoutes, type CodecDeps } from "../../api/routes/codec.ts";
import { serve, type Listening } from "../../api/serve.ts";
import { freePort } from "../ports.ts";
import { sentenceOf } from "../start-error.ts";

const HOST = "127.0.0.1";

export type UiAddress = { readonly ip: string; readonly port: number };

/** An address that no web page can guess. Linux listens on any address of 127.0.0.0/8. */
export async function hiddenAddress(): Promise<UiAddress> {
  const ip = `127.${randomInt(1, 255)}.${randomInt(256)}.${randomInt(1, 255)}`;
  return { ip, port: await freePort(ip) };
}

/** The address of the guarded UI on this port. */
const originOf = (port: number): string => `http://${HOST}:${port}`;

/** Where the page of the UI on this port asks for payloads in clear; it adds `/decode`. */
export const codecOf = (port: number): string => `${originOf(port)}/api/codec`;

export type UiOptions = CodecDeps & {
  /** Where the UI itself listens. */
  readonly behind: UiAddress;
  /** The port of the guarded UI on 127.0.0.1. */
  readonly port: number;
  /** Who may everything. A browser gives the token as the password of any user. */
  readonly access: Access;
  /** Prints the failures of this server. */
  readonly say: (line: string) => void;
};

/** Resolves when it answers. */
export function serveUi({ behind, port, access, say, ...codec }: UiOptions): Promise<Listening> {
  const app = new Hono<ApiEnv>();
  const report: ReportError = (id, error) => say(`Temporal Web UI: error ${id}: ${sentenceOf(error)}`);
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
  app.use(checkHost(HOST), checkOrigin, checkCaller);
  app.use("/api/codec/*", bodies()).use("/api/conversations/*", bodies());
  app.route("/", codecRoutes(codec));
  app.all("*", ({ req }) => {
    const { pathname, search } = new URL(req.url);
    const url = `http://${behind.ip}:${behind.port}${pathname}${search}`;
    return proxy(url, { raw: req.raw, redirect: "manual", customFetch: ask });
  });
  return serve((request, env) => app.fetch(request, env), { host: HOST, port }, report);
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
