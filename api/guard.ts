/**
 * Owns: which requests are admitted at all. An agent's API on a loopback port is a shell for every web page that can
 * reach it. So Host and Origin are checked on every request, streams included. A body must have a type that a page
 * cannot send across origins without a preflight. Then it asks who calls, and
 * whether they may do this. Temporal's Web UI is behind the same checks.
 */
import type { Context, MiddlewareHandler } from "hono";
import { isLoopback } from "../config.ts";
import type { Role } from "../protocol/access.ts";
import type { Access } from "./access/access.ts";
import { requireRole } from "./access/roles.ts";
import { Problem, unsupportedMediaType } from "./problem.ts";
import type { ApiEnv } from "./router.ts";

export type GuardOptions = {
  /** The address that the server listens on. */
  readonly host: string;
  readonly access: Access;
  /** The role that a request's route needs; null: it has none. */
  readonly roleOf: (c: Context) => Role | null;
  /** Answers what needs no token, and passes everything else on. */
  readonly open: MiddlewareHandler;
};

/** A probe needs no token, and the contract says nothing about this server that its sources do not say. */
const WITHOUT_TOKEN: ReadonlySet<string> = new Set(["/healthz", "/readyz", "/openapi.json"]);

/** Refuses with 401, 403, 415 or 429, before a byte of the body is read. */
export function guard({ host, access, roleOf, open }: GuardOptions): MiddlewareHandler<ApiEnv>[] {
  return [checkHost(host), checkOrigin, open, authenticate(access), authorize(roleOf), checkMediaType];
}

/**
 * Against DNS rebinding: a page at evil.example whose name now means 127.0.0.1 still sends `Host: evil.example`. A
 * server on all addresses has no name of its own to compare with. There the token, which is mandatory then, keeps such
 * a page out.
 */
export function checkHost(listening: string): MiddlewareHandler {
  const anyHost = listening === "0.0.0.0" || listening === "::" || listening === "[::]";
  const own = withoutBrackets(listening.toLowerCase());
  const isOurs = (host: string | undefined): boolean => {
    if (host === undefined) return true;
    const name = hostnameOf(host);
    return name !== null && (isLoopback(name) || withoutBrackets(name) === own);
  };
  return async (c, next) => {
    // The request line may name another host than the header.
    if (!anyHost && !(isOurs(c.req.header("host")) && isOurs(new URL(c.req.url).host))) {
      throw new Problem(
        "forbidden_origin",
        "This Host is not served here. Use the address that the server printed.",
      );
    }
    await next();
  };
}

/**
 * Accepts the same origin or none. `Sec-Fetch-Site` covers requests that a page sends without an Origin, such as a
 * no-cors stream.
 */
export const checkOrigin: MiddlewareHandler = async (c, next) => {
  const origin = c.req.header("origin");
  const host = c.req.header("host") ?? new URL(c.req.url).host;
  const site = c.req.header("sec-fetch-site");
  const foreign = site === "cross-site" || site === "same-site";
  const navigation = c.req.header("sec-fetch-mode") === "navigate" && c.req.method === "GET";
  if ((origin !== undefined && !isSameHost(origin, host)) || (foreign && !navigation)) {
    throw new Problem("forbidden_origin", "Requests from pages of another origin are refused.");
  }
  await next();
};

/** Tells the routes who calls, and refuses with 401 or 429 whoever may nothing. */
const authenticate =
  (access: Access): MiddlewareHandler<ApiEnv> =>
  async (c, next) => {
    if (!WITHOUT_TOKEN.has(c.req.path))
      c.set("caller", await access.admit(tokenIn(c, bearerToken), addressOf(c)));
    await next();
  };

/** @param roleOf null: the request has no route that needs one */
const authorize =
  (roleOf: (c: Context) => Role | null): MiddlewareHandler<ApiEnv> =>
  async (c, next) => {
    const needed = roleOf(c);
    if (needed !== null) requireRole(c.var.caller, needed);
    await next();
  };

/**
 * The token of a request; null: there is no header Authorization. One that is not understood is a wrong token.
 *
 * @param givenBy reads the token from the header
 */
export function tokenIn(c: Context, givenBy: (authorization: string) => string | null): string | null {
  const authorization = c.req.header("authorization") ?? "";
  // A command line has an empty one where its variable is not set.
  return /^(bearer)?\s*$/i.test(authorization) ? null : (givenBy(authorization) ?? "");
}

/** Of the other end of the connection. What a proxy says of the end beyond it could be made up. */
export const addressOf = (c: Context<ApiEnv>): string =>
  (c.env as ApiEnv["Bindings"] | undefined)?.incoming?.socket.remoteAddress ?? "";

export function bearerToken(authorization: string): string | null {
  return /^Bearer +(\S+)$/i.exec(authorization)?.[1] ?? null;
}

/** The routes that read a body refuse one without a type. */
const checkMediaType: MiddlewareHandler = async (c, next) => {
  const type = c.req.header("content-type");
  const reads = c.req.method === "GET" || c.req.method === "HEAD";
  if (!reads && type !== undefined && !isJson(type)) throw unsupportedMediaType();
  await next();
};

function isJson(type: string): boolean {
  const charset = /;\s*charset\s*=\s*"?([^\s";]+)/i.exec(type)?.[1];
  return /^application\/json\s*(;|$)/i.test(type) && (charset === undefined || /^utf-?8$/i.test(charset));
}

function isSameHost(origin: string, host: string): boolean {
  const url = parse(origin);
  // The scheme may differ behind a proxy that terminates TLS; the host and port may not.
  return url !== null && url.host !== "" && url.host === parse(`${url.protocol}//${host}`)?.host;
}

const hostnameOf = (host: string): string | null => parse(`http://${host}`)?.hostname ?? null;

const parse = (url: string): URL | null => (URL.canParse(url) ? new URL(url) : null);

const withoutBrackets = (name: string): string => name.replace(/^\[|\]$/g, "");
