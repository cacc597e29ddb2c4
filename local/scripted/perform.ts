/**
 * Owns: sending the steps of an answer over one HTTP response, until they are over, the client is gone, or the
 * server ends.
 */
import type { ServerResponse } from "node:http";
import { delay, type Cue } from "./cues.ts";
import {
  errorBody,
  STATUS_OF,
  type ErrorBody,
  type JsonObject,
  type MessageResponse,
  type StreamEvent,
} from "./messages.ts";

export type Step =
  | Cue
  /** Sends the headers of a stream. */
  | { readonly kind: "open" }
  | { readonly kind: "event"; readonly event: StreamEvent }
  /** Sends the whole response. */
  | {
      readonly kind: "json";
      readonly status: number;
      readonly body: JsonObject | MessageResponse | ErrorBody;
      readonly headers: { readonly [name: string]: string };
    };

export function sendJson(
  response: ServerResponse,
  status: number,
  body: object,
  headers: { readonly [name: string]: string } = {},
): void {
  response.writeHead(status, { "content-type": "application/json", ...headers });
  response.end(JSON.stringify(body));
}

export type Exchange = {
  readonly response: ServerResponse;
  /** Aborted when the client is gone or the server ends. */
  readonly signal: AbortSignal;
  readonly requestId: string;
  /** Cuts the connection. */
  readonly cut: () => void;
};

/** Resolves when nothing more will be sent. */
export async function perform(
  steps: readonly Step[],
  { response, signal, requestId, cut }: Exchange,
): Promise<void> {
  for (const step of steps) {
    if (signal.aborted) return;
    switch (step.kind) {
      case "open":
        response.writeHead(200, {
          "content-type": "text/event-stream; charset=utf-8",
          "cache-control": "no-cache",
        });
        response.flushHeaders();
        break;
      case "event":
        await write(response, step.event);
        break;
      case "json":
        sendJson(response, step.status, step.body, step.headers);
        break;
      case "hold":
        await step.wait(signal, () => {
          if (response.headersSent) void write(response, { type: "ping" });
        });
        break;
      case "pause":
        await delay(step.ms, signal);
        break;
      case "fail": {
        const body = errorBody(step.type, step.message, requestId);
        if (!response.headersSent) {
          sendJson(response, STATUS_OF[step.type], body);
          return;
        }
        await write(response, body);
        response.end();
        return;
      }
      case "drop":
        cut();
        return;
      case "end":
        // A response that is not streamed can only end early by cutting the connection.
        if (response.headersSent) response.end();
        else cut();
        return;
    }
  }
}

/** Resolves when the event has left the process: a cut that follows cannot overtake it. */
function write(response: ServerResponse, event: StreamEvent): Promise<void> {
  return new Promise((resolve) => {
    response.write(`event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`, () => resolve());
  });
}
