/** Reading conversations, messages, sub-agents and images: from Postgres alone. */
import { createHash } from "node:crypto";
import { expect, test } from "vitest";
import { commit } from "../../db/commit.ts";
import { putImage } from "../../db/images.ts";
import { chain, createConversation, userMessage } from "../db/fixtures.ts";
import { bodyOf, startApi } from "./support.ts";

const { get, send, db } = await startApi();

type Shown = { id: string; title: string };
type Page = { conversations: Shown[]; nextCursor: string | null };
const page = async (query: string): Promise<Page> =>
  (await bodyOf(await get(`/api/conversations?${query}`))) as unknown as Page;

test("the list is newest first, in pages without gaps, by title and by archive, without sub-agents", async () => {
  const ids: string[] = [];
  const first = Date.now();
  for (let n = 0; n < 7; n++) {
    // Each has a millisecond of its own; within one millisecond the id would decide the order.
    const at = new Date(first + n).toISOString();
    const { id } = await createConversation(db, { at }, { title: `Paged ${n}%` });
    ids.unshift(id);
  }
  const [newest] = ids;
  if (newest === undefined) throw new Error("there are seven");
  await createConversation(
    db,
    {},
    { title: "Paged child", config: { parentId: newest, userInitiated: false } },
  );
  const seen: string[] = [];
  let cursor: string | null = null;
  do {
    const answer: Page = await page(`q=paged&limit=3${cursor === null ? "" : `&cursor=${cursor}`}`);
    seen.push(...answer.conversations.map((conversation) => conversation.id));
    cursor = answer.nextCursor;
  } while (cursor !== null);
  expect(seen).toEqual(ids);
  expect((await page("q=3%25")).conversations.map((conversation) => conversation.title)).toEqual([
    "Paged 3%",
  ]);

  const { id, head } = await createConversation(db, {}, { title: "Put away" });
  await commit(db, id, chain([{ archived: true }], head));
  const titles = async (archived: string) =>
    (await page(`q=put+away&archived=${archived}`)).conversations.map((conversation) => conversation.id);
  expect([await titles("false"), await titles("true"), await titles("all")]).toEqual([[], [id], [id]]);
});

test("an empty query parameter counts as absent", async () => {
  const { id } = await createConversation(db, { messages: [userMessage(1, "one")] }, { title: "Void" });
  const listed = await page("archived=&q=void&limit=&cursor=");
  expect(listed.conversations.map((conversation) => conversation.id)).toEqual([id]);
  const { messages } = await bodyOf(await get(`/api/conversations/${id}/messages?after=&before=&limit=`));
  expect(messages).toHaveLength(1);
  expect((await get(`/api/conversations/${id}/cycles?view=&before=&limit=`)).status).toBe(200);
});

test("messages are in ascending order, and bounds are exclusive", async () => {
  const all = Array.from({ length: 120 }, (_, index) => userMessage(index + 1, `message ${index + 1}`));
  const { id } = await createConversation(db, { messages: all });
  const sequences = async (query: string) => {
    const { messages } = await bodyOf(await get(`/api/conversations/${id}/messages?${query}`));
    return (messages as { sequence: number }[]).map((message) => message.sequence);
  };
  const range = (from: number, to: number) =>
    Array.from({ length: to - from + 1 }, (_, index) => from + index);
  expect(await sequences("")).toEqual(range(1, 100));
  expect(await sequences("limit=1000")).toEqual(range(1, 120));
  expect(await sequences("after=100")).toEqual(range(101, 120));
  expect(await sequences("after=118&limit=1")).toEqual([119]);
  expect(await sequences("before=5")).toEqual(range(1, 4));
  expect(await sequences("before=100&limit=3")).toEqual(range(97, 99));
  expect(await sequences("after=10&before=13")).toEqual([11, 12]);
  expect(await sequences("after=120")).toEqual([]);
});

test("children are the sub-agents, or an empty list", async () => {
  const { id } = await createConversation(db);
  expect(await bodyOf(await get(`/api/conversations/${id}/children`))).toEqual({ conversations: [] });
  const child = await createConversation(db, {}, { config: { parentId: id, userInitiated: false } });
  const { conversations } = await bodyOf(await get(`/api/conversations/${id}/children`));
  expect(conversations).toMatchObject([{ id: child.id, parentId: id, userInitiated: false }]);
});

test("only conversations that refer to an image can read it, and it never changes", async () => {
  const bytes = new Uint8Array([0x89, 0x50, 0x4e, 0x47, 0, 255]);
  const hash = createHash("sha256").update(bytes).digest("hex");
  const image = { type: "image", hash, mediaType: "image/png", width: 1, height: 1 } as const;
  await putImage(db, image, bytes);
  const { id } = await createConversation(db, { messages: [userMessage(1, "look", "m1", [image])] });
  const response = await get(`/api/conversations/${id}/images/${hash}`);
  expect(response.status).toBe(200);
  expect(new Uint8Array(await response.arrayBuffer())).toEqual(bytes);
  expect(response.headers.get("content-type")).toBe("image/png");
  expect(response.headers.get("cache-control")).toContain("immutable");
  const other = await createConversation(db);
  expect((await get(`/api/conversations/${other.id}/images/${hash}`)).status).toBe(404);
});

test("a title is changed without a workflow, and the slug stays", async () => {
  const { id } = await createConversation(db, {}, { title: "Before" });
  const answer = await send("PATCH", `/api/conversations/${id}`, { title: " After " });
  expect(answer.status).toBe(200);
  const changed = await bodyOf(answer);
  expect(changed).toMatchObject({ title: "After", slug: "before" });
  expect(await bodyOf(await get(`/api/conversations/${id}`))).toEqual(changed);
});

test("exactly one model is the default", async () => {
  const { models } = await bodyOf(await get("/api/models"));
  const shown = models as { id: string; default: boolean; contextWindow: number }[];
  expect(shown.filter((model) => model.default)).toHaveLength(1);
  expect(shown.every((model) => model.contextWindow > 0)).toBe(true);
});

test("metrics count requests by route and not by path", async () => {
  await get("/api/conversations/some-id");
  await get("/made/up/path");
  const text = await (await get("/metrics")).text();
  expect(text).toMatch(
    /bedrock_http_request_seconds_count\{method="GET",route="\/api\/conversations\/:id",status="404"\} \d+/,
  );
  expect(text).toContain('route="unknown"');
  expect(text).not.toContain("some-id");
  expect(text).not.toContain("/made/up");
  for (const line of text.trimEnd().split(/\n+/)) {
    expect(line).toMatch(/^(# (HELP|TYPE) \S+ .+|[a-z_]+(\{[^}]+\})? [\d.e+-]+)$/);
  }
});
