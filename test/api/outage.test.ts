/**
 * Postgres or Temporal is unreachable or hangs: /readyz names it, and requests get a 503 while the client still waits.
 * Everything goes on by itself when it is back (docs/http.md, "A 503 means not known").
 */
import { randomUUID } from "node:crypto";
import { afterAll, expect, inject, onTestFinished, test } from "vitest";
import { hold } from "../../local/scripted/cues.ts";
import { say, text, toolCall } from "../../local/scripted/script.ts";
import { freshDatabase } from "../support/database.ts";
import { survivors } from "../support/processes.ts";
import { startSystem } from "../support/system.ts";
import { until } from "../support/waiting.ts";
import { EventReader } from "./sse.ts";
import { bodyOf, problemOf, type Requests, serveApi, startApiOn } from "./support.ts";
import { proxyPostgres, startProxy } from "../support/tcp-proxy.ts";

/** Milliseconds; a person still waits that long for a page. */
const TIMEOUT_MS = 9_000;

const postgres = await proxyPostgres(await freshDatabase());
const [temporalHost = "", temporalPort = ""] = inject("temporalAddress").split(":");
const temporal = await startProxy({ host: temporalHost, port: Number(temporalPort) });
afterAll(() => Promise.all([postgres.proxy.cut(), temporal.cut()]));
const system = await startSystem({ env: { DATABASE_URL: postgres.url } });

/** All processes reach Postgres through a proxy; the API reaches Temporal through one, too. */
const config = { ...system.config, temporalAddress: `127.0.0.1:${temporal.port}` };
const api = await serveApi(startApiOn({ config }));

async function create({ send }: Requests, message?: { text: string }): Promise<string> {
  const response = await send("POST", "/api/conversations", { cwd: system.cwd, message });
  if (response.status !== 201) throw new Error(await response.text());
  return String((await bodyOf(response))["id"]);
}

async function follow({ get }: Requests, id: string): Promise<EventReader> {
  const events = new EventReader(await get(`/api/conversations/${id}/events`));
  await events.until("synced");
  return events;
}

const untilIdle = (events: EventReader) =>
  events.until(({ data, name }) => name === "state.changed" && JSON.stringify(data).includes('"idle"'));

/** Asks until the API is ready. Each request waits for an answer or a connection, so this is no busy loop. */
async function recovered({ get }: Requests): Promise<void> {
  while ((await get("/readyz")).status !== 200);
}

/** Starts a conversation with a command that does not end by itself. */
async function startCommand(requests: Requests): Promise<{ readonly id: string; readonly mark: string }> {
  const mark = randomUUID();
  const command = `MARK=${mark} sleep 300`;
  const tag = system.model.script(mark, [say(toolCall("bash", { command })), say("Done.")]);
  const id = await create(requests, { text: `go ${tag}` });
  await until(() => survivors(mark).length > 0);
  return { id, mark };
}

type Call = readonly [method: string, path: string, body?: unknown];

/** Makes all calls at once: each gets a 503 problem with Retry-After within the time-out. */
async function expectUnavailable({ send }: Requests, calls: readonly Call[]): Promise<void> {
  const answers = calls.map(async ([method, path, body]) => {
    const asked = performance.now();
    const response = await send(method, path, body);
    const took = performance.now() - asked;
    const call = `${method} ${path}`;
    expect(await problemOf(response), call).toMatchObject({ status: 503, code: "unavailable" });
    expect(Number(response.headers.get("retry-after")), call).toBeGreaterThan(0);
    expect(took, call).toBeLessThan(TIMEOUT_MS);
  });
  await Promise.all(answers);
}

const missing = async ({ get }: Requests): Promise<unknown> =>
  (await problemOf(await get("/readyz")))["missing"];

const changes = (id: string): Call[] => [
  ["POST", "/api/conversations", { cwd: system.cwd }],
  ["POST", `/api/conversations/${id}/messages`, { id: "meanwhile", text: "Still there?" }],
  ["POST", `/api/conversations/${id}/mode`, { mode: "restricted" }],
  ["POST", `/api/conversations/${id}/continuation`],
  ["DELETE", `/api/conversations/${id}/queue/m`],
  ["PATCH", `/api/conversations/${id}`, { archived: true }],
  ["DELETE", `/api/conversations/${id}`],
];

const reads = (id: string): Call[] =>
  [
    "",
    `/${id}`,
    `/${id}/messages`,
    `/${id}/cycles`,
    `/${id}/children`,
    `/${id}/images/${"0".repeat(64)}`,
    `/${id}/events`,
    `/${id}/events?after=0`,
  ].map((path) => ["GET", `/api/conversations${path}`]);

test.each([
  ["is away", () => postgres.proxy.cut()],
  ["hangs", () => postgres.proxy.hang()],
])("when Postgres %s during an answer, requests are 503 and nothing is lost", async (_, breakIt) => {
  const held = hold();
  const tag = system.model.script(randomUUID(), [say(text("Before, ", held, "and after.")), say("Yes.")]);
  const id = await create(api, { text: `go ${tag}` });
  await held.reached;
  const events = await follow(api, id);
  const kept = await create(api);
  const running = await startCommand(api);

  onTestFinished(() => postgres.proxy.mend());
  await breakIt();
  await Promise.all([
    expectUnavailable(api, [...changes(kept), ...reads(id)]),
    missing(api).then((named) => expect(named).toEqual(["postgres"])),
    api.get("/healthz").then((response) => expect(response.status).toBe(200)),
    api.get("/api/models").then((response) => expect(response.status).toBe(200)),
    // A Stop ends the running command even if it cannot be stored or shown at that moment.
    api.send("POST", `/api/conversations/${running.id}/cancel`).then(async ({ status }) => {
      expect([202, 503]).toContain(status);
      await until(() => survivors(running.mark).length === 0);
    }),
    expectUnavailable(api, [["POST", "/api/conversations/nobody/cancel"]]),
  ]);
  held.release();
  await postgres.proxy.mend();
  await recovered(api);

  // The stream that was open all the time delivers the answer that was under way.
  await untilIdle(events);
  const sent = await api.send("POST", `/api/conversations/${id}/messages`, { text: "Did you finish?" });
  expect(sent.status).toBe(202);
  await untilIdle(events);
  const numbers = events.received.flatMap((event) => event.id ?? []);
  expect(numbers).toEqual(numbers.map((_number, index) => (numbers[0] ?? 0) + index));
  await events.cancel();
  const { messages } = await bodyOf(await api.get(`/api/conversations/${id}/messages`));
  const types = (messages as { type: string }[]).map((message) => message.type);
  expect(types).toEqual(["user", "agent", "run_stop", "user", "agent", "run_stop"]);
  const said = (): Promise<Response> => api.get(`/api/conversations/${running.id}/messages`);
  await until(async () => (await (await said()).text()).includes('"status":"cancelled"'));
  expect(JSON.stringify(messages)).toContain("Before, and after.");
});

test.concurrent(
  "while Temporal is away, changes are 503, reads and streams go on; the same message gets through later",
  async ({ onTestFinished: finished }) => {
    const tag = system.model.script(randomUUID(), [say("Back.")]);
    const id = await create(api);
    const events = await follow(api, id);
    const list = new EventReader(await api.get("/api/events"));
    await list.until("synced");
    const message = { id: "meanwhile", text: `still there? ${tag}` };
    const path = `/api/conversations/${id}/messages`;

    finished(() => temporal.mend());
    await temporal.cut();
    // A title needs no workflow.
    expect((await api.send("PATCH", `/api/conversations/${id}`, { title: "Meanwhile" })).status).toBe(200);
    await Promise.all([
      expectUnavailable(api, [
        ...changes(id),
        ["POST", `/api/conversations/${id}/cancel`],
        ["GET", "/api/directories?path=/"],
        ["POST", path, message],
      ]),
      missing(api).then((named) => expect(named).toEqual(["temporal"])),
      ...[`/api/conversations/${id}`, path, "/api/conversations"].map(async (read) =>
        expect((await api.get(read)).status).toBe(200),
      ),
    ]);
    expect((await events.until("conversation.changed")).data).toMatchObject({ title: "Meanwhile" });
    await list.until((event) => event.data["title"] === "Meanwhile");
    expect(await bodyOf(await api.get(path))).toEqual({ messages: [] });

    await temporal.mend();
    await recovered(api);
    const sent = await api.send("POST", path, message);
    expect(await bodyOf(sent)).toEqual({ messageId: "meanwhile", sequence: 1, delivery: "direct" });
    await untilIdle(events);
    // Operators see the title, too.
    const described = () => system.temporal.workflow.getHandle(id).describe();
    const attributes = async () =>
      (await described()).typedSearchAttributes.getAll().map(({ key, value }) => [key.name, value]);
    await expect.poll(attributes).toContainEqual(["title", "Meanwhile"]);
    await Promise.all([events.cancel(), list.cancel()]);
  },
);

// Runs beside the test above, because it mostly waits.
test.concurrent("without a worker the API is not ready, and /readyz says so", async () => {
  const idle = await startSystem({ workers: 0 });
  const lonely = await serveApi(startApiOn(idle));
  await Promise.all([
    expectUnavailable(lonely, [["POST", "/api/conversations", { cwd: idle.cwd }]]),
    missing(lonely).then((named) => expect(named).toEqual(["worker"])),
  ]);
});
