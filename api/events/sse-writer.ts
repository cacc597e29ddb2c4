/**
 * Owns: the queue of one client of an event stream: in order, counted in bytes, and cut off when the client takes
 * nothing for too long. Other clients are not affected.
 * Not here: what is sent, and how much of it (conversation-feed.ts, list-feed.ts).
 */

/** Milliseconds between heartbeats. By them, a client finds out that a connection is dead, and no proxy closes it. */
const HEARTBEAT_MS = 15_000;

/** Consecutive heartbeats after which a client that takes nothing is cut off. */
const STALLED_HEARTBEATS = 2;

export type ServerSentEvent = {
  readonly name: string;
  readonly data: unknown;
  /** From where a client goes on that comes back; only durable events have one. */
  readonly number?: number | string;
};

function textOf({ name, data, number }: ServerSentEvent): string {
  const id = number === undefined ? "" : `id: ${number}\n`;
  return `${id}event: ${name}\ndata: ${JSON.stringify(data)}\n\n`;
}

const heartbeatEvent = (everyMs: number): string => textOf({ name: "heartbeat", data: { everyMs } });

export class SseWriter {
  /** The body of the response. */
  readonly readable: ReadableStream<Uint8Array>;
  readonly closed: Promise<void>;
  #chunks: Uint8Array[] = [];
  #bytes = 0;
  #taken = false;
  #stalledFor = 0;
  #open = true;
  /** Set while the reader waits for a chunk. */
  #wanted: (() => void) | null = null;
  #drained: (() => void)[] = [];
  #resolveClosed = (): void => undefined;
  readonly #heartbeat: NodeJS.Timeout;
  readonly #heartbeatText: string;

  /**
   * @param onHeartbeat called with every heartbeat.
   * @param heartbeatOf how a heartbeat is written
   */
  constructor(
    onHeartbeat: () => void = () => undefined,
    heartbeatMs = HEARTBEAT_MS,
    heartbeatOf: (everyMs: number) => string = heartbeatEvent,
  ) {
    this.#heartbeatText = heartbeatOf(heartbeatMs);
    this.closed = new Promise((resolve) => (this.#resolveClosed = resolve));
    this.readable = new ReadableStream<Uint8Array>(
      { pull: (controller) => this.#pull(controller), cancel: () => this.cut() },
      { highWaterMark: 0 },
    );
    this.#heartbeat = setInterval(() => {
      this.#sendHeartbeat();
      onHeartbeat();
    }, heartbeatMs);
    this.#heartbeat.unref();
  }

  get isOpen(): boolean {
    return this.#open;
  }

  /** Bytes that the client has not taken yet. */
  get waiting(): number {
    return this.#bytes;
  }

  send(event: ServerSentEvent): void {
    this.write(textOf(event));
  }

  /** Writes a text as it stands. */
  write(text: string): void {
    if (!this.#open) return;
    const chunk = Buffer.from(text);
    this.#chunks.push(chunk);
    this.#bytes += chunk.byteLength;
    this.#wake();
  }

  /** Resolves when the client has taken all, or is gone. */
  async drained(): Promise<void> {
    if (this.#bytes === 0 || !this.#open) return;
    await new Promise<void>((resolve) => this.#drained.push(resolve));
  }

  /** Ends the stream after the waiting chunks were sent. */
  end(): void {
    this.#shut();
  }

  /** Ends the stream at once. */
  cut(): void {
    this.#chunks = [];
    this.#bytes = 0;
    this.#shut();
  }

  async #pull(controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> {
    if (this.#chunks.length === 0 && this.#open)
      await new Promise<void>((resolve) => (this.#wanted = resolve));
    const chunk = this.#chunks.shift();
    if (chunk === undefined) {
      controller.close();
      return;
    }
    this.#bytes -= chunk.byteLength;
    this.#taken = true;
    controller.enqueue(chunk);
    if (this.#bytes === 0) this.#tellDrained();
  }

  #sendHeartbeat(): void {
    if (this.#bytes === 0) {
      this.#stalledFor = 0;
      this.write(this.#heartbeatText);
    } else {
      this.#stalledFor = this.#taken ? 0 : this.#stalledFor + 1;
      if (this.#stalledFor >= STALLED_HEARTBEATS) this.cut();
    }
    this.#taken = false;
  }

  #shut(): void {
    if (!this.#open) return;
    this.#open = false;
    clearInterval(this.#heartbeat);
    this.#wake();
    this.#tellDrained();
    this.#resolveClosed();
  }

  #wake(): void {
    this.#wanted?.();
    this.#wanted = null;
  }

  #tellDrained(): void {
    for (const resolve of this.#drained.splice(0)) resolve();
  }
}
