import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { Client, Connection } from "@temporalio/client";
import { NativeConnection, Worker } from "@temporalio/worker";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { identify } from "../../local/process-identity.ts";
import { ensureTemporalBinary } from "../../local/temporal/find.ts";
import { SEARCH_ATTRIBUTES } from "../../protocol/search-attributes.ts";
import { ensureSearchAttributes } from "../../worker/search-attributes.ts";
import { startTemporal, waitForTemporal, type RunningTemporal } from "../../local/temporal/server.ts";
import "../support/quiet.ts";
import { temporaryFolder } from "./support.ts";

/** Takes all read locks it can: on each whole file, and where SQLite locks (bytes 120 to 127, and from 1 GiB on). */
const LOCK_ALL = `
  my $count = 0;
  for my $name (@ARGV) {
    open(my $file, "<", $name) or die $!;
    push @open, $file;
    for ([0, 0], [120, 8], [1 << 30, 1], [(1 << 30) + 1, 1], [(1 << 30) + 2, 510]) {
      my $lock = pack("s s x4 q q l x4", 0, 0, @$_, 0);
      $count++ if fcntl($file, 6, $lock);
    }
  }
  $| = 1;
  print "$count locks\n";
  sleep 300;
`;

let binary: string;
let server: RunningTemporal;
beforeAll(async () => {
  binary = (await ensureTemporalBinary()).path;
  server = await startTemporal({ binary });
}, 600_000);
afterAll(() => server.stop());

async function connect(address: string): Promise<Connection> {
  const connection = await Connection.connect({ address });
  onTestFinished(() => connection.close());
  return connection;
}

async function attributesOf(connection: Connection): Promise<string[]> {
  const { customAttributes } = await connection.operatorService.listSearchAttributes({
    namespace: "default",
  });
  return Object.keys(customAttributes);
}

test("a server knows the search attributes that operators look for", async () => {
  const connection = await connect(server.address);
  expect(await attributesOf(connection)).toEqual(expect.arrayContaining(Object.keys(SEARCH_ATTRIBUTES)));
});

test("missing search attributes are added to a namespace, also when it is done twice", async () => {
  const connection = await connect(server.address);
  await connection.operatorService.removeSearchAttributes({
    namespace: "default",
    searchAttributes: ["status"],
  });
  await ensureSearchAttributes(connection, "default");
  await ensureSearchAttributes(connection, "default");
  expect(await attributesOf(connection)).toEqual(expect.arrayContaining(Object.keys(SEARCH_ATTRIBUTES)));
});

test("a search attribute of another type is reported, with what can be done, and is left alone", async () => {
  const connection = await connect(server.address);
  const [namespace, title] = ["default", "title"];
  const replace = async (type: 1 | 2) => {
    await connection.operatorService.removeSearchAttributes({ namespace, searchAttributes: [title] });
    await connection.operatorService.addSearchAttributes({
      namespace,
      searchAttributes: Object.fromEntries([[title, type]]),
    });
  };
  onTestFinished(() => replace(2));
  await replace(1);
  await expect(ensureSearchAttributes(connection, namespace)).rejects.toThrow(
    /another type than Keyword: title\..* search-attribute remove --namespace default --name title$/,
  );
  const { customAttributes } = await connection.operatorService.listSearchAttributes({ namespace });
  expect(customAttributes[title]).toBe(1);
});

test("an activity can be executed without a workflow", async () => {
  const connection = await NativeConnection.connect({ address: server.address });
  const activities = { greet: (name: string) => Promise.resolve(`Hello, ${name}`) };
  const worker = await Worker.create({ connection, taskQueue: "tools:here", activities });
  const client = new Client({ connection: await connect(server.address) });
  const greeting = await worker.runUntil(
    client.activity.execute<string>("greet", {
      id: "greeting",
      taskQueue: "tools:here",
      args: ["host"],
      startToCloseTimeout: "5 seconds",
    }),
  );
  await connection.close();
  expect(greeting).toBe("Hello, host");
});

test("workflows in the database file survive the server", async () => {
  const dbFile = join(temporaryFolder(), "temporal.db");
  const first = await startTemporal({ binary, dbFile });
  const client = new Client({ connection: await connect(first.address) });
  await client.workflow.start("conversation", { workflowId: "kept", taskQueue: "nobody" });
  await first.stop();
  expect(identify(first.pid)).toBeNull();

  const second = await startTemporal({ binary, dbFile });
  onTestFinished(() => second.stop());
  const again = new Client({ connection: await connect(second.address) });
  expect((await again.workflow.getHandle("kept").describe()).status.name).toBe("RUNNING");
});

test("a process that can read the database file cannot block the server with locks", async () => {
  const folder = temporaryFolder();
  const locked = await startTemporal({ binary, dbFile: join(folder, "temporal.db") });
  onTestFinished(() => locked.stop());
  const client = new Client({ connection: await connect(locked.address) });
  const locking = spawn("perl", ["-e", LOCK_ALL, ...readdirSync(folder).map((name) => join(folder, name))], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  onTestFinished(() => void locking.kill("SIGKILL"));
  expect(String(await once(locking.stdout, "data"))).toMatch(/^[1-9]\d* locks/);
  await client.withDeadline(Date.now() + 10_000, () =>
    client.workflow.start("conversation", { workflowId: "not-held-up", taskQueue: "nobody" }),
  );
});

test("a server that cannot be reached is reported in a sentence", async () => {
  await expect(waitForTemporal("127.0.0.1:1", { within: 0 })).rejects.toThrow(
    "The Temporal server at 127.0.0.1:1 does not answer",
  );
});

test("a server that cannot start is reported with its last output", async () => {
  const dbFile = join(temporaryFolder(), "missing", "temporal.db");
  await expect(startTemporal({ binary, dbFile })).rejects.toThrow(/The Temporal server ended: .*missing/s);
});
