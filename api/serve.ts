/**
 * Owns: the listening socket, the answers to requests that are not HTTP, and closing it without waiting for streams or
 * idle connections.
 */
import {
  createServer,
  maxHeaderSize,
  STATUS_CODES,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from "node:http";
import type { AddressInfo } from "node:net";
import type { Duplex } from "node:stream";
import { getRequestListener, RequestError } from "@hono/node-server";
import { Problem, toProblem, type ReportError } from "./problem.ts";

export type Listening = {
  /** Without a trailing slash. */
  readonly url: string;
  /** Takes no new connections, waits at most `graceMs` for responses under way, then closes the other connections. */
  close(graceMs: number): Promise<void>;
};

type Fetch = (request: Request, env: { readonly incoming: IncomingMessage }) => Response | Promise<Response>;

/** Milliseconds within which a request must arrive; longer than the deadline of its body (bodies.ts). */
const SENDING_MS = 150_000;

/**
 * Resolves when connections are accepted.
 *
 * @param port 0: any free one.
 * @param report receives an error that the app did not handle.
 */
export async function serve(
  fetch: Fetch,
  { host, port }: { host: string; port: number },
  report: ReportError,
): Promise<Listening> {
  const listener = getRequestListener(
    (request, { incoming }) => fetch(request, { incoming: incoming as IncomingMessage }),
    {
      errorHandler: (error) =>
        toProblem(error instanceof RequestError ? malformed() : error, report).toResponse(),
    },
  );
  const answers = new WeakMap<Duplex, ServerResponse>();
  const server = createServer(
    // A request without Host gets a problem document, too.
    { requestTimeout: SENDING_MS, requireHostHeader: false },
    (incoming, outgoing) => {
      answers.set(incoming.socket, outgoing);
      void listener(incoming, outgoing);
    },
  );
  server.on("clientError", (error: NodeJS.ErrnoException, socket) => {
    const answer = answers.get(socket);
    // Nothing may be written into an answer that has begun.
    const isFree = answer === undefined || !answer.headersSent || answer.writableFinished;
    if (socket.writable && isFree) socket.end(onTheWire(problemOf(error.code)), () => socket.destroy());
    else socket.destroy();
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, host.replace(/^\[|\]$/g, ""), () => {
      server.off("error", reject);
      resolve();
    });
  });
  return { url: urlOf(server, host), close: (graceMs) => close(server, graceMs) };
}

const malformed = (): Problem =>
  new Problem("malformed_request", "This is not an HTTP request with an address in its Host header.");

/** @param code the error code of Node's parser. */
function problemOf(code: string | undefined): Problem {
  if (code === "HPE_HEADER_OVERFLOW") {
    return new Problem("headers_too_large", `Headers have at most ${maxHeaderSize} bytes.`);
  }
  if (code === "ERR_HTTP_REQUEST_TIMEOUT") {
    return new Problem("request_timeout", "The request did not arrive in time. Send it again.");
  }
  return malformed();
}

function onTheWire(problem: Problem): string {
  const { status, headers, body } = problem.toAnswer();
  const lines = Object.entries({
    ...headers,
    connection: "close",
    "content-length": Buffer.byteLength(body),
  });
  const head = lines.map(([name, value]) => `${name}: ${value}\r\n`).join("");
  return `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ""}\r\n${head}\r\n${body}`;
}

async function close(server: Server, graceMs: number): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  const timeout = setTimeout(() => server.closeAllConnections(), graceMs);
  await closed;
  clearTimeout(timeout);
}

function urlOf(server: Server, host: string): string {
  const { port } = server.address() as AddressInfo;
  const name = host === "0.0.0.0" || host === "::" || host === "[::]" ? "localhost" : host;
  return `http://${name.includes(":") && !name.startsWith("[") ? `[${name}]` : name}:${port}`;
}
