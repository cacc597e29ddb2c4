/** `bedrock acp` as an editor sees it, by the protocol's own client side (docs/editors.md). */
import { randomUUID } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { hold } from "../../local/scripted/cues.ts";
import { say, text, thinking, toolCall, type Answer } from "../../local/scripted/script.ts";
import { at, Person } from "../api/person.ts";
import { serveApi, startApiOn } from "../api/support.ts";
import { isDead, longCommand, pidIn } from "../support/processes.ts";
import { startSystem } from "../support/system.ts";
import { eventually, openEditor, type Editor } from "./editor.ts";

const system = await startSystem();
const api = startApiOn(system);
const { url } = await serveApi(api);
const person = new Person(api, system.cwd);

const script = (...answers: readonly Answer[]): string => system.model.script(randomUUID(), [...answers]);
const asks = (reason = "To write.") => say(text("I ask."), toolCall("request_mode_upgrade", { reason }));
const open = () => openEditor({ BEDROCK_URL: url });
const begin = async ({ agent }: Editor) =>
  (await agent.request("session/new", { cwd: system.cwd, mcpServers: [] })).sessionId;
const prompt = ({ agent }: Editor, sessionId: string, words: string) =>
  agent.request("session/prompt", { sessionId, prompt: [{ type: "text", text: words }] });

test("a prompt is a message: its answer streams, its calls show, and it ends with the run", async () => {
  const editor = await open();
  const id = await begin(editor);
  const held = hold();
  const tag = script(
    say(thinking("Hm."), text("I ", held, "look."), toolCall("bash", { command: "echo seen" })),
    say(text("Done.")),
  );
  const ended = prompt(editor, id, `Go. ${tag}`);
  await eventually(() => expect(editor.said()).toBe("I "));
  held.release();
  expect(await ended).toEqual({ stopReason: "end_turn" });
  // Everything has come before the end of the turn.
  expect(editor.said()).toBe("I look.Done.");
  expect(editor.updates("agent_thought_chunk")).toHaveLength(1);
  expect(editor.updates("user_message_chunk")).toEqual([]);
  const [call] = editor.updates("tool_call");
  expect(call).toMatchObject({ title: "echo seen", kind: "execute" });
  expect(editor.updates("tool_call_update").at(-1)).toMatchObject({
    toolCallId: call?.toolCallId,
    status: "completed",
    content: [{ type: "content", content: { text: expect.stringContaining("seen") as string } }],
  });
  expect((await person.messages(id)).at(-1)?.type).toBe("run_stop");
});

test("an approval is asked for with its reason; allowed, the change comes with its old and new text", async () => {
  const editor = await open();
  const id = await begin(editor);
  writeFileSync(join(system.cwd, "greeting.txt"), "Hello\nyou\n");
  const tag = script(
    say(toolCall("read", { path: "greeting.txt" })),
    asks("To greet."),
    say(toolCall("edit", { path: "greeting.txt", oldText: "you", newText: "world" })),
    say(text("Done.")),
  );
  const ended = prompt(editor, id, `Go. ${tag}`);
  await eventually(() => expect(editor.questions).toHaveLength(1));
  const [question] = editor.questions;
  expect(question?.toolCall.title).toContain("To greet.");
  expect(question?.options.map(({ kind }) => kind)).toEqual(["reject_once", "allow_once"]);
  expect(await person.stateOf(id)).toBe("awaiting_mode_approval");
  question?.answer("approve");
  expect(await ended).toEqual({ stopReason: "end_turn" });
  expect(editor.updates("current_mode_update")).toMatchObject([{ currentModeId: "unrestricted" }]);
  const diffs = editor
    .updates("tool_call_update")
    .flatMap(({ content }) => content ?? [])
    .filter(({ type }) => type === "diff");
  expect(diffs).toEqual([
    { type: "diff", path: join(system.cwd, "greeting.txt"), oldText: "Hello\nyou", newText: "Hello\nworld" },
  ]);
});

test("a denial keeps the mode; one that is made elsewhere takes the question back", async () => {
  const editor = await open();
  const id = await begin(editor);
  const tag = script(asks(), say(text("Then not.")), asks("Again."), say(text("Thanks.")));
  const first = prompt(editor, id, `Go. ${tag}`);
  await eventually(() => expect(editor.questions).toHaveLength(1));
  editor.questions[0]?.answer("deny");
  expect(await first).toEqual({ stopReason: "end_turn" });
  expect((await person.conversation(id))["mode"]).toBe("restricted");

  const second = prompt(editor, id, "Once more.");
  await eventually(() => expect(editor.questions).toHaveLength(2));
  await person.approve(id);
  await eventually(() => expect(editor.questions[1]?.isTakenBack()).toBe(true));
  expect(await second).toEqual({ stopReason: "end_turn" });
});

test("where an approval needs a token that the editor does not have, it is told so; the question stands, and is answered elsewhere", async () => {
  const guarded = startApiOn(system, { apiToken: "of-the-owner", anonymousRole: "talk" });
  const editor = await openEditor({ BEDROCK_URL: (await serveApi(guarded)).url });
  const id = await begin(editor);
  const ended = prompt(editor, id, `Go. ${script(asks(), say(text("Thanks.")))}`);
  await eventually(() => expect(editor.questions).toHaveLength(1));
  editor.questions[0]?.answer("approve");
  await eventually(() => expect(editor.said()).toContain(`in a terminal: bedrock approve ${id}`));
  expect(editor.said()).toMatch(/I ask\.Not decided: .*approve/);
  expect(await person.conversation(id)).toMatchObject({
    mode: "restricted",
    state: { kind: "awaiting_mode_approval" },
  });
  await person.approve(id);
  expect(await ended).toEqual({ stopReason: "end_turn" });
  expect(editor.updates("current_mode_update")).toMatchObject([{ currentModeId: "unrestricted" }]);
});

test("cancel stops the process tree, and the prompt ends as cancelled", async () => {
  const editor = await open();
  const id = await begin(editor);
  const { command, file } = longCommand(system.cwd);
  const ended = prompt(editor, id, `Go. ${script(asks(), say(toolCall("bash", { command })))}`);
  await eventually(() => expect(editor.questions).toHaveLength(1));
  editor.questions[0]?.answer("approve");
  const pid = await pidIn(file);
  await editor.agent.notify("session/cancel", { sessionId: id });
  expect(await ended).toEqual({ stopReason: "cancelled" });
  expect(isDead(pid)).toBe(true);
});

test("a bridge that is killed in the middle of a prompt stops nothing; loaded again, all is there, and the approval is asked once", async () => {
  const editor = await open();
  const id = await begin(editor);
  const held = hold();
  const tag = script(
    say(text("I ", held, "look."), toolCall("ls", { path: "." })),
    asks("To write."),
    say(text("Thanks.")),
  );
  void prompt(editor, id, `Go. ${tag}`).catch(() => undefined);
  await eventually(() => expect(editor.said()).toBe("I "));
  await editor.kill();
  expect(await person.stateOf(id)).toBe("llm_requesting");
  held.release();
  await eventually(async () => expect(await person.stateOf(id)).toBe("awaiting_mode_approval"));

  const again = await open();
  const { modes } = await again.agent.request("session/load", {
    sessionId: id,
    cwd: system.cwd,
    mcpServers: [],
  });
  expect(modes?.currentModeId).toBe("restricted");
  // What was said before is there when the request is answered.
  expect(again.said()).toBe("I look.I ask.");
  expect(again.updates("user_message_chunk")).toHaveLength(1);
  expect(again.updates("tool_call")).toHaveLength(2);
  await eventually(() => expect(again.questions).toHaveLength(1));
  again.questions[0]?.answer("approve");
  await eventually(() => expect(again.said()).toBe("I look.I ask.Thanks."));
  expect(again.questions).toHaveLength(1);
  expect(await prompt(again, id, `Go on. ${script(say(text("More.")))}`).catch(() => null)).toBeDefined();
});

test("sessions are listed by directory; one can be resumed without what was said, closed, and deleted", async () => {
  const editor = await open();
  const id = await begin(editor);
  expect(await prompt(editor, id, `Go. ${script(say(text("First.")), say(text("Second.")))}`)).toEqual({
    stopReason: "end_turn",
  });
  const { sessions } = await editor.agent.request("session/list", { cwd: system.cwd });
  expect(sessions.find(({ sessionId }) => sessionId === id)).toMatchObject({ cwd: system.cwd });
  expect((await editor.agent.request("session/list", { cwd: "/elsewhere" })).sessions).toEqual([]);

  const other = await open();
  await other.agent.request("session/resume", { sessionId: id, cwd: system.cwd });
  expect(await prompt(other, id, "Again.")).toEqual({ stopReason: "end_turn" });
  expect(other.said()).toBe("Second.");
  await other.agent.request("session/close", { sessionId: id });
  await expect(prompt(other, id, "Closed.")).rejects.toThrow("not open");
  await other.agent.request("session/delete", { sessionId: id });
  expect((await api.get(at(id))).status).toBe(404);
});

test("modes: back to Restricted at any time, out of it only by an approval", async () => {
  const editor = await open();
  const id = await begin(editor);
  await expect(
    editor.agent.request("session/set_mode", { sessionId: id, modeId: "unrestricted" }),
  ).rejects.toThrow("Only an approval");
  const ended = prompt(editor, id, `Go. ${script(asks(), say(text("Thanks.")))}`);
  await eventually(() => expect(editor.questions).toHaveLength(1));
  editor.questions[0]?.answer("approve");
  await ended;
  await editor.agent.request("session/set_mode", { sessionId: id, modeId: "restricted" });
  expect((await person.conversation(id))["mode"]).toBe("restricted");
});

test("sub-agents are a plan; files and images of a prompt reach the model", async () => {
  const editor = await open();
  const id = await begin(editor);
  const task = (words: string) => ({
    task: `${words} ${script(say(toolCall("submit_result", { success: true, result: words })))}`,
  });
  const tag = script(
    say(toolCall("spawn_agents", { tasks: [task("Count."), task("Measure.")] })),
    say(text("Done.")),
  );
  const png =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
  const answer = await editor.agent.request("session/prompt", {
    sessionId: id,
    prompt: [
      { type: "text", text: `Go. ${tag}` },
      { type: "resource_link", name: "a", uri: "file:///home/me/a%20b.txt" },
      { type: "image", data: png, mimeType: "image/png" },
    ],
  });
  expect(answer).toEqual({ stopReason: "end_turn" });
  const [first] = await person.messages(id);
  expect(JSON.stringify(first?.content)).toContain("/home/me/a b.txt");
  expect(JSON.stringify(first?.content)).toContain('"type":"image"');
  const plans = editor.updates("plan");
  expect(plans.at(-1)?.entries.map(({ status }) => status)).toEqual(["completed", "completed"]);
  expect(plans.some(({ entries }) => entries.some(({ status }) => status === "in_progress"))).toBe(true);
});

test("what the server refuses is an error with its sentence", async () => {
  const editor = await open();
  await expect(
    editor.agent.request("session/new", { cwd: "/does/not/exist", mcpServers: [] }),
  ).rejects.toThrow(/exist/i);
  await expect(
    editor.agent.request("session/load", { sessionId: randomUUID(), cwd: system.cwd, mcpServers: [] }),
  ).rejects.toThrow();
});
