/**
 * Owns: a provider that misbehaves on the wire. It answers in raw bytes, as many as the client takes. Not here: the
 * scripted provider, which keeps to the protocol (local/scripted/).
 */
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { gzipSync } from "node:zlib";

/** Resolves when there is room for more; rejects when the other side has hung up. */
type Send = (bytes: string | Buffer) => Promise<void>;
export type Attack = (send: Send) => Promise<void>;

export type HostileProvider = {
  readonly url: string;
  /** How often the attack of this name was asked for. */
  readonly asked: (name: string) => number;
  /** Bytes that were handed to the connections of this attack. */
  readonly sent: (name: string) => number;
  /** The other side has ended the connection before the attack was over. */
  readonly wasCut: (name: string) => boolean;
  readonly close: () => Promise<void>;
};

const MB = 1_000_000;
/** Bytes at which an endless attack ends, if the client fails to end it. */
const MOST = 400 * MB;

/**
 * @param attackOf names the attack that a request is answered with, from its body.
 * @param otherwise answers a request that names no attack.
 */
export async function startHostileProvider(
  attackOf: (body: string, request: IncomingMessage) => readonly [name: string, attack: Attack] | null,
  otherwise: (request: IncomingMessage, body: string, response: ServerResponse) => void = (_, __, response) =>
    response.destroy(),
): Promise<HostileProvider> {
  const asked = new Map<string, number>();
  const sent = new Map<string, number>();
  const cut = new Set<string>();
  const server = createServer((request, response) => {
    const { socket } = request;
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const body = Buffer.concat(chunks).toString();
      const found = attackOf(body, request);
      if (found === null) {
        otherwise(request, body, response);
        return;
      }
      const [name, attack] = found;
      asked.set(name, (asked.get(name) ?? 0) + 1);
      const before = sent.get(name) ?? 0;
      const send: Send = async (bytes) => {
        if (socket.destroyed) throw new Error("cut");
        const more = socket.write(bytes);
        sent.set(name, before + socket.bytesWritten);
        if (!more) await roomIn(socket);
      };
      attack(send).then(
        () => socket.end(),
        () => {
          cut.add(name);
          socket.destroy();
        },
      );
    });
  });
  server.on("connection", (socket) => socket.on("error", () => undefined));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked: (name) => asked.get(name) ?? 0,
    sent: (name) => sent.get(name) ?? 0,
    wasCut: (name) => cut.has(name),
    close: async () => {
      const closed = once(server, "close");
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

/** Resolves when the socket has room, and also when it is closed. */
async function roomIn(socket: Socket): Promise<void> {
  const done = new AbortController();
  const { signal } = done;
  try {
    await Promise.race([once(socket, "drain", { signal }), once(socket, "close", { signal })]);
  } finally {
    done.abort();
  }
}

/** The head of an answer, which ends with its connection. */
export const HEAD = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";

export const event = (data: { readonly type: string; readonly [field: string]: unknown }): string =>
  `event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`;

/** The answer's first events. */
export const BEGINNING =
  event({ type: "message_start", message: { usage: { input_tokens: 1, output_tokens: 1 } } }) +
  event({ type: "content_block_start", index: 0, content_block: { type: "text", text: "" } });

/** The answer's last events. */
export const END =
  event({ type: "message_delta", delta: { stop_reason: "end_turn" }, usage: { output_tokens: 1 } }) +
  event({ type: "message_stop" });

const repeated = (text: string, bytes: number): string => text.repeat(Math.ceil(bytes / text.length));

/** Sends the head, then the piece again and again until there are so many bytes. */
export const flood =
  (head: string, piece: string, bytes: number): Attack =>
  async (send) => {
    await send(head);
    const block = Buffer.from(repeated(piece, 64 * 1024));
    for (let left = bytes; left > 0; left -= block.length) await send(block);
  };

const delta = (fields: object): string => event({ type: "content_block_delta", index: 0, delta: fields });
const DELTA = delta({ type: "text_delta", text: "x" });
const MANY = 3_000_000;

/** The attacks of a provider on its client. */
export const ATTACKS = {
  "a line without end": flood(`${HEAD}${BEGINNING}event: content_block_delta\ndata: `, "x", 100 * MB),
  "an event without end": flood(
    `${HEAD}${BEGINNING}event: content_block_delta\n`,
    `data: ${"x".repeat(90)}\n`,
    100 * MB,
  ),
  "deltas without end": flood(HEAD + BEGINNING, DELTA, MANY * DELTA.length),
  "deltas that say nothing": flood(
    HEAD + BEGINNING,
    delta({ type: "text_delta", text: "" }),
    MANY * DELTA.length,
  ),
  "citations without end": flood(
    HEAD + BEGINNING,
    delta({ type: "citations_delta", citation: null }),
    MANY * DELTA.length,
  ),
  "calls without end": flood(
    HEAD + BEGINNING,
    event({
      type: "content_block_start",
      index: 1,
      content_block: { type: "tool_use", name: "ls", input: {} },
    }),
    100 * MB,
  ),
  "a call with an endless name": flood(
    HEAD +
      BEGINNING +
      event({
        type: "content_block_start",
        index: 1,
        content_block: { type: "tool_use", name: "", input: {} },
      }),
    event({ type: "content_block_delta", index: 1, delta: { type: "name_delta", name: "x" } }),
    100 * MB,
  ),
  "a call without a name": flood(
    HEAD + BEGINNING + event({ type: "content_block_start", index: 1, content_block: { type: "tool_use" } }),
    event({ type: "ping" }),
    100 * MB,
  ),
  "pings without end": flood(HEAD + BEGINNING, event({ type: "ping" }), MOST),
  "comments without end": flood(HEAD + BEGINNING, ":x\n\n", MOST),
  "an error without end": flood(
    "HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n" +
      '{"type":"error","error":{"type":"invalid_request_error","message":"',
    "x",
    100 * MB,
  ),
  "headers without end": flood("HTTP/1.1 200 OK\r\n", `x-more: ${"x".repeat(50)}\r\n`, MOST),
  "a compressed bomb": async (send) => {
    await send(HEAD.replace("connection:", "content-encoding: gzip\r\nconnection:"));
    await send(gzipSync(Buffer.from(`${BEGINNING}data: ${"x".repeat(200 * MB)}`)));
  },
} as const satisfies Readonly<Record<string, Attack>>;
