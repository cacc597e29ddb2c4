/** Connections to Postgres that end at a bad moment. */
import { once } from "node:events";
import { connect, createServer, type AddressInfo } from "node:net";
import { expect, inject, onTestFinished, test } from "vitest";
import { openClient } from "../../db/connect.ts";
import { isUnavailable } from "../../db/errors.ts";

/** Starts a proxy that resets each connection at its first query; resolves with the database's url through it. */
async function endsWhatIsAsked(url: string): Promise<string> {
  const parsed = new URL(url);
  const folder = parsed.searchParams.get("host");
  const port = parsed.port || "5432";
  const where =
    folder === null ? { host: parsed.hostname, port: Number(port) } : { path: `${folder}/.s.PGSQL.${port}` };
  const server = createServer((client) => {
    const postgres = connect(where);
    client.once("data", (startup) => {
      postgres.write(startup);
      client.once("data", () => {
        client.resetAndDestroy();
        postgres.destroy();
      });
    });
    postgres.pipe(client);
    for (const socket of [client, postgres]) socket.on("error", () => undefined);
  });
  server.listen(0, "127.0.0.1");
  onTestFinished(() => void server.close());
  await once(server, "listening");
  parsed.searchParams.delete("host");
  parsed.hostname = "127.0.0.1";
  parsed.port = String((server.address() as AddressInfo).port);
  return parsed.href;
}

test("a connection that ends at its first query fails that query, and not the process", async () => {
  const strayed: unknown[] = [];
  const note = (error: unknown): void => void strayed.push(error);
  process.on("unhandledRejection", note);
  onTestFinished(() => void process.off("unhandledRejection", note));
  const client = openClient(await endsWhatIsAsked(inject("postgresUrl")), "test");
  const error = await client`select 1`.catch((error: unknown) => error);
  // Node reports an unhandled rejection only after the handlers of the handled ones.
  await new Promise(setImmediate);
  expect(strayed).toEqual([]);

  expect(isUnavailable(error)).toBe(true);
  await client.end({ timeout: 1 });
});
