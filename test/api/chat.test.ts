/** A page that is made with the AI SDK (docs/ai-sdk.md): the SDK's own client, on the real system. */
import { randomUUID } from "node:crypto";
import {
  AbstractChat,
  DefaultChatTransport,
  lastAssistantMessageIsCompleteWithApprovalResponses,
  type ChatState,
  type ChatStatus,
  type UIMessage,
} from "ai";
import { expect, test, vi } from "vitest";
import { stoppingFetch } from "../../client/stopping-fetch.ts";
import { failHere, hold } from "../../local/scripted/cues.ts";
import { fail, say, text, thinking, toolCall, type Answer } from "../../local/scripted/script.ts";
import { isDead, longCommand, pidIn } from "../support/processes.ts";
import { startSystem } from "../support/system.ts";
import { at, Person } from "./person.ts";
import { serveApi, startApiOn } from "./support.ts";

const system = await startSystem();
const api = startApiOn(system);
const first = await serveApi(api);
// Another process of the API as far as streams are concerned: it shares nothing with the first but the database.
const second = await serveApi(startApiOn(system));
const person = new Person(api, system.cwd);
const script = (...answers: readonly Answer[]): string => system.model.script(randomUUID(), [...answers]);
const asks = (reason = "To write.") => say(text("I ask."), toolCall("request_mode_upgrade", { reason }));

class State implements ChatState<UIMessage> {
  status: ChatStatus = "ready";
  error: Error | undefined = undefined;
  messages: UIMessage[];
  constructor(messages: readonly UIMessage[]) {
    this.messages = [...messages];
  }
  pushMessage = (message: UIMessage): void => void this.messages.push(message);
  popMessage = (): void => void this.messages.pop();
  replaceMessage = (index: number, message: UIMessage): void => {
    this.messages[index] = message;
  };
  snapshot = <T>(thing: T): T => structuredClone(thing);
}

type Options = {
  readonly url?: string;
  readonly fetch?: typeof fetch;
  readonly messages?: readonly UIMessage[];
};

/** What `useChat` has behind it. */
class Chat extends AbstractChat<UIMessage> {
  constructor(id: string, { url = first.url, fetch: by = fetch, messages = [] }: Options = {}) {
    super({
      id,
      state: new State(messages),
      transport: new DefaultChatTransport({
        api: `${url}/api/ai/chat`,
        body: { cwd: system.cwd },
        fetch: by,
      }),
      sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
    });
  }

  get parts(): UIMessage["parts"] {
    return this.lastMessage?.role === "assistant" ? this.lastMessage.parts : [];
  }

  get said(): string {
    return this.parts.map((part) => (part.type === "text" ? part.text : "")).join("|");
  }

  tool(name: string) {
    return this.parts.find((part) => part.type === "dynamic-tool" && part.toolName === name);
  }
}

const shows = (chat: Chat, words: string) => vi.waitFor(() => expect(chat.said).toContain(words), 10_000);
const newId = () => randomUUID().replaceAll("-", "");
const LONG = "It is quite a long way that we have gone, and we go on. ".repeat(5);

test("a message begins a conversation; thinking, text and calls come as parts of one message", async () => {
  const chat = new Chat(newId());
  const tag = script(
    say(thinking("Hm."), text("I look."), toolCall("bash", { command: "echo seen" })),
    say(text("Done.")),
    say(text("A dot.")),
  );
  await chat.sendMessage({ text: `Go. ${tag}` });
  expect(chat.error).toBe(undefined);
  expect(chat.status).toBe("ready");
  expect(chat.messages.map(({ role }) => role)).toEqual(["user", "assistant"]);
  expect(chat.parts).toMatchObject([
    { type: "step-start" },
    { type: "reasoning", text: "Hm.", state: "done" },
    { type: "text", text: "I look.", state: "done" },
    {
      type: "dynamic-tool",
      toolName: "bash",
      state: "output-available",
      input: { command: "echo seen" },
      output: expect.stringContaining("seen") as string,
    },
    { type: "step-start" },
    { type: "text", text: "Done.", state: "done" },
  ]);
  const [message] = await person.messages(chat.id);
  expect(message?.id).toBe(chat.messages[0]?.id);
  expect(await person.conversation(chat.id)).toMatchObject({ cwd: system.cwd, mode: "restricted" });

  const image =
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
  const files = [{ type: "file" as const, mediaType: "image/png", url: image }];
  await chat.sendMessage({ text: "And this?", files });
  expect(chat.error).toBe(undefined);
  expect(chat.said).toBe("|A dot.");
  const sent = (await person.messages(chat.id)).findLast(({ type }) => type === "user");
  expect(sent?.content).toMatchObject([{ type: "text" }, { type: "image", mediaType: "image/png" }]);
});

test("cut off in the middle of an answer, the page comes back to another process and has all of it, once", async () => {
  const held = hold();
  const tag = script(say(text(LONG, held, "The end."), toolCall("ls", { path: "." })), say(text("Done.")));
  let cut = (): void => undefined;
  const chat = new Chat(newId(), { fetch: (input, init) => cuttable(input, init, (end) => (cut = end)) });
  const sent = chat.sendMessage({ text: `Go. ${tag}` });
  await shows(chat, LONG.slice(0, 200));
  cut();
  await sent;
  expect(chat.status).not.toBe("streaming");

  const again = new Chat(chat.id, { url: second.url, messages: chat.messages });
  const resumed = again.resumeStream();
  await shows(again, LONG.slice(0, 200));
  held.release();
  await resumed;
  expect(again.error).toBe(undefined);
  expect(again.said).toBe(`|${LONG}The end.|||Done.`);
  expect(again.messages).toHaveLength(2);
  expect((await person.messages(chat.id)).filter(({ type }) => type === "user")).toHaveLength(1);
  // There is nothing to come back to any more.
  await again.resumeStream();
  expect(again.messages).toHaveLength(2);
});

test("a transport that counts chunks goes on after those it has, during a run and after it", async () => {
  const held = hold();
  const tag = script(say(text(LONG, held, "The end.")));
  const id = newId();
  const message = { id: newId(), role: "user", parts: [{ type: "text", text: `Go. ${tag}` }] };
  const post = (url: string) =>
    fetch(`${url}/api/ai/chat`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ id, messages: [message], cwd: system.cwd }),
    });
  const response = await post(first.url);
  expect(response.headers.get("x-vercel-ai-ui-message-stream")).toBe("v1");
  const runId = response.headers.get("x-workflow-run-id") ?? "";
  const begun = await chunksIn(response, 6);
  const later = (from: number) =>
    fetch(`${second.url}/api/ai/chat/${runId}/stream?startIndex=${from}`).then((each) => chunksIn(each));
  const rest = later(begun.length);
  held.release();
  const whole = await later(0);
  expect([...begun, ...(await rest)]).toEqual(whole);
  expect(whole.at(0)).toContain('"start"');
  expect(whole.slice(-2)).toEqual(['{"type":"finish","finishReason":"stop"}', "[DONE]"]);
  // The same message again is the same run.
  expect(await chunksIn(await post(second.url))).toEqual(whole);
  expect((await person.messages(id)).filter(({ type }) => type === "user")).toHaveLength(1);
});

test("an approval is asked for and answered as a tool's, and the run goes on in the same message", async () => {
  const chat = new Chat(newId());
  const tag = script(
    asks("To write."),
    say(toolCall("bash", { command: "echo free" })),
    say(text("Thanks.")),
  );
  await chat.sendMessage({ text: `Go. ${tag}` });
  const call = chat.tool("request_mode_upgrade");
  expect(call).toMatchObject({ state: "approval-requested", input: { reason: "To write." } });
  expect((await person.conversation(chat.id))["mode"]).toBe("restricted");

  // A page that is opened now sees the question, too.
  const other = new Chat(chat.id, { messages: chat.messages.slice(0, 1) });
  await other.resumeStream();
  expect(other.tool("request_mode_upgrade")).toMatchObject({ state: "approval-requested" });

  const id = call?.type === "dynamic-tool" ? (call.approval?.id ?? "") : "";
  await chat.addToolApprovalResponse({ id, approved: true });
  await vi.waitFor(() => expect(chat.status).toBe("ready"), 10_000);
  await shows(chat, "Thanks.");
  expect(chat.messages).toHaveLength(2);
  expect(chat.tool("request_mode_upgrade")).toMatchObject({ state: "output-available" });
  expect(chat.tool("bash")).toMatchObject({ state: "output-available" });
  expect((await person.conversation(chat.id))["mode"]).toBe("unrestricted");
});

test("a denial is one, and a decision that comes too late says so", async () => {
  const chat = new Chat(newId());
  await chat.sendMessage({ text: `Go. ${script(asks(), say(text("Then not.")))}` });
  const call = chat.tool("request_mode_upgrade");
  const id = call?.type === "dynamic-tool" ? (call.approval?.id ?? "") : "";
  const late = new Chat(chat.id, { messages: chat.messages });
  await chat.addToolApprovalResponse({ id, approved: false });
  await shows(chat, "Then not.");
  expect((await person.conversation(chat.id))["mode"]).toBe("restricted");
  await late.addToolApprovalResponse({ id, approved: true });
  await vi.waitFor(() => expect(late.status).toBe("error"), 10_000);
  expect(late.error?.message).toContain("no_pending_approval");
});

test("a page without a token that may approve is told which role it needs, and the question stands", async () => {
  const guarded = await serveApi(startApiOn(system, { apiToken: "of-the-owner", anonymousRole: "talk" }));
  const chat = new Chat(newId(), { url: guarded.url });
  await chat.sendMessage({ text: `Go. ${script(asks(), say(text("Then not.")))}` });
  const call = chat.tool("request_mode_upgrade");
  const id = call?.type === "dynamic-tool" ? (call.approval?.id ?? "") : "";
  const another = new Chat(chat.id, { url: guarded.url, messages: chat.messages });
  await chat.addToolApprovalResponse({ id, approved: true });
  await vi.waitFor(() => expect(chat.status).toBe("error"), 10_000);
  expect(JSON.parse(chat.error?.message ?? "")).toMatchObject({
    code: "forbidden_role",
    ...{ needed: "approve", role: "talk" },
  });
  expect(await person.conversation(chat.id)).toMatchObject({
    mode: "restricted",
    state: { kind: "awaiting_mode_approval" },
  });
  // To deny gives no rights.
  await another.addToolApprovalResponse({ id, approved: false });
  await shows(another, "Then not.");
});

test("stop kills the process tree; a page without the product's fetch only stops looking", async () => {
  const { command, file } = longCommand(system.cwd);
  const id = newId();
  await person.create({ id });
  const chat = new Chat(id, { fetch: stoppingFetch() });
  const tag = script(asks(), say(text("I run."), toolCall("bash", { command })));
  await chat.sendMessage({ text: `Go. ${tag}` });
  const call = chat.tool("request_mode_upgrade");
  const approval = call?.type === "dynamic-tool" ? (call.approval?.id ?? "") : "";
  void chat.addToolApprovalResponse({ id: approval, approved: true });
  await shows(chat, "I run.");
  const pid = await pidIn(file);

  const watching = new Chat(id, { messages: chat.messages });
  const watched = watching.resumeStream();
  await shows(watching, "I run.");
  await watching.stop();
  await watched;
  expect((await person.conversation(id))["state"]).toMatchObject({ kind: "tool_executing" });

  await chat.stop();
  await vi.waitFor(() => expect(isDead(pid)).toBe(true), 10_000);
  await vi.waitFor(async () =>
    expect((await person.messages(id)).at(-1)?.content).toEqual([{ reason: "interrupted" }]),
  );
});

test("stopped by another client, the page is told; a run that fails is an error with its sentence", async () => {
  const held = hold();
  const stopped = new Chat(newId());
  const sent = stopped.sendMessage({ text: `Go. ${script(say(text(LONG, held)))}` });
  await shows(stopped, LONG.slice(0, 100));
  await person.order("POST", at(stopped.id, "/cancel"), {});
  await sent;
  expect(stopped.status).toBe("ready");

  const failed = new Chat(newId());
  await failed.sendMessage({
    text: `Go. ${script(fail("invalid_request_error", { message: "That model is unknown." }))}`,
  });
  expect(failed.status).toBe("error");
  expect(failed.error?.message).toContain("That model is unknown.");
});

test("an answer that broke off stays before the one that is asked for again, with a remark", async () => {
  const chat = new Chat(newId());
  const tag = script(say(text(LONG.slice(0, 100), failHere())), say(text("Whole.")));
  await chat.sendMessage({ text: `Go. ${tag}` });
  const texts = chat.parts.flatMap((part) => (part.type === "text" ? [part.text] : []));
  expect(texts.at(-1)).toBe("Whole.");
  for (const before of texts.slice(0, -1)) expect(LONG.startsWith(before)).toBe(true);
  expect(chat.parts.filter(({ type }) => type === "data-note")).toHaveLength(texts.length - 1);
});

test("what a person says meanwhile by another client is in the stream", async () => {
  const held = hold();
  const chat = new Chat(newId());
  const sent = chat.sendMessage({ text: `Go. ${script(say(text(LONG, held)), say(text("Yes.")))}` });
  await shows(chat, LONG.slice(0, 100));
  await person.say(chat.id, { text: "And be quick.", delivery: "steer" });
  held.release();
  await sent;
  expect(chat.parts.filter(({ type }) => type === "data-user")).toMatchObject([
    { data: { text: "And be quick." } },
  ]);
  expect(chat.said).toContain("Yes.");
});

test.for([
  ["a repetition", { trigger: "regenerate-message" }, "only goes on"],
  ["an edit", { messageId: "m1" }, "cannot be replaced"],
  ["an answer without a decision", { messages: [{ id: "a", role: "assistant", parts: [] }] }, "person's"],
  ["no text", { messages: [{ id: "a", role: "user", parts: [] }] }, "needs text"],
  [
    "a file elsewhere",
    { messages: [{ id: "a", role: "user", parts: [{ type: "file", url: "https://example.org/a.png" }] }] },
    "data URL",
  ],
  ["an id that is none", { id: "a b" }, "An id has"],
] as const)("%s is refused with a sentence, and begins nothing", async ([, fields, words]) => {
  const id = newId();
  const messages = [{ id: newId(), role: "user", parts: [{ type: "text", text: "Go." }] }];
  const response = await first.send("POST", "/api/ai/chat", { id, messages, cwd: system.cwd, ...fields });
  expect(response.status).toBe(422);
  expect(await response.text()).toContain(words);
  expect((await api.get(at(id))).status).toBe(404);
});

test("a chat that has not begun has nothing to follow; a run that never was is not found", async () => {
  expect((await first.get(`/api/ai/chat/${newId()}/stream`)).status).toBe(204);
  expect((await first.get(`/api/ai/chat/${newId()}.${newId()}/stream`)).status).toBe(404);
  expect((await first.get(`/api/ai/chat/a%20b/stream`)).status).toBe(404);
});

/** The payloads of a response; of the first `most`, if it is given, and then the connection is closed. */
async function chunksIn(response: Response, most = Number.POSITIVE_INFINITY): Promise<string[]> {
  const found: string[] = [];
  let rest = "";
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  while (reader !== undefined && found.length < most) {
    const { value, done } = await reader.read();
    if (done) return found;
    const lines = (rest + value).split("\n\n");
    rest = lines.pop() ?? "";
    found.push(
      ...lines.filter((line) => line.startsWith("data: ")).map((line) => line.slice("data: ".length)),
    );
  }
  await reader?.cancel();
  return found.slice(0, most);
}

/** A connection that the test can cut as a network does: its body ends by an error. */
async function cuttable(
  input: Parameters<typeof fetch>[0],
  init: RequestInit | undefined,
  offer: (cut: () => void) => void,
): Promise<Response> {
  const network = new AbortController();
  const response = await fetch(input, { ...init, signal: network.signal });
  offer(() => network.abort(new Error("The network is gone.")));
  return response;
}
