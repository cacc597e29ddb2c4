/** Connections to Postgres that end at a bad moment. */
import { once } from "node:events";
import { connect, createServer, type AddressInfo } from "node:net";
import type { Sql, TransactionSql } from "postgres";
import { expect, inject, onTestFinished, test } from "vitest";
import { openClient, openDatabase } from "../../db/connect.ts";
import { isUnavailable } from "../../db/errors.ts";
import { proxyPostgres } from "../support/tcp-proxy.ts";

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

test.for(["statements", "transactions"] as const)(
  "%s that all fail at once, again and again, end neither the process nor a connection for good, and get no other's answer",
  async (kind) => {
    const { proxy, url } = await proxyPostgres(inject("postgresUrl"));
    const database = openDatabase(url, { max: 8 });
    const { sql } = database;
    onTestFinished(() => database.close().then(() => proxy.cut()));
    let asked = 0;
    const ask = async (on: typeof sql | TransactionSql) => {
      const number = ++asked;
      expect(await on`select ${number}::int as number`).toEqual([{ number }]);
    };
    const work = () =>
      kind === "statements"
        ? ask(sql)
        : sql.begin(async (transaction) => {
            await ask(transaction);
            await ask(transaction);
          });
    const codes = new Set<unknown>();
    let isOver = false;
    let done = 0;
    let tries = 0;
    /** Asks again at once, before the connection's end is known everywhere; now and then timers get their turn. */
    const person = async () => {
      while (!isOver) {
        await work().then(
          () => (done += 1),
          (error: unknown) => codes.add((error as { code?: unknown }).code ?? error),
        );
        if (++tries % 100 === 0) await new Promise(setImmediate);
      }
    };
    const people = Array.from({ length: 16 }, person);
    for (let n = 0; n < 20; n++) {
      const before = done;
      await expect.poll(() => done, { timeout: 4000, interval: 20 }).toBeGreaterThan(before + 20);
      proxy.drop();
    }
    const before = done;
    await expect.poll(() => done, { timeout: 4000 }).toBeGreaterThan(before + 20);
    isOver = true;
    await Promise.all(people);
    // Long enough that each connection gets one.
    await Promise.all(Array.from({ length: 16 }, () => sql`select pg_sleep(0.1)`));
    expect([...codes].filter((code) => code !== "CONNECTION_CLOSED" && code !== "ECONNRESET")).toEqual([]);
  },
);

test.for([
  ["fails", async (sql: Sql) => sql`select 1 / (3 - number) from generate_series(1, 5) as number`],
  [
    "loses its connection",
    // Rows go out as they are found. The connection's end is one of them.
    async (sql: Sql) =>
      sql`select case when number = 900 then pg_terminate_backend(pg_backend_pid())::text else repeat('x', 100) end
        from generate_series(1, 1000) as number`,
  ],
] as const)(
  "after an answer that %s when some of its rows have come, the next one is whole",
  async ([, ask]) => {
    const client = openClient(inject("postgresUrl"), "test");
    onTestFinished(() => client.end({ timeout: 1 }));
    await expect(ask(client)).rejects.toThrow();
    expect(await client`select number from generate_series(1, 3) as number`).toEqual([
      { number: 1 },
      { number: 2 },
      { number: 3 },
    ]);
  },
);
