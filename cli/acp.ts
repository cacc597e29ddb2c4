/** Owns: `bedrock acp`: the bridge for editors on standard input and output, and the server behind it. */
import { Readable, Writable } from "node:stream";
import { ndJsonStream } from "@agentclientprotocol/sdk";
import { bridgeTo } from "../acp/bridge.ts";
import { createCalls, createClient } from "../client/index.ts";
import { EXIT, type ExitCode } from "./exit-codes.ts";
import { serverOf, type Env } from "./server.ts";
import { startInBackground } from "./system.ts";
import type { ProcessStreams, Terminal } from "./terminal.ts";

/** Resolves when the editor has gone. What runs goes on. */
export async function acp(
  terminal: Terminal,
  { input, output }: ProcessStreams,
  env: Env,
): Promise<ExitCode> {
  const server = serverOf(env);
  // A server that is named is somebody else's to start; here it is only asked whether it serves this bridge.
  if ((env["BEDROCK_URL"] ?? "") === "")
    await startInBackground(server.url, env, (line) => terminal.tell(line));
  else await createCalls(server).call((routes) => routes.models.$get());
  const client = createClient(server, { list: false });
  const stream = ndJsonStream(
    Writable.toWeb(output) as WritableStream<Uint8Array>,
    Readable.toWeb(input) as ReadableStream<Uint8Array>,
  );
  const { closed } = bridgeTo(client).connect(stream);
  await closed;
  client.end();
  return EXIT.done;
}
