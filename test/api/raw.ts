/** Owns: an HTTP client that writes exactly the bytes that a test gives it, valid HTTP or not. */
import { once } from "node:events";
import { createConnection, type Socket } from "node:net";
import { onTestFinished } from "vitest";

export type RawClient = {
  readonly socket: Socket;
  /** Resolves when the bytes are handed over, or the connection is closed. */
  readonly write: (bytes: string | Uint8Array) => Promise<void>;
  /** Everything received so far. */
  readonly received: () => string;
  /** Resolves when the connection is closed. */
  readonly closed: Promise<void>;
};

export async function connectTo(url: string): Promise<RawClient> {
  const socket = createConnection(Number(new URL(url).port), "127.0.0.1");
  onTestFinished(() => void socket.destroy());
  let received = "";
  socket.setEncoding("utf8").on("data", (text: string) => (received += text));
  socket.on("error", () => undefined);
  const closed = once(socket, "close").then(() => undefined);
  await once(socket, "connect");
  const write = (bytes: string | Uint8Array): Promise<void> =>
    Promise.race([new Promise<void>((resolve) => socket.write(bytes, () => resolve())), closed]);
  return { socket, write, received: () => received, closed };
}

/** The head of a POST with a body of so many bytes. */
export const postOf = (path: string, bytes: number, headers = ""): string =>
  `POST ${path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: ${bytes}\r\n${headers}\r\n`;

/** The problem document of a received answer; throws if it is none. */
export function problemIn(received: string): { readonly status: number; readonly [member: string]: unknown } {
  const [head = "", body = ""] = received.split("\r\n\r\n");
  const status = Number(/^HTTP\/1\.1 (\d+) /.exec(head)?.[1]);
  if (!/^content-type: application\/problem\+json\r?$/im.test(head))
    throw new Error(`no problem: ${received}`);
  const problem = JSON.parse(body) as { readonly status: number };
  if (problem.status !== status) throw new Error(`${problem.status} in the body of a ${status}`);
  return problem;
}
