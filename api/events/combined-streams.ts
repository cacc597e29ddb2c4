/**
 * Owns: finding the combined stream that a request wants to change. It may be in another process: behind a proxy, the
 * request need not reach the process that has the stream.
 */
import { randomUUID } from "node:crypto";
import type { Order, StreamChange, StreamOrder } from "../../db/orders.ts";
import type { Deps } from "../deps.ts";
import { CombinedStream } from "./combined-stream.ts";

/** Milliseconds for another process to answer. */
const ANSWER_MS = 1_000;

/** Reaches all processes that serve streams, this one included. */
export type StreamChannel = {
  readonly send: (order: StreamOrder) => Promise<void>;
  readonly onOrder: (receive: (order: Order) => void) => void;
};

export class CombinedStreams {
  readonly #deps: Pick<Deps, "db" | "hub" | "report" | "heartbeatMs">;
  readonly #channel: StreamChannel;
  readonly #streams = new Map<string, CombinedStream>();
  readonly #asked = new Map<string, () => void>();

  constructor(deps: Pick<Deps, "db" | "hub" | "report" | "heartbeatMs">, channel: StreamChannel) {
    this.#deps = deps;
    this.#channel = channel;
    channel.onOrder((order) => this.#receive(order));
  }

  create(): CombinedStream {
    const stream = new CombinedStream(this.#deps);
    this.#streams.set(stream.id, stream);
    void stream.writer.closed.then(() => this.#streams.delete(stream.id));
    return stream;
  }

  /** @returns whether there is such a stream. Rejects when the other processes cannot be asked. */
  async change(streamId: string, change: StreamChange): Promise<boolean> {
    const stream = this.#streams.get(streamId);
    if (stream !== undefined) {
      stream.change(change);
      return true;
    }
    const nonce = randomUUID();
    try {
      return await new Promise<boolean>((resolve, reject) => {
        this.#asked.set(nonce, () => resolve(true));
        setTimeout(() => resolve(false), ANSWER_MS).unref();
        this.#channel.send({ kind: "change_stream", nonce, streamId, ...change }).catch(reject);
      });
    } finally {
      this.#asked.delete(nonce);
    }
  }

  #receive(order: Order): void {
    if (order.kind === "stream_changed") this.#asked.get(order.nonce)?.();
    if (order.kind !== "change_stream") return;
    const stream = this.#streams.get(order.streamId);
    if (stream === undefined) return;
    stream.change(order);
    void this.#channel.send({ kind: "stream_changed", nonce: order.nonce }).catch(() => undefined);
  }
}
