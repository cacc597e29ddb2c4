/** Owns: reading an event stream as a client does. */

export type Received = {
  /** null: a comment. */
  readonly name: string | null;
  /** The number of the event; null: no `id:`, or none that is a number. */
  readonly id: number | null;
  readonly data: { readonly [name: string]: unknown };
};

export class EventReader {
  readonly response: Response;
  readonly received: Received[] = [];
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;
  readonly #decoder = new TextDecoder();
  #text = "";
  #unread: Received[] = [];

  constructor(response: Response) {
    const type = response.headers.get("content-type");
    if (response.body === null || type !== "text/event-stream") {
      throw new Error(`not an event stream: ${response.status} ${type}`);
    }
    this.response = response;
    this.#reader = response.body.getReader();
  }

  /** The next event or comment; null at the end of the stream. */
  async next(): Promise<Received | null> {
    for (;;) {
      const event = this.#unread.shift();
      if (event !== undefined) {
        this.received.push(event);
        return event;
      }
      const { done, value } = await this.#reader.read();
      if (done) return null;
      this.#text += this.#decoder.decode(value, { stream: true });
      const parts = this.#text.split("\n\n");
      this.#text = parts.pop() ?? "";
      this.#unread = parts.map(parse);
    }
  }

  /** Reads on to the first event for which the predicate holds. */
  async until(wanted: string | ((event: Received) => boolean)): Promise<Received> {
    for (;;) {
      const event = await this.next();
      if (event === null) throw new Error(`the stream ended before ${String(wanted)}`);
      if (typeof wanted === "string" ? event.name === wanted : wanted(event)) return event;
    }
  }

  /** Names in order, up to and including the given one. */
  async namesUntil(name: string): Promise<(string | null)[]> {
    const from = this.received.length;
    await this.until(name);
    return this.received.slice(from).map((event) => event.name);
  }

  async cancel(): Promise<void> {
    await this.#reader.cancel();
  }
}

function parse(block: string): Received {
  const fields = new Map(
    block.split("\n").map((line) => {
      const colon = line.indexOf(":");
      return [line.slice(0, colon), line.slice(colon + 1).trimStart()];
    }),
  );
  const id = fields.get("id");
  return {
    name: fields.get("event") ?? null,
    id: id === undefined || !/^\d+$/.test(id) ? null : Number(id),
    data: JSON.parse(fields.get("data") ?? "{}") as Received["data"],
  };
}
