/** Who may do what: roles, tokens by name, the file of tokens, and how often. */
import { mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test, vi } from "vitest";
import { say, text, toolCall } from "../../local/scripted/script.ts";
import { digestOfToken, isAtLeast, ROLES, type Role, type TokenEntry } from "../../protocol/access.ts";
import { createConversation } from "../db/fixtures.ts";
import { hostSandbox } from "../support/host-sandbox.ts";
import { startSystem } from "../support/system.ts";
import { at, Person } from "./person.ts";
import { EventReader } from "./sse.ts";
import { problemOf, requestsBy, serveApi, startApi, startApiOn, type Requests } from "./support.ts";

const folder = mkdtempSync(join(tmpdir(), "bedrock-tokens-"));
afterAll(() => rmSync(folder, { recursive: true }));

const tokenOf = (name: string): string => `the-token-of-${name}`;
const entryOf = (name: string, role: Role, more: Partial<TokenEntry> = {}): TokenEntry => ({
  ...{ name, role, sha256: digestOfToken(tokenOf(name)) },
  ...more,
});
const contentOf = (...tokens: readonly TokenEntry[]): string => JSON.stringify({ tokens });

let files = 0;
function tokensFile(...tokens: readonly TokenEntry[]): string {
  const file = join(folder, `${++files}.json`);
  writeFileSync(file, contentOf(...tokens));
  return file;
}

const everyRole = ROLES.map((role) => entryOf(role, role));

/** The requests of one caller; null: without a token. */
const as = ({ get }: Requests, name: string | null): Requests =>
  requestsBy((path, init = {}) => {
    const headers = new Headers(init.headers);
    if (name !== null) headers.set("authorization", `Bearer ${tokenOf(name)}`);
    return get(path, { ...init, headers });
  });

type Document = {
  readonly paths: { readonly [path: string]: { readonly [method: string]: { readonly "x-role"?: Role } } };
};

describe("a role", async () => {
  const api = await startApi({ apiTokensFile: tokensFile(...everyRole) });
  const { paths } = (await (await api.get("/openapi.json")).json()) as Document;
  const routes = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, { "x-role": role }]) => ({ method, path, role })),
  );

  test("is declared by every route but the probes, and every GET needs no more than to read", () => {
    expect(routes.filter(({ role }) => role === undefined).map(({ path }) => path)).toEqual([
      "/healthz",
      "/readyz",
    ]);
    const gets = routes.filter(({ method, role }) => method === "get" && role !== undefined);
    expect(gets.filter(({ role }) => role !== "read").map(({ path }) => path)).toEqual(["/metrics"]);
    expect(
      routes
        .filter(({ role }) => role === "admin")
        .map(({ path }) => path)
        .sort(),
    ).toEqual(["/api/conversations/{id}/codec/encode", "/metrics"]);
  });

  test.each(routes.filter(({ role }) => role !== undefined))(
    "$role is needed for $method $path: who has less is refused before a body is read, who has it is not",
    async ({ method, path, role: needed = "admin" }) => {
      for (const { name, role } of everyRole) {
        const aborter = new AbortController();
        const response = await as(api, name).get(path.replaceAll(/\{\w+\}/g, "x"), {
          method: method.toUpperCase(),
          signal: aborter.signal,
          // It is refused for its type, unless the role is refused first.
          ...(method === "get" ? {} : { body: "x", headers: { "content-type": "text/plain" } }),
        });
        if (isAtLeast(role, needed)) expect(response.status, name).not.toBe(403);
        else
          expect(await problemOf(response), name).toMatchObject({
            ...{ status: 403, code: "forbidden_role", needed, role },
            detail: expect.stringContaining(`the role ${needed}`) as unknown,
          });
        aborter.abort();
        await response.body?.cancel().catch(() => undefined);
      }
    },
  );

  test("of callers without a token is a setting; a path that does not exist tells nobody anything", async () => {
    for (const anonymousRole of [null, ...ROLES]) {
      const { get } = await startApi({ anonymousRole, databaseUrl: api.url });
      const statuses = await Promise.all(
        ["/api/conversations", "/metrics", "/nowhere"].map(async (path) => (await get(path)).status),
      );
      expect(statuses, String(anonymousRole)).toEqual(
        anonymousRole === null
          ? [401, 401, 401]
          : anonymousRole === "admin"
            ? [200, 200, 404]
            : [200, 403, 404],
      );
    }
  });
});

describe("the file of tokens", () => {
  const statusOf = async (requests: Requests, name: string) =>
    (await as(requests, name).get("/api/conversations")).status;
  const becomes = (requests: Requests, name: string, status: number) =>
    vi.waitFor(async () => expect(await statusOf(requests, name)).toBe(status), {
      timeout: 10_000,
      // More wrong tokens would be too many.
      interval: 500,
    });

  test("is read again when it is written, renamed into its place, or its link leads elsewhere", async () => {
    const file = tokensFile(entryOf("ada", "talk"));
    const api = await startApi({ apiTokensFile: file });
    expect([await statusOf(api, "ada"), await statusOf(api, "bob")]).toEqual([200, 401]);
    writeFileSync(file, contentOf(entryOf("ada", "talk"), entryOf("bob", "read")));
    await becomes(api, "bob", 200);
    renameSync(tokensFile(entryOf("cyd", "read")), file);
    await becomes(api, "cyd", 200);
    expect([await statusOf(api, "ada"), await statusOf(api, "bob")]).toEqual([401, 401]);

    // As Kubernetes does it: the file is a link into a folder that is a link.
    const [first, second] = [tokensFile(entryOf("ada", "read")), tokensFile(entryOf("bob", "read"))];
    const link = join(folder, "current");
    symlinkSync(first, link);
    const mounted = join(folder, "mounted");
    symlinkSync(link, mounted);
    const other = await startApi({ apiTokensFile: mounted });
    expect([await statusOf(other, "ada"), await statusOf(other, "bob")]).toEqual([200, 401]);
    symlinkSync(second, `${link}.new`);
    renameSync(`${link}.new`, link);
    await becomes(other, "bob", 200);
    expect(await statusOf(other, "ada")).toBe(401);
  });

  test("that cannot be used any more leaves the tokens as they were, and the log says so once", async () => {
    const file = tokensFile(entryOf("ada", "talk"));
    const { said, ...api } = await startApi({ apiTokensFile: file });
    const complaints = () => said.filter((line) => !line.startsWith("Warning"));
    writeFileSync(file, '{"tokens": [{"name": "ada", "role": "king", "sha256": ""}]}');
    await vi.waitFor(() => expect(complaints().join()).toContain("A role is one of"), 10_000);
    writeFileSync(file, "{");
    await vi.waitFor(() => expect(complaints().join()).toContain("is not JSON"), 10_000);
    rmSync(file);
    await vi.waitFor(() => expect(complaints().join()).toContain("cannot be read (ENOENT)"), 10_000);
    expect(await statusOf(api, "ada")).toBe(200);
    writeFileSync(file, contentOf(entryOf("bob", "talk")));
    await becomes(api, "bob", 200);
    expect(await statusOf(api, "ada")).toBe(401);
    expect(complaints()).toHaveLength(3);
  });

  test.each([
    ["no JSON", "tokens", /is not JSON/],
    [
      "two of a name",
      contentOf(entryOf("ada", "read"), { ...entryOf("bob", "read"), name: "ada" }),
      /Two tokens have the name ada/,
    ],
    ["a token itself", '{"tokens":[{"name":"ada","role":"read","token":"x"}]}', /tokens\.0/],
    ["a name that could be a sentence", contentOf(entryOf("The system:", "read")), /A name has/],
    ["a time that is none", contentOf(entryOf("ada", "read", { expires: "soon" })), /A time looks like/],
  ])("with %s starts no API", async (_, content, complaint) => {
    const file = tokensFile();
    writeFileSync(file, content);
    await expect(startApi({ apiTokensFile: file })).rejects.toThrow(complaint);
  });

  test("has tokens that expire; the streams of one that expires or is taken away end with it", async () => {
    const expires = new Date(Date.now() + 3_000).toISOString();
    const file = tokensFile(
      entryOf("ada", "read", { expires }),
      entryOf("bob", "read"),
      entryOf("cyd", "read"),
    );
    const api = await startApi({ apiTokensFile: file });
    const { id } = await createConversation(api.db);
    const paths = ["/api/events", "/api/stream", at(id, "/events")];
    const open = (name: string) =>
      Promise.all(paths.map(async (path) => (await as(api, name).get(path)).body?.getReader()));
    const untilEnd = async (reader: Awaited<ReturnType<typeof open>>[number]) => {
      while ((await reader?.read())?.done === false);
    };
    const [ofAda, ofBob, ofCyd] = await Promise.all(["ada", "bob", "cyd"].map(open));
    await Promise.all(ofAda?.map(untilEnd) ?? []);
    expect(Date.now()).toBeGreaterThanOrEqual(Date.parse(expires));
    expect(await statusOf(api, "ada")).toBe(401);

    writeFileSync(file, contentOf(entryOf("cyd", "read")));
    await Promise.all(ofBob?.map(untilEnd) ?? []);
    expect(await statusOf(api, "bob")).toBe(401);
    // One that stays keeps its streams.
    const ends = Promise.all(ofCyd?.map(untilEnd) ?? []).then(() => "ended");
    const later = new Promise<string>((resolve) => setTimeout(resolve, 300, "open"));
    expect(await Promise.race([ends, later])).toBe("open");
    for (const reader of ofCyd ?? []) await reader?.cancel();
  });
});

describe("a limit", () => {
  const LIST = "/api/conversations";

  test("of requests holds for one token: 429 says how long to wait, probes never count, others go on", async () => {
    const entries = [entryOf("ada", "read", { requestsPerMinute: 5 }), entryOf("bob", "read")];
    const api = await startApi({ apiTokensFile: tokensFile(...entries) });
    const [ada, bob] = [as(api, "ada"), as(api, "bob")];
    for (let n = 0; n < 20; n++) expect((await ada.get("/healthz")).status).toBe(200);
    // A stream counts once.
    const stream = await ada.get("/api/events");
    for (let n = 0; n < 4; n++) expect((await ada.get(LIST)).status).toBe(200);
    const refused = await ada.get(LIST);
    const seconds = Number(refused.headers.get("retry-after"));
    expect(seconds).toBeGreaterThan(0);
    expect(seconds).toBeLessThanOrEqual(60);
    expect(await problemOf(refused)).toMatchObject({
      status: 429,
      code: "rate_limited",
      retryAfter: seconds,
    });
    expect((await ada.send("POST", LIST, { cwd: "/" })).status).toBe(429);
    expect((await bob.get(LIST)).status).toBe(200);
    await stream.body?.cancel();
  });

  test("of wrong tokens holds for one address, where a token that was accepted before still is", async () => {
    const api = await startApi({ apiTokensFile: tokensFile(entryOf("ada", "read"), entryOf("bob", "read")) });
    const served = await serveApi(api);
    const status = async (token: string) =>
      (await served.get(LIST, { headers: { authorization: `Bearer ${token}` } })).status;
    expect(await status(tokenOf("ada"))).toBe(200);
    const statuses: number[] = [];
    for (let n = 0; n < 40; n++) statuses.push(await status(`guess-${n}`));
    expect(statuses.indexOf(429)).toBe(30);
    expect(new Set(statuses.slice(30))).toEqual(new Set([429]));
    // Not even the right one is looked at, so that guessing on is in vain.
    expect([await status(tokenOf("bob")), await status(tokenOf("ada"))]).toEqual([429, 200]);
    // Another address is not concerned: requests without a socket have none.
    expect((await as(api, "bob").get(LIST)).status).toBe(200);
  });
});

const { available } = await hostSandbox();
describe.skipIf(!available)("a decision", async () => {
  const system = await startSystem();
  const api = startApiOn(system, { apiTokensFile: tokensFile(...everyRole) });
  const person = new Person(as(api, "talk"), system.cwd);

  /** A conversation that waits for an approval. */
  async function asking() {
    const calls = [
      say(text("I ask."), toolCall("request_mode_upgrade", { reason: "To write." })),
      say(text("So.")),
    ];
    const id = await person.create({
      message: { text: `Go. ${system.model.script(crypto.randomUUID(), calls)}` },
    });
    await person.untilState(id, "awaiting_mode_approval");
    const { toolCall: call } = (await person.conversation(id))["state"] as { toolCall: { id: string } };
    return { id, toolCallId: call.id };
  }

  test("to approve needs the role; the message of the call, the one on the mode and the event name the token", async () => {
    const { id, toolCallId } = await asking();
    const body = { decision: "approve", toolCallId };
    for (const name of ["read", "talk"]) {
      const refused = await as(api, name).send("POST", at(id, "/approval"), body);
      expect(await problemOf(refused)).toMatchObject({
        code: "forbidden_role",
        needed: name === "read" ? "talk" : "approve",
      });
    }
    // A name in the request counts for nothing.
    const forged = await as(api, "approve").send("POST", at(id, "/approval"), { ...body, by: "eve" });
    expect(await problemOf(forged)).toMatchObject({ code: "invalid_request" });
    const events = new EventReader(await as(api, "read").get(at(id, "/events")));
    expect((await as(api, "approve").send("POST", at(id, "/approval"), body)).status).toBe(202);
    const changed = await events.until("mode.changed");
    expect(changed.data).toEqual({ mode: "unrestricted", by: "approval", person: "approve" });
    await events.cancel();
    await person.untilState(id, "idle");
    const messages = await person.messages(id);
    expect(messages.find(({ type }) => type === "tool")).toMatchObject({
      display: { decided: { decision: "approve", by: "approve" } },
    });
    expect(JSON.stringify(messages.find(({ type }) => type === "system")?.content)).toContain(
      "approve approved the mode upgrade.",
    );
  });

  test("to deny needs no more than to talk, for who may talk may stop the run; it is named, too", async () => {
    const { id, toolCallId } = await asking();
    expect(
      (await as(api, "talk").send("POST", at(id, "/approval"), { decision: "deny", toolCallId })).status,
    ).toBe(202);
    await person.untilState(id, "idle");
    expect((await person.messages(id)).find(({ type }) => type === "tool")).toMatchObject({
      display: { decided: { decision: "deny", by: "talk" } },
      content: [{ output: [{ text: expect.stringMatching(/^talk denied/) as unknown }] }],
    });
  });

  test("by way of the AI SDK needs the role as well", async () => {
    const { id, toolCallId } = await asking();
    const root = (await person.messages(id))[0]?.id ?? "";
    const approval = { id: toolCallId, approved: true };
    const parts = [{ type: "tool-request_mode_upgrade", state: "approval-responded", toolCallId, approval }];
    const chat = { id, messages: [{ id: `${root}.answer`, role: "assistant", parts }] };
    const refused = await as(api, "talk").send("POST", "/api/ai/chat", chat);
    expect(await problemOf(refused)).toMatchObject({ code: "forbidden_role", needed: "approve" });
    expect(await person.stateOf(id)).toBe("awaiting_mode_approval");
    const taken = await as(api, "approve").send("POST", "/api/ai/chat", chat);
    expect(taken.status).toBe(200);
    await taken.text();
    await person.untilState(id, "idle");
    expect(JSON.stringify(await person.messages(id))).toContain('"by":"approve"');
  });

  test("that an operator has encrypted names the operator, whatever the input says", async () => {
    const codec = await startApi({
      apiTokensFile: tokensFile(...everyRole),
      payloadKeys: [new Uint8Array(32)],
    });
    const encoded = async (input: object): Promise<unknown> => {
      const data = Buffer.from(JSON.stringify(input)).toString("base64");
      const payloads = [{ metadata: { encoding: Buffer.from("json/plain").toString("base64") }, data }];
      const encrypted = await as(codec, "admin").send("POST", at("one", "/codec/encode"), { payloads });
      const decrypted = await as(codec, "read").send("POST", "/api/codec/decode", await encrypted.json());
      const [payload] = ((await decrypted.json()) as { payloads: [{ data: string }] }).payloads;
      return JSON.parse(Buffer.from(payload.data, "base64").toString());
    };
    expect(await encoded({ decision: "approve", by: "eve" })).toEqual({ decision: "approve", by: "admin" });
    expect(await encoded({ by: "timeout" })).toEqual({ by: "timeout" });
  });
});
