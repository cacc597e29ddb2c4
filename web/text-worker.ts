/** Owns: the entry of a text worker: one TextService behind a port. Not here: its work (text/text-service.ts). */
import type { FromWorker, Request } from "./text/messages.ts";
import { TextService } from "./text/text-service.ts";

// The page's first message brings a port; all others come through it.
addEventListener("message", ({ ports: [port] }: MessageEvent) => {
  if (port === undefined) return;
  const send = (message: FromWorker): void => port.postMessage(message);
  const service = new TextService(send);
  port.onmessage = ({ data }: MessageEvent<Request>) => service.take(data);
  send({ kind: "ready" });
});
