/**
 * Owns: a provider that answers some conversations badly: a line of 100 MB that does not end, or three million small
 * deltas. It is a proxy before the scripted provider, which answers all others.
 */
import { createServer, request, type IncomingMessage, type ServerResponse } from "node:http";
import { once } from "node:events";
import type { AddressInfo } from "node:net";

export const ENDLESS_LINE = "[[hostile:line]]";
export const MANY_DELTAS = "[[hostile:deltas]]";

const LINE_BYTES = 100_000_000;
const DELTAS = 3_000_000;
const DELTAS_A_PIECE = 1_000;

export type HostileProvider = {
  readonly url: string;
  /** How often each bad answer was requested, and the largest part of it that was read, 0 to 1. */
  readonly asked: Readonly<Record<string, { times: number; read: number }>>;
  readonly close: () => Promise<void>;
};

/** @param upstream the address of the provider that answers well */
export async function startHostileProvider(upstream: string): Promise<HostileProvider> {
  const asked = { [ENDLESS_LINE]: { times: 0, read: 0 }, [MANY_DELTAS]: { times: 0, read: 0 } };
  const server = createServer((incoming, response) => {
    response.on("error", () => undefined);
    void answer(incoming, response).catch(() => response.destroy());
  });
  async function answer(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const parts: Buffer[] = [];
    for await (const part of incoming as AsyncIterable<Buffer>) parts.push(part);
    const body = Buffer.concat(parts);
    const [tag, seen] = Object.entries(asked).find(([each]) => body.includes(each)) ?? [];
    if (seen === undefined) {
      forward(upstream, incoming, { body, response });
      return;
    }
    seen.times++;
    const pieces = tag === ENDLESS_LINE ? endlessLine() : manyDeltas();
    response.writeHead(200, { "content-type": "text/event-stream; charset=utf-8" });
    for (const { piece, part } of pieces) {
      if (response.destroyed) return;
      // Other requests are answered between two pieces.
      if (!response.write(piece)) await writable(response);
      seen.read = Math.max(seen.read, part);
    }
    response.end();
  }
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked,
    close: async () => {
      const closed = once(server, "close");
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

/** Resolves when the response takes more data, or is closed. */
function writable(response: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const settle = (): void => {
      response.off("drain", settle).off("close", settle);
      resolve();
    };
    response.on("drain", settle).on("close", settle);
  });
}

type Piece = { readonly piece: Buffer; readonly part: number };

function* endlessLine(): Generator<Piece> {
  yield { piece: Buffer.from(`event: content_block_delta\ndata: {"type":"`), part: 0 };
  const piece = Buffer.alloc(1_000_000, "x");
  for (let sent = 0; sent < LINE_BYTES; sent += piece.length)
    yield { piece, part: (sent + piece.length) / LINE_BYTES };
}

function* manyDeltas(): Generator<Piece> {
  const event = (type: string, more: object): string =>
    `event: ${type}\ndata: ${JSON.stringify({ type, ...more })}\n\n`;
  const usage = { input_tokens: 1, output_tokens: 1 };
  const message = {
    ...{ id: "msg_hostile", type: "message", role: "assistant", model: "claude-opus-4-8" },
    ...{ content: [], stop_reason: null, stop_sequence: null, usage },
  };
  const block = { index: 0, content_block: { type: "text", text: "" } };
  const opening = event("message_start", { message }) + event("content_block_start", block);
  yield { piece: Buffer.from(opening), part: 0 };
  const delta = event("content_block_delta", { index: 0, delta: { type: "text_delta", text: "x" } });
  const piece = Buffer.from(delta.repeat(DELTAS_A_PIECE));
  for (let sent = 0; sent < DELTAS; sent += DELTAS_A_PIECE)
    yield { piece, part: (sent + DELTAS_A_PIECE) / DELTAS };
  const ends = [
    event("content_block_stop", { index: 0 }),
    event("message_delta", { delta: { stop_reason: "end_turn", stop_sequence: null }, usage }),
    event("message_stop", {}),
  ];
  yield { piece: Buffer.from(ends.join("")), part: 1 };
}

type Forwarded = { readonly body: Buffer; readonly response: ServerResponse };

function forward(upstream: string, { method, url, headers }: IncomingMessage, { body, response }: Forwarded) {
  const to = request(new URL(url ?? "/", upstream), { method, headers }, (answered) => {
    response.writeHead(answered.statusCode ?? 502, answered.headers);
    answered.pipe(response);
    answered.on("error", () => response.destroy());
  });
  to.on("error", () => response.destroy());
  response.on("close", () => to.destroy());
  to.end(body);
}
