/** Owns: the listening socket, and closing it without waiting for streams or idle connections. */
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { getRequestListener } from "@hono/node-server";

export type Listening = {
  /** Without a trailing slash. */
  readonly url: string;
  /** Takes no new connections, waits for answers on their way at most `graceMs`, then closes what is left. */
  close(graceMs: number): Promise<void>;
};

type Fetch = (request: Request) => Response | Promise<Response>;

/** Milliseconds in which a request has to arrive: three large ones that stall would keep others waiting. */
const SENDING_MS = 60_000;

/** Resolves when connections are accepted. @param port 0: any free one. */
export async function serve(
  fetch: Fetch,
  { host, port }: { host: string; port: number },
): Promise<Listening> {
  const answer = getRequestListener((request) => fetch(request));
  const server = createServer(
    { requestTimeout: SENDING_MS },
    (incoming, outgoing) => void answer(incoming, outgoing),
  );
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, host.replace(/^\[|\]$/g, ""), () => {
      server.off("error", reject);
      resolve();
    });
  });
  return { url: urlOf(server, host), close: (graceMs) => close(server, graceMs) };
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
