/** Measures: from `kill -9` of a worker, in a request or in a tool, to the arrival of the next request at the provider. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { hold } from "../local/scripted/cues.ts";
import { say, toolCall } from "../local/scripted/script.ts";
import { Conversation, type Product } from "./product.ts";

export type CrashIn = "request" | "tool";

/** Milliseconds; the launcher starts the worker anew, and nobody else is there. */
export async function recovery(
  product: Product,
  cwd: string,
  dataDir: string,
  where: CrashIn,
): Promise<number> {
  const conversation = await Conversation.open(product, cwd);
  const name = `crash-${conversation.id}`;
  const held = hold();
  const first = where === "request" ? say("half ", held) : say(toolCall("bash", { command: "sleep 300" }));
  const tag = product.model.script(name, [first, say("Whole.")]);
  const executing = await conversation.nextState("tool_executing");
  await conversation.send(`go ${tag}`);
  if (where === "request") await held.reached;
  else await executing.at;
  executing.stop();
  const { pid } = JSON.parse(readFileSync(join(dataDir, "run", "worker.json"), "utf8")) as { pid: number };
  const killed = performance.now();
  process.kill(pid, "SIGKILL");
  const next = await product.model.nextRequest(name, 2);
  return next.arrivedAt - killed;
}
