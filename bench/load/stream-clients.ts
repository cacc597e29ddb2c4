/** Owns: the process with the clients of streams.ts: each follows one conversation and notes when a piece came. */
import { setMaxListeners } from "node:events";
import { EventReader } from "../../test/api/sse.ts";
import type { ClientsOrder, ClientsReport, Receipt } from "./streams.ts";

const receipts: Receipt[] = [];
const ended = new AbortController();
// Each of many clients listens to it.
setMaxListeners(0, ended.signal);
/** @param sent called when it has gone */
const report = (what: ClientsReport, sent: () => void = () => undefined): void =>
  void process.send?.(what, undefined, undefined, sent);

process.on("message", (order: ClientsOrder | "done") => {
  if (order !== "done") {
    void follow(order).then(() => report({ kind: "ready" }));
    return;
  }
  report({ kind: "done", receipts }, () => process.disconnect());
  ended.abort();
});

async function follow({ url, conversations, clients }: ClientsOrder): Promise<void> {
  await Promise.all(
    Array.from({ length: clients }, async (_, n) => {
      const conversation = conversations[n % conversations.length] ?? "";
      const answer = await fetch(`${url}/api/conversations/${conversation}/events`, { signal: ended.signal });
      void read(new EventReader(answer), conversation).catch(() => undefined);
    }),
  );
}

/** Several pieces may come in one event. */
async function read(reader: EventReader, conversation: string): Promise<void> {
  for (let event = await reader.next(); event !== null; event = await reader.next()) {
    if (event.name !== "text.delta") continue;
    const at = Date.now();
    for (const [, piece] of String(event.data["text"]).matchAll(/#(\d+);/g))
      receipts.push({ conversation, piece: Number(piece), at });
  }
}
