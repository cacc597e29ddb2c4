/** `bedrock acp` as an editor sees it that speaks the draft of version 2 (docs/editors.md). */
import { execFileSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ToolCallContent } from "@agentclientprotocol/sdk/experimental/v2";
import { expect, test } from "vitest";
import { hold } from "../../local/scripted/cues.ts";
import { say, text, toolCall, type Answer } from "../../local/scripted/script.ts";
import { at, Person } from "../api/person.ts";
import { serveApi, startApiOn } from "../api/support.ts";
import { isDead, longCommand, pidIn } from "../support/processes.ts";
import { startSystem } from "../support/system.ts";
import { eventually, openEditor, openV2Editor, type V2Editor } from "./editor.ts";

const system = await startSystem();
const api = startApiOn(system);
const { url } = await serveApi(api);
const person = new Person(api, system.cwd);

const script = (...answers: readonly Answer[]): string => system.model.script(randomUUID(), [...answers]);
const asks = (reason = "To write.") => say(text("I ask."), toolCall("request_mode_upgrade", { reason }));
const open = () => openV2Editor({ BEDROCK_URL: url });
const begin = async ({ agent }: V2Editor, cwd = system.cwd) =>
  (await agent.request("session/new", { cwd })).sessionId;
const prompt = async ({ agent }: V2Editor, sessionId: string, words: string) =>
  (await agent.request("session/prompt", { sessionId, prompt: [{ type: "text", text: words }] })).messageId;
const allow = async ({ questions }: V2Editor, place = 0): Promise<void> => {
  await eventually(() => expect(questions.length).toBeGreaterThan(place));
  questions[place]?.answer("approve");
};
const until = ({ states }: V2Editor, last: string) => eventually(() => expect(states().at(-1)).toBe(last));

test("a prompt is answered when it is in the conversation; its state says how it goes on", async () => {
  const editor = await open();
  expect(editor.protocolVersion).toBe(2);
  const id = await begin(editor);
  const held = hold();
  const tag = script(
    say(text("I ", held, "look."), toolCall("bash", { command: "echo seen" })),
    say(text("Done.")),
  );
  const messageId = await prompt(editor, id, `Go. ${tag}`);
  await eventually(() => expect(editor.said()).toBe("I "));
  expect(editor.updates("user_message").map((message) => message.messageId)).toEqual([messageId]);
  expect(editor.states().at(-1)).toBe("running");
  held.release();
  await until(editor, "idle: end_turn");
  expect(editor.said()).toBe("I look.Done.");
  const calls = editor.updates("tool_call_update");
  expect(calls[0]).toMatchObject({ title: "echo seen", kind: "execute", name: "bash" });
  expect(calls.at(-1)).toMatchObject({
    toolCallId: calls[0]?.toolCallId,
    status: "completed",
    content: [{ type: "content", content: { text: expect.stringContaining("seen") as string } }],
  });
  expect((await person.messages(id))[0]?.id).toBe(messageId);
});

test("an approval requires action; allowed, its changes come as a patch that git applies", async () => {
  const editor = await open();
  const cwd = mkdtempSync(join(system.cwd, "patched-"));
  const id = await begin(editor, cwd);
  const before = "Hello\nyou\n";
  writeFileSync(join(cwd, "greeting.txt"), before);
  const tag = script(
    say(toolCall("read", { path: "greeting.txt" })),
    asks("To greet."),
    say(
      toolCall("edit", { path: "greeting.txt", oldText: "you", newText: "world" }),
      toolCall("write", { path: "new.txt", content: "new\n" }),
    ),
    say(text("Done.")),
  );
  await prompt(editor, id, `Go. ${tag}`);
  await until(editor, "requires_action");
  expect(editor.questions[0]?.title).toContain("To greet.");
  expect(editor.questions[0]?.options.map(({ kind }) => kind)).toEqual(["reject_once", "allow_once"]);
  await allow(editor);
  await until(editor, "idle: end_turn");
  expect(editor.states()).toEqual(["running", "requires_action", "running", "idle: end_turn"]);
  expect(editor.updates("config_option_update").at(-1)?.configOptions).toMatchObject([
    { configId: "mode", currentValue: "unrestricted" },
  ]);
  const diffs = editor
    .updates("tool_call_update")
    .flatMap(({ content }) => content ?? [])
    .filter(ToolCallContent.isDiff);
  expect(diffs.flatMap(({ changes }) => changes)).toEqual([
    { operation: "modify", path: join(cwd, "greeting.txt") },
    { operation: "add", path: join(cwd, "new.txt") },
  ]);
  // The patches have absolute paths: applied to the file as it was, they make it what it is.
  const elsewhere = mkdtempSync(join(system.cwd, "applied-"));
  writeFileSync(join(elsewhere, "greeting.txt"), before);
  const levels = 1 + cwd.split("/").length - 1;
  for (const { patch } of diffs)
    execFileSync("git", ["apply", `-p${levels}`, "-"], { cwd: elsewhere, input: patch?.text ?? "" });
  for (const name of ["greeting.txt", "new.txt"])
    expect(readFileSync(join(elsewhere, name), "utf8")).toBe(readFileSync(join(cwd, name), "utf8"));
});

test("a bridge that is killed stops nothing; resumed from the start, everything is told before the answer, and the approval is asked once", async () => {
  const editor = await open();
  const id = await begin(editor);
  const held = hold();
  const tag = script(
    say(text("I ", held, "look."), toolCall("ls", { path: "." })),
    asks(),
    say(text("Thanks.")),
  );
  await prompt(editor, id, `Go. ${tag}`);
  await eventually(() => expect(editor.said()).toBe("I "));
  await editor.kill();
  held.release();
  await eventually(async () =>
    expect((await person.conversation(id))["state"]).toMatchObject({ kind: "awaiting_mode_approval" }),
  );

  const again = await open();
  const params = { sessionId: id, cwd: system.cwd };
  const { configOptions } = await again.agent.request("session/resume", {
    ...params,
    replayFrom: { type: "start" },
  });
  expect(configOptions).toMatchObject([{ currentValue: "restricted" }]);
  expect(again.said()).toBe("I look.I ask.");
  expect(again.updates("user_message")).toHaveLength(1);
  expect(again.states()).toEqual(["requires_action"]);

  // One that asks for nothing that was said learns what the agent does now.
  const other = await open();
  await other.agent.request("session/resume", params);
  expect(other.said()).toBe("");
  expect(other.states()).toEqual(["requires_action"]);

  await allow(again);
  await eventually(() => expect(again.said()).toBe("I look.I ask.Thanks."));
  await eventually(() => expect(other.said()).toBe("Thanks."));
  await until(other, "idle: end_turn");
  expect(again.questions).toHaveLength(1);
  expect(other.questions[0]?.isTakenBack()).toBe(true);
});

test("cancel stops the process tree; a prompt that waits is in the conversation then", async () => {
  const editor = await open();
  const id = await begin(editor);
  const { file, command } = longCommand(system.cwd);
  await prompt(editor, id, `Go. ${script(asks(), say(toolCall("bash", { command })))}`);
  await allow(editor);
  const pid = await pidIn(file);
  const joins = prompt(editor, id, "And this.");
  await eventually(async () => expect((await person.conversation(id))["queue"]).toHaveLength(1));
  await editor.agent.notify("session/cancel", { sessionId: id });
  await until(editor, "idle: cancelled");
  expect(isDead(pid)).toBe(true);
  const messageId = await joins;
  expect((await person.messages(id)).map((message) => message.id)).toContain(messageId);
});

test("a prompt that is taken back before it is in the conversation is answered as cancelled", async () => {
  const editor = await open();
  const id = await begin(editor);
  const held = hold();
  await prompt(editor, id, `Go. ${script(say(text("I ", held, "look.")))}`);
  await eventually(() => expect(editor.said()).toBe("I "));
  const joins = expect(prompt(editor, id, "And this.")).rejects.toMatchObject({ code: -32_800 });
  const queued = await eventually(async () => {
    const [first] = (await person.conversation(id))["queue"] as readonly { readonly messageId: string }[];
    return first?.messageId ?? expect.fail("Nothing waits.");
  });
  await person.order("DELETE", at(id, `/queue/${queued}`), undefined, 204);
  await joins;
  held.release();
  await until(editor, "idle: end_turn");
});

test("closing a session stops its work before it is answered, in both versions", async () => {
  const second = await open();
  const first = await openEditor({ BEDROCK_URL: url });
  const inFirst = (await first.agent.request("session/new", { cwd: system.cwd, mcpServers: [] })).sessionId;
  const inSecond = await begin(second);
  const commands = [longCommand(system.cwd), longCommand(system.cwd)] as const;
  const scripts = commands.map(({ command }) => script(asks(), say(toolCall("bash", { command }))));
  const ended = first.agent.request("session/prompt", {
    sessionId: inFirst,
    prompt: [{ type: "text", text: `Go. ${scripts[0] ?? ""}` }],
  });
  await eventually(() => expect(first.questions).toHaveLength(1));
  first.questions[0]?.answer("approve");
  await prompt(second, inSecond, `Go. ${scripts[1] ?? ""}`);
  await allow(second);
  const pids = [await pidIn(commands[0].file), await pidIn(commands[1].file)];

  await first.agent.request("session/close", { sessionId: inFirst });
  expect(await ended).toEqual({ stopReason: "cancelled" });
  await second.agent.request("session/close", { sessionId: inSecond });
  expect(second.states().at(-1)).toBe("idle: cancelled");
  expect(pids.map(isDead)).toEqual([true, true]);
  await expect(prompt(second, inSecond, "Closed.")).rejects.toThrow("not open");
});

test("the mode is an option: back to Restricted at any time, out of it only by an approval", async () => {
  const editor = await open();
  const id = await begin(editor);
  const choose = (value: string) =>
    editor.agent.request("session/set_config_option", { sessionId: id, configId: "mode", type: "id", value });
  await expect(choose("unrestricted")).rejects.toThrow("Only an approval");
  await prompt(editor, id, `Go. ${script(asks(), say(text("Thanks.")))}`);
  await allow(editor);
  await until(editor, "idle: end_turn");
  expect((await choose("restricted")).configOptions).toMatchObject([{ currentValue: "restricted" }]);
});

test("an editor of a later version gets this one; sessions are listed and deleted", async () => {
  const editor = await openV2Editor({ BEDROCK_URL: url }, 7);
  expect(editor.protocolVersion).toBe(2);
  const id = await begin(editor);
  const { sessions } = await editor.agent.request("session/list", { cwd: system.cwd });
  expect(sessions.map(({ sessionId }) => sessionId)).toContain(id);
  await editor.agent.request("session/delete", { sessionId: id });
  await expect(prompt(editor, id, "Deleted.")).rejects.toThrow("not open");
});
