/**
 * Owns: which requests are admitted at all. An agent's API on a loopback port is a shell for every web page that can
 * reach it. So Host and Origin are checked on every request, streams included. A body must have a type that a page
 * cannot send across origins without a preflight. Temporal's Web UI is behind the first three checks, too.
 */
import { createHash, timingSafeEqual } from "node:crypto";
import type { MiddlewareHandler } from "hono";
import { isLoopback } from "../config.ts";
import { Problem, unsupportedMediaType } from "./problem.ts";

export type GuardOptions = {
  /** The address that the server listens on. */
  readonly host: string;
  /** null: no token is required. */
  readonly apiToken: string | null;
  /** Answers what needs no token, and passes everything else on. */
  readonly open: MiddlewareHandler;
};

/** A probe needs no token, and the contract says nothing about this server that its sources do not say. */
const WITHOUT_TOKEN: ReadonlySet<string> = new Set(["/healthz", "/readyz", "/openapi.json"]);

/** Refuses with 401, 403 or 415, before a byte of the body is read. */
export function guard({ host, apiToken, open }: GuardOptions): MiddlewareHandler[] {
  const token = checkToken(apiToken, { givenBy: bearerToken, open: WITHOUT_TOKEN });
  return [checkHost(host), checkOrigin, open, token, checkMediaType];
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

export type TokenOptions = {
  /** Reads the token from the header Authorization; null: there is none. */
  readonly givenBy: (authorization: string) => string | null;
  /** Paths that need none. */
  readonly open: ReadonlySet<string>;
};

/** @param token null: no token is required */
export function checkToken(token: string | null, { givenBy, open }: TokenOptions): MiddlewareHandler {
  const expected = token === null ? null : digest(token);
  return async (c, next) => {
    if (expected !== null && !open.has(c.req.path)) {
      const given = givenBy(c.req.header("authorization") ?? "");
      if (given === null || !timingSafeEqual(digest(given), expected)) {
        throw new Problem("unauthorized", "Send the API token in the header Authorization: Bearer.");
      }
    }
    await next();
  };
}

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

/** All digests have the same length, so the comparison takes the same time for any token. */
const digest = (text: string): Buffer => createHash("sha256").update(text).digest();

function isSameHost(origin: string, host: string): boolean {
  const url = parse(origin);
  // The scheme may differ behind a proxy that terminates TLS; the host and port may not.
  return url !== null && url.host !== "" && url.host === parse(`${url.protocol}//${host}`)?.host;
}

const hostnameOf = (host: string): string | null => parse(`http://${host}`)?.hostname ?? null;

const parse = (url: string): URL | null => (URL.canParse(url) ? new URL(url) : null);

const withoutBrackets = (name: string): string => name.replace(/^\[|\]$/g, "");
