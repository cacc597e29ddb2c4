/** Owns: an HTTP proxy between a client and a server, which a test lets lose or refuse single requests and answers. */
import { createServer, request, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { onTestFinished } from "vitest";

export type Fate =
  | "pass"
  /** The connection breaks before the server has seen the request. */
  | "lose request"
  /** The server carries it out; the connection breaks before the client has the answer. */
  | "lose answer"
  /** The proxy answers itself, with this status and no body. */
  | { readonly status: number };

/**
 * Listens until the test is over.
 *
 * @param fateOf decides on each request: `POST /api/conversations`, and how many like it came before
 * @returns the address
 */
export async function startHttpProxy(
  target: string,
  fateOf: (what: string, before: number) => Fate | Promise<Fate>,
): Promise<string> {
  const counts = new Map<string, number>();
  const pass = (incoming: IncomingMessage, outgoing: ServerResponse, isAnswered: boolean): void => {
    const { method, headers, url = "/" } = incoming;
    const onward = request(
      target + url,
      { ...(method === undefined ? {} : { method }), headers },
      (answer) => {
        if (!isAnswered) {
          answer.resume().once("end", () => outgoing.destroy());
          return;
        }
        outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
        answer.pipe(outgoing);
      },
    );
    onward.on("error", () => outgoing.destroy());
    outgoing.on("close", () => onward.destroy());
    incoming.pipe(onward);
  };
  const server = createServer((incoming, outgoing) => {
    const what = `${incoming.method ?? ""} ${incoming.url?.split("?")[0] ?? ""}`;
    const before = counts.get(what) ?? 0;
    counts.set(what, before + 1);
    void Promise.resolve(fateOf(what, before)).then((fate) => {
      if (typeof fate === "object") outgoing.writeHead(fate.status).end();
      else if (fate === "lose request") outgoing.destroy();
      else pass(incoming, outgoing, fate === "pass");
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}
