/** Owns: helpers for the tests of the scripted server: one server per file, requests by plain fetch, SSE parsing. */
import { createServer } from "node:net";
import { afterAll, beforeAll } from "vitest";
import Anthropic from "@anthropic-ai/sdk";
import type { Json, JsonObject, StreamEvent } from "../../local/scripted/messages.ts";
import {
  startScriptedServer,
  type ScriptedServer,
  type ScriptedServerOptions,
} from "../../local/scripted/server.ts";

export const HEADERS = {
  "content-type": "application/json",
  "x-api-key": "test",
  "anthropic-version": "2026-10-21",
};

/** A server for all tests of a file. */
export function useScriptedServer(options: ScriptedServerOptions = {}): () => ScriptedServer {
  let server: ScriptedServer | undefined;
  beforeAll(async () => {
    server = await startScriptedServer(options);
  });
  afterAll(() => server?.close());
  return () => {
    if (server === undefined) throw new Error("The server is not started yet.");
    return server;
  };
}

export const connect = (server: ScriptedServer): Anthropic =>
  new Anthropic({ baseURL: server.url, apiKey: "test", maxRetries: 0 });

/** A valid request: one message of the user. */
export function ask(text: string, more: JsonObject = {}): { [key: string]: Json } {
  return { model: "claude-sonnet-5", max_tokens: 100, messages: [{ role: "user", content: text }], ...more };
}

export type Reply = { readonly status: number; readonly headers: Headers; readonly body: JsonObject };

export async function post(
  server: ScriptedServer,
  body: Json,
  path = "/v1/messages",
  headers: { [name: string]: string } = HEADERS,
): Promise<Reply> {
  const init = { method: "POST", headers, body: JSON.stringify(body) };
  const response = await fetch(`${server.url}${path}`, init);
  return { status: response.status, headers: response.headers, body: (await response.json()) as JsonObject };
}

/** Opens a stream and yields its events as they come. Throws as fetch does when the connection is cut. */
export async function* stream(
  server: ScriptedServer,
  body: JsonObject,
  signal: AbortSignal = new AbortController().signal,
): AsyncGenerator<StreamEvent> {
  const init = { method: "POST", headers: HEADERS, body: JSON.stringify({ ...body, stream: true }), signal };
  const response = await fetch(`${server.url}/v1/messages`, init);
  if (response.body === null) throw new Error("no body");
  let buffer = "";
  for await (const chunk of response.body.pipeThrough(new TextDecoderStream())) {
    buffer += chunk;
    const frames = buffer.split("\n\n");
    buffer = frames.pop() ?? "";
    for (const frame of frames) {
      const [event = "", data = ""] = frame.split("\n");
      const parsed = JSON.parse(data.replace(/^data: /, "")) as StreamEvent;
      if (event !== `event: ${parsed.type}`) throw new Error(`${event} does not match ${data}`);
      yield parsed;
    }
  }
}

export async function collect<T>(items: AsyncIterable<T>): Promise<T[]> {
  const collected: T[] = [];
  for await (const item of items) collected.push(item);
  return collected;
}

/** A port that nothing listened on a moment ago. */
export async function freePort(): Promise<number> {
  const probe = createServer();
  await new Promise<void>((resolve) => probe.listen(0, "127.0.0.1", resolve));
  const address = probe.address();
  await new Promise((resolve) => probe.close(resolve));
  if (address === null || typeof address === "string") throw new Error("no port");
  return address.port;
}

/** Files of four formats with nothing but a header that tells this size. */
export function imageFile(mediaType: string, width: number, height: number): Buffer {
  switch (mediaType) {
    case "image/png": {
      const bytes = Buffer.alloc(33);
      bytes.write("\x89PNG\r\n\x1a\n", 0, "latin1");
      bytes.write("IHDR", 12, "latin1");
      bytes.writeUInt32BE(width, 16);
      bytes.writeUInt32BE(height, 20);
      return bytes;
    }
    case "image/gif": {
      const bytes = Buffer.alloc(13);
      bytes.write("GIF89a", 0, "latin1");
      bytes.writeUInt16LE(width, 6);
      bytes.writeUInt16LE(height, 8);
      return bytes;
    }
    case "image/webp": {
      const bytes = Buffer.alloc(30);
      bytes.write("RIFF", 0, "latin1");
      bytes.write("WEBPVP8X", 8, "latin1");
      bytes.writeUIntLE(width - 1, 24, 3);
      bytes.writeUIntLE(height - 1, 27, 3);
      return bytes;
    }
    default: {
      // Start of image, a comment of 4 bytes, the frame header.
      const bytes = Buffer.from("ffd8fffe000401020000ffc0001108", "hex");
      const size = Buffer.alloc(10);
      size.writeUInt16BE(height, 0);
      size.writeUInt16BE(width, 2);
      // Without the two padding bytes between the segments.
      return Buffer.concat([bytes.subarray(0, 8), bytes.subarray(10), size]);
    }
  }
}

export const imageBlock = (bytes: Buffer, media_type = "image/png"): JsonObject => ({
  type: "image",
  source: { type: "base64", media_type, data: bytes.toString("base64") },
});
