/**
 * Owns: the process that `npm start` runs as its model when there is no key. PORT: the port, 0 for any free one.
 * Prints one line when requests are answered; SIGTERM and SIGINT end it at once, open streams or not.
 */
import type { Env } from "../../config.ts";
import { startScriptedServer } from "./server.ts";

export async function main({ PORT = "0" }: Env): Promise<void> {
  const port = Number(PORT);
  if (!Number.isInteger(port) || port < 0 || port > 65_535) {
    console.error(`PORT is ${PORT}: give a number from 0 to 65535.`);
    process.exit(2);
  }
  const server = await startScriptedServer({ port, remember: 0 }).catch((error: unknown) => {
    const reason = error instanceof Error ? error.message : String(error);
    console.error(`The scripted model cannot listen on port ${port}: ${reason}`);
    process.exit(1);
  });
  for (const signal of ["SIGTERM", "SIGINT"] as const) {
    process.once(signal, () => {
      void server.close().finally(() => process.exit(0));
    });
  }
  console.log(`scripted model ready ${server.url}`);
}
