/** The client's event stream against a server that misbehaves in every way that networks do. */
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, onTestFinished, test, vi } from "vitest";
import { Stream, type Link } from "../../client/stream.ts";

type Opened = {
  /** `list` and `conversation` of the request. */
  readonly list: string;
  readonly conversations: readonly string[];
  readonly authorization: string | undefined;
  readonly send: (name: string, data: object) => void;
  readonly end: () => void;
  readonly response: ServerResponse;
};

/** Answers of the server to requests that are not for the stream. */
type Answers = { stream?: (request: IncomingMessage, response: ServerResponse) => boolean; change?: number };

async function serve(answers: Answers = {}) {
  const opened: Opened[] = [];
  const changes: unknown[] = [];
  const server = createServer((request, response) => {
    const url = new URL(request.url ?? "/", "http://server");
    if (request.method === "POST") {
      let body = "";
      request.on("data", (chunk: Buffer) => (body += chunk.toString()));
      request.on("end", () => {
        changes.push({ path: url.pathname, ...(JSON.parse(body) as object) });
        response.writeHead(answers.change ?? 204).end();
      });
      return;
    }
    if (answers.stream?.(request, response) === true) return;
    response.writeHead(200, { "content-type": "text/event-stream" });
    const send = (name: string, data: object) =>
      void response.write(`event: ${name}\ndata: ${JSON.stringify(data)}\n\n`);
    opened.push({
      list: url.searchParams.get("list") ?? "",
      conversations: url.searchParams.getAll("conversation"),
      authorization: request.headers.authorization,
      send,
      end: () => response.destroy(),
      response,
    });
    send("stream.opened", { streamId: `s${opened.length}` });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}`, opened, changes, server };
}

function follow(url: string, token: string | null = null) {
  const links: Link[] = [];
  const events: unknown[] = [];
  const stream = new Stream(
    { url, token },
    {
      onLink: (link) => links.push(link),
      onListEvent: (event) => events.push(event),
      onConversationEvent: (id, event) => events.push({ id, ...event }),
    },
  );
  onTestFinished(() => stream.end());
  return { stream, links, events };
}

const nth = <T>(items: readonly T[], n: number) =>
  vi.waitFor(() => {
    const item = items[n];
    if (item === undefined) throw new Error(`There are only ${items.length}.`);
    return item;
  }, 10_000);

test("it comes back after every end by the cursors of the list and of each conversation", async () => {
  const { url, opened } = await serve();
  const { stream, links, events } = follow(url, "secret");
  stream.open("c1");
  const first = await nth(opened, 0);
  expect(first).toMatchObject({ list: "", authorization: "Bearer secret" });
  first.send("synced", { conversationId: null, cursor: "7", data: { lastEvent: null } });
  first.send("snapshot", { conversationId: "c1", cursor: "17", data: {} });
  first.send("text.delta", { conversationId: "c1", cursor: null, data: { text: "a" } });
  await vi.waitFor(() => expect(events).toHaveLength(3));
  first.end();
  const second = await nth(opened, 1);
  expect(second).toMatchObject({ list: "7", conversations: ["c1:17"] });
  await vi.waitFor(() => expect(links.map(({ kind }) => kind)).toEqual(["connected", "lost", "connected"]));
});

test("conversations are opened and closed on the connection that is there; events of closed ones are not passed", async () => {
  const { url, opened, changes } = await serve();
  const { stream, events } = follow(url);
  const only = await nth(opened, 0);
  stream.open("c1");
  stream.open("c2");
  await vi.waitFor(() => expect(changes).toHaveLength(2));
  stream.close("c1");
  await vi.waitFor(() =>
    expect(changes).toEqual([
      { path: "/api/stream/s1", open: [{ id: "c1" }] },
      { path: "/api/stream/s1", open: [{ id: "c2" }] },
      { path: "/api/stream/s1", close: ["c1"] },
    ]),
  );
  only.send("state.changed", { conversationId: "c1", cursor: "1", data: {} });
  only.send("state.changed", { conversationId: "c2", cursor: "1", data: {} });
  await vi.waitFor(() => expect(events).toEqual([{ id: "c2", name: "state.changed", data: {} }]));
});

test("what is opened while there is no connection is asked for by the next one, once", async () => {
  let isDown = true;
  const { url, opened, changes } = await serve({
    stream: (_, response) => {
      if (isDown)
        response.writeHead(503, { "content-type": "application/json" }).end('{"detail":"Not yet."}');
      return isDown;
    },
  });
  const { stream, links } = follow(url);
  await vi.waitFor(() => expect(links).toMatchObject([{ kind: "lost", reason: "Not yet." }]));
  stream.open("c1");
  isDown = false;
  expect((await nth(opened, 0)).conversations).toEqual(["c1"]);
  expect(changes).toEqual([]);
});

test("a connection that has died without a word is noticed by the missing heartbeat", async () => {
  const { url, opened } = await serve();
  const { links } = follow(url);
  const first = await nth(opened, 0);
  // From now on the server is silent, and the socket stays open.
  first.send("heartbeat", { everyMs: 100 });
  await nth(opened, 1);
  expect(links.map(({ kind }) => kind)).toContain("lost");
});

test("a connection that is never answered is given up sooner than one that was open", async () => {
  let asked = 0;
  const { url, opened } = await serve({ stream: () => asked++ === 0 });
  const { links } = follow(url);
  await nth(opened, 0);
  await vi.waitFor(() =>
    expect(links).toMatchObject([
      { kind: "lost", reason: "The server does not answer." },
      { kind: "connected" },
    ]),
  );
});

test("a change of the network is answered with a new connection at once, and nothing comes twice", async () => {
  const { url, opened } = await serve();
  const { stream, events } = follow(url);
  stream.open("c1");
  const first = await nth(opened, 0);
  first.send("state.changed", { conversationId: "c1", cursor: "4", data: { n: 1 } });
  await vi.waitFor(() => expect(events).toHaveLength(1));
  stream.reconnect();
  const second = await nth(opened, 1);
  expect(second.conversations).toEqual(["c1:4"]);
  first.send("state.changed", { conversationId: "c1", cursor: "5", data: { n: 2 } });
  second.send("state.changed", { conversationId: "c1", cursor: "5", data: { n: 2 } });
  await vi.waitFor(() => expect(events).toHaveLength(2));
});

test("a stream that the server does not know any more is opened anew", async () => {
  const answers: Answers = { change: 404 };
  const { url, opened } = await serve(answers);
  const { stream } = follow(url);
  await nth(opened, 0);
  stream.open("c1");
  expect((await nth(opened, 1)).conversations).toEqual(["c1"]);
});

test("a refused token is said, and not tried again", async () => {
  let requests = 0;
  const { url } = await serve({
    stream: (_, response) => {
      requests += 1;
      response.writeHead(401).end();
      return true;
    },
  });
  const { stream, links } = follow(url);
  await vi.waitFor(() => expect(links).toEqual([{ kind: "unauthorized" }]));
  stream.reconnect();
  expect(requests).toBe(1);
});

test("what a proxy answers in place of the server is a lost connection, whatever it is", async () => {
  const pages = ["<html>Bad gateway</html>", "", '{"detail": 7}'];
  const { url, opened } = await serve({
    stream: (_, response) => {
      const page = pages.shift();
      if (page === undefined) return false;
      response.writeHead(502, { "content-type": "text/html" }).end(page);
      return true;
    },
  });
  const { links } = follow(url);
  await nth(opened, 0);
  expect(links.filter(({ kind }) => kind === "lost")).toHaveLength(3);
});
