/** Owns: clients that request all events and read nothing, and the conversation that is too much for their sockets. */
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { setTimeout as pause } from "node:timers/promises";
import type { Product } from "../test/support/product.ts";
import { Talk } from "../test/support/talk.ts";
import { directiveText, SCRIPT } from "./model.ts";

/** Together more than the kernel buffers for a connection whose client does not read. */
const MESSAGES = 12;
const MESSAGE_BYTES = 200_000;
const TIMEOUT_MS = 10_000;

export class DeafClients {
  readonly talk: Talk;
  readonly #product: Product;
  readonly #sockets: Socket[] = [];

  private constructor(product: Product, talk: Talk) {
    this.#product = product;
    this.talk = talk;
  }

  static async prepare(product: Product): Promise<DeafClients> {
    const talk = await Talk.open(product);
    const filler = "lorem ipsum ".repeat(MESSAGE_BYTES / 12);
    for (let n = 0; n < MESSAGES; n++) {
      const directive = directiveText({ kind: "text", id: `filler${n}`, place: 0, words: 1 });
      await talk.send(`[[script:${SCRIPT}]] ${directive} ${filler}`);
      await talk.untilState("idle");
    }
    return new DeafClients(product, talk);
  }

  /** @returns whether the API has data for it that its socket no longer takes */
  async add(): Promise<boolean> {
    const until = performance.now() + TIMEOUT_MS;
    while (performance.now() < until) {
      const socket = await this.#connect();
      // The API may have been killed meanwhile.
      while (socket !== null && !socket.destroyed && performance.now() < until) {
        if (unsentTo(socket.localPort ?? 0) > 0) return true;
        await pause(20);
      }
      await pause(50);
    }
    return false;
  }

  /** Null when the API does not answer. */
  async #connect(): Promise<Socket | null> {
    const { hostname, port } = new URL(this.#product.url);
    const socket = connect({ host: hostname, port: Number(port) });
    this.#sockets.push(socket);
    socket.on("error", () => undefined).pause();
    try {
      await once(socket, "connect");
    } catch {
      return null;
    }
    const path = `/api/conversations/${this.talk.id}/events`;
    socket.write(`GET ${path} HTTP/1.1\r\nhost: ${hostname}:${port}\r\nlast-event-id: 0\r\n\r\n`);
    return socket;
  }

  close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    this.talk.close();
    return Promise.resolve();
  }
}

/** Bytes that the kernel keeps for the peer at a local port, because the peer takes no more. */
function unsentTo(port: number): number {
  const hex = port.toString(16).toUpperCase().padStart(4, "0");
  for (const line of readFileSync("/proc/net/tcp", "utf8").split("\n")) {
    const [, , remote, , queues] = line.trim().split(/\s+/);
    if (remote?.endsWith(`:${hex}`) === true) return Number.parseInt(queues?.split(":")[0] ?? "0", 16);
  }
  return 0;
}
