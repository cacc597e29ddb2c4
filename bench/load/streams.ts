/**
 * Measures: many event streams on some conversations that answer at once: when a piece of text reaches each client, and
 * what a client costs. One client does not read. The clients are in a process of their own (stream-clients.ts).
 */
import { fork } from "node:child_process";
import { connect, type Socket } from "node:net";
import { once } from "node:events";
import { hold } from "../../local/scripted/cues.ts";
import { say, text } from "../../local/scripted/script.ts";
import type { Product } from "../../test/support/product.ts";
import { Talk } from "../../test/support/talk.ts";
import { memoryOf, processesOf } from "../processes.ts";

/** Pieces of each answer, and milliseconds between two. */
const PIECES = 10;
const EVERY_MS = 250;

/** When a client got a piece, in milliseconds since the epoch. */
export type Receipt = { readonly conversation: string; readonly piece: number; readonly at: number };
export type ClientsOrder = {
  readonly url: string;
  readonly conversations: readonly string[];
  readonly clients: number;
};
export type ClientsReport =
  { readonly kind: "ready" } | { readonly kind: "done"; readonly receipts: readonly Receipt[] };

export type StreamFigures = {
  readonly clients: number;
  /** Milliseconds from the provider's piece to each client. */
  readonly deliveries: readonly number[];
  /** Pieces that did not come. */
  readonly missing: number;
  /** Bytes that a client takes in the API. */
  readonly bytesAClient: number;
};

export async function streams(
  product: Product,
  cwd: string,
  conversations: number,
  clients: number,
): Promise<StreamFigures> {
  const talks = await Promise.all(Array.from({ length: conversations }, () => Talk.open(product, cwd)));
  const before = memoryOf(processesOf(product)).api;
  const child = fork(new URL("stream-clients.ts", import.meta.url), { execArgv: ["--import", "tsx"] });
  const ids = talks.map(({ id }) => id);
  const order: ClientsOrder = { url: product.url, conversations: ids, clients };
  child.send(order);
  await once(child, "message");
  const bytesAClient = (memoryOf(processesOf(product)).api - before) / clients;
  const deaf = deafClient(product.url, ids[0] ?? "");
  const sent = new Map<string, number>();
  const ends = talks.map(async (talk) => {
    const holds = Array.from({ length: PIECES }, () => hold());
    const pieces = holds.flatMap((held, n) => [held, `#${n};`]);
    const tag = product.model.script(`stream-${talk.id}`, [say(text(...pieces))]);
    const idle = talk.nextState("idle");
    await talk.send(`go ${tag}`);
    for (const [n, held] of holds.entries()) {
      await held.reached;
      await new Promise((resolve) => void setTimeout(resolve, EVERY_MS));
      sent.set(`${talk.id} ${n}`, Date.now());
      held.release();
    }
    await idle;
  });
  await Promise.all(ends);
  child.send("done");
  const [report] = (await once(child, "message")) as [ClientsReport];
  deaf.destroy();
  for (const talk of talks) talk.close();
  const receipts = report.kind === "done" ? report.receipts : [];
  const deliveries = receipts.map(
    ({ conversation, piece, at }) => at - (sent.get(`${conversation} ${piece}`) ?? Number.NaN),
  );
  return { clients, deliveries, bytesAClient, missing: clients * PIECES - receipts.length };
}

/** Asks for a conversation's events and does not read them. */
function deafClient(url: string, id: string): Socket {
  const { hostname, port, host } = new URL(url);
  const socket = connect(Number(port), hostname).pause();
  socket.write(`GET /api/conversations/${id}/events HTTP/1.1\r\nhost: ${host}\r\n\r\n`);
  return socket;
}
