/**
 * Owns: the calls of the HTTP interface (docs/http.md), typed by the server's routes, and the errors they end with.
 * Not here: event streams (stream.ts).
 */
import { type ClientResponse, DetailedError, hc, parseResponse } from "hono/client";
import type { Api } from "../api/app.ts";
import type { ProblemCode } from "../api/problem.ts";
import { patiently } from "./patience.ts";
import { REQUEST_DEADLINE_MS, UPLOAD_DEADLINE_MS } from "../protocol/timing.ts";

export type Problem = {
  readonly code: ProblemCode;
  readonly status: number;
  readonly title: string;
  /** For the person: what is wrong and what to do next. */
  readonly detail: string;
  /** Further members by the code. */
  readonly [member: string]: unknown;
};

/** The server refused a call. `message` is its sentence for the person. */
export class Refused extends Error {
  readonly problem: Problem;

  constructor(problem: Problem) {
    super(problem.detail);
    this.name = "Refused";
    this.problem = problem;
  }
}

/** No answer came. Whether the server carried the call out is not known. */
export class Unreachable extends Error {
  constructor(cause: unknown) {
    super("The server does not answer.", { cause });
    this.name = "Unreachable";
  }
}

export type Server = {
  /** Of the server, without a trailing slash. */
  readonly url: string;
  /** Null: the server asks for none. */
  readonly token: string | null;
};

/** The routes as an object of typed calls: `routes.conversations[":id"].cancel.$post(…)`. */
export type Routes = ReturnType<typeof hc<Api>>["api"];

/** Milliseconds until a call without an answer is given up: the server's own limit, and the time for the way. */
const TIMEOUT_MS = REQUEST_DEADLINE_MS + 2_000;
/** Characters of a body that is on its way at once, on any line. One with images may take as long as the server lets it. */
const SMALL_BODY = 64 * 1024;
/** Milliseconds between the tries of `persist`, and until it gives up. */
const BETWEEN_TRIES_MS = 500;
const PERSISTENCE_MS = 60_000;

export type Calls = {
  /**
   * One call: `call((routes) => routes.models.$get())`. Resolves with the answer's body, undefined where it has none.
   * Where the server counts too many requests, it waits as long as the server says.
   *
   * @throws Refused, Unreachable
   */
  readonly call: <R extends ClientResponse<unknown>>(
    request: (routes: Routes) => Promise<R>,
  ) => ReturnType<typeof parseResponse<R>>;
  /**
   * The same for a call that has an effect only once, because it names the id of what it makes. It is repeated, for a
   * minute at most, as long as the server cannot be reached or answers that it does not know (503).
   *
   * @param signal ends the repetition.
   */
  readonly persist: <R extends ClientResponse<unknown>>(
    request: (routes: Routes) => Promise<R>,
    signal?: AbortSignal,
  ) => ReturnType<typeof parseResponse<R>>;
  /** A GET of bytes, as of an image. @throws Refused, Unreachable */
  readonly bytes: (path: string) => Promise<Blob>;
};

/** @param onUnauthorized called when the server does not accept the token */
export function createCalls({ url, token }: Server, onUnauthorized?: () => void): Calls {
  const headers: Record<string, string> = token === null ? {} : { authorization: `Bearer ${token}` };
  const fetchInTime: typeof fetch = (input, init) => {
    const isLarge = typeof init?.body === "string" && init.body.length > SMALL_BODY;
    const timeout = isLarge ? UPLOAD_DEADLINE_MS + TIMEOUT_MS : TIMEOUT_MS;
    return patiently(() => fetch(input, { ...init, signal: AbortSignal.timeout(timeout) }));
  };
  const { api: routes } = hc<Api>(url, { headers, fetch: fetchInTime });

  const call: Calls["call"] = async (request) => {
    try {
      return await parseResponse(request(routes));
    } catch (error) {
      const known = errorOf(error);
      if (known instanceof Refused && known.problem.code === "unauthorized") onUnauthorized?.();
      throw known;
    }
  };
  const persist: Calls["persist"] = async (request, signal) => {
    const giveUpAt = Date.now() + PERSISTENCE_MS;
    for (;;) {
      try {
        return await call(request);
      } catch (error) {
        if (!mayRepeat(error) || Date.now() > giveUpAt) throw error;
        await new Promise((resolve) => setTimeout(resolve, BETWEEN_TRIES_MS));
        if (signal?.aborted === true) throw error;
      }
    }
  };
  const bytes: Calls["bytes"] = async (path) => {
    const response = await fetchInTime(url + path, { headers }).catch((error: unknown) => {
      throw new Unreachable(error);
    });
    if (!response.ok) throw new Refused((await response.json()) as Problem);
    return response.blob();
  };
  return { call, persist, bytes };
}

/** Whether the same call with the same id may get through later. */
export function mayRepeat(error: unknown): boolean {
  return error instanceof Unreachable || (error instanceof Refused && error.problem.status === 503);
}

function errorOf(error: unknown): Error {
  if (!(error instanceof DetailedError)) return new Unreachable(error);
  const { data } = error.detail as { readonly data?: unknown };
  return isProblem(data) ? new Refused(data) : new Unreachable(error);
}

/** An answer that is no problem document comes from a proxy in between. */
const isProblem = (data: unknown): data is Problem =>
  typeof data === "object" && data !== null && "code" in data && "detail" in data;
