/**
 * REQ-BED-014 to 017, REQ-BASH-008, REQ-PATCH-009 in the running system: a conversation begins Restricted. Only the
 * person can make it Unrestricted, and can take that back at any time.
 */
import { randomUUID } from "node:crypto";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { say, toolCall, type MessageAnswer } from "../../local/scripted/script.ts";
import { hostSandbox } from "../support/host-sandbox.ts";
import { decideUpgradeSignal } from "../../protocol/workflow.ts";
import { TestConversation, textOf } from "../support/conversation.ts";
import { startSystem } from "../support/system.ts";
import { startWorkerProcess } from "../support/worker-process.ts";
import { until } from "../support/waiting.ts";
import { bodyOf, startApiOn } from "./support.ts";

const { available, reason } = await hostSandbox();
if (!available) console.warn(`SKIPPED, Restricted mode: ${reason ?? ""}`);

const touch = (name: string) => toolCall("bash", { command: `touch ${name}` });
const upgrade = (id: string) => toolCall("request_mode_upgrade", { reason: "to build a shed" }, id);
/** Brings a conversation to its request for an upgrade; the call after it in the same round creates a file. */
async function asking(conversation: TestConversation, ...answers: readonly MessageAnswer[]) {
  const name = randomUUID();
  // A call's id is never used twice.
  const id = `toolu_${name.replaceAll("-", "")}`;
  const { model } = conversation.system;
  await conversation.send(`go ${model.script(name, [say(upgrade(id), touch(name)), ...answers])}`);
  return { name, id, state: await conversation.untilState("awaiting_mode_approval") };
}

describe.skipIf(!available)("Restricted mode", async () => {
  const system = await startSystem();
  const { send } = startApiOn(system);

  /** Creates a conversation through the API, as a person does. */
  async function create(): Promise<TestConversation> {
    const body = await bodyOf(await send("POST", "/api/conversations", { cwd: system.cwd }));
    expect(body).toMatchObject({ mode: "restricted", sandbox: { kind: "available" } });
    return new TestConversation(system, String(body["id"]));
  }

  const decide = (conversation: TestConversation, toolCallId: string, decision: "approve" | "deny") =>
    send("POST", `/api/conversations/${conversation.id}/approval`, { decision, toolCallId });

  const outcomes = async (conversation: TestConversation) =>
    (await conversation.results()).map((result) => ({ status: result.status, text: textOf(result) }));

  test("tools read and do not write, and each says why", async () => {
    const conversation = await create();
    const name = randomUUID();
    const [touched, written] = [`${name}.touched`, `${name}.written`];
    const [edited, patched] = [`${name}.edited`, `${name}.patched`];
    writeFileSync(join(system.cwd, edited), "old");
    /** The files of this test, with their contents. */
    const files = () =>
      Object.fromEntries(
        readdirSync(system.cwd)
          .filter((file) => file.startsWith(name))
          .map((file) => [file, readFileSync(join(system.cwd, file), "utf8")]),
      );
    const writing = () => [
      touch(touched),
      toolCall("write", { path: written, content: "x" }),
      toolCall("edit", { path: edited, oldText: "old", newText: "new" }),
      toolCall("patch", { path: patched, edits: [{ operation: "overwrite", content: "x" }] }),
    ];
    const calls = [
      ...writing(),
      toolCall("read", { path: "/etc/hostname" }),
      toolCall("bash", { command: "head -c 3 /etc/hostname > /dev/null && ls / > /dev/null && echo seen" }),
      toolCall("find", { pattern: "*" }),
      toolCall("read", { path: "/proc/self/environ" }),
      toolCall("grep", { pattern: "ANTHROPIC", path: "/proc/self/environ" }),
    ];
    const id = `toolu_${name.replaceAll("-", "")}`;
    const answers = [say(...calls), say("I see."), say(upgrade(id), ...writing()), say("There.")];
    await conversation.send(`go ${system.model.script(name, answers)}`);
    await conversation.untilState("idle");
    const [bash, write, edit, patch, read, look, find, environ, grep] = await outcomes(conversation);
    // The kernel's error, once: the command was neither retried nor worked around.
    expect(bash).toEqual({
      status: "failed",
      text: expect.stringMatching(/^touch: .*Permission denied\n\[exit code 1\]$/) as string,
    });
    for (const [tool, result] of Object.entries({ Write: write, Edit: edit, Patch: patch })) {
      expect(result).toEqual({
        status: "failed",
        text: `${tool} tool is disabled in Restricted mode. Use request_mode_upgrade to request write access.`,
      });
    }
    expect([read?.status, look, find?.status]).toEqual([
      "completed",
      { status: "completed", text: "seen\n" },
      "completed",
    ]);
    expect([environ?.status, grep?.status]).toEqual(["failed", "failed"]);
    expect(files()).toEqual({ [edited]: "old" });

    // The same calls do write when the person has approved: nothing but the mode kept them from it.
    await conversation.send("Then ask.");
    await conversation.untilState("awaiting_mode_approval");
    await decide(conversation, id, "approve");
    await conversation.untilState("idle");
    expect((await outcomes(conversation)).slice(-4).map(({ status }) => status)).toEqual(
      new Array(4).fill("completed"),
    );
    expect(files()).toEqual({ [touched]: "", [written]: "x", [edited]: "new", [patched]: "x" });
  });

  test("an approval makes it Unrestricted, the rest of the round goes on, and the model reads of it", async () => {
    const conversation = await create();
    const { name, id, state } = await asking(conversation, say("Built."), say("Bye."));
    expect(state).toMatchObject({ reason: "to build a shed" });
    expect(existsSync(join(system.cwd, name))).toBe(false);
    expect((await decide(conversation, id, "approve")).status).toBe(202);
    await conversation.untilState("idle");
    expect((await outcomes(conversation)).map(({ status }) => status)).toEqual(["completed", "completed"]);
    expect(existsSync(join(system.cwd, name))).toBe(true);
    expect(JSON.stringify(system.model.requestsOf(name)[1]?.json)).toMatch(
      /now in Unrestricted mode: bash runs without/,
    );

    // A downgrade is possible at any time.
    await send("POST", `/api/conversations/${conversation.id}/mode`, { mode: "restricted" });
    expect((await conversation.stored()).conversation.mode).toBe("restricted");
    await conversation.send("And now?");
    await conversation.until(
      ({ conversation: { state, sequence } }) => state.kind === "idle" && sequence > 8,
    );
    const requests = system.model.requestsOf(name).map(({ body }) => body);
    expect(JSON.stringify(requests[2])).toMatch(/switched the conversation to Restricted mode/);
    expect(JSON.stringify(requests[0]?.system)).toContain("This conversation began in Restricted mode.");
    // REQ-BED-017: tools and system prompt stay the same throughout, byte for byte.
    const fixed = requests.map(({ tools, system: prompt }) => JSON.stringify([tools, prompt]));
    expect(new Set(fixed).size).toBe(1);
  });

  test("REQ-BED-021: a conversation that continues an Unrestricted one is Restricted again", async () => {
    const conversation = await create();
    const { id } = await asking(conversation, say("Built."), say("In short."));
    await decide(conversation, id, "approve");
    await conversation.untilState("idle");
    expect((await conversation.stored()).conversation.mode).toBe("unrestricted");
    await conversation.windUp();
    await conversation.untilState("context_exhausted");
    const continuedFrom = { id: conversation.id, seed: true };
    const next = await bodyOf(await send("POST", "/api/conversations", { continuedFrom }));
    expect(next).toMatchObject({ mode: "restricted", continuedFrom: conversation.id });
  });

  test("a denial is the result of the call, and the conversation stays Restricted", async () => {
    const conversation = await create();
    const { name, id } = await asking(conversation, say("A pity."));
    await decide(conversation, id, "deny");
    await conversation.untilState("idle");
    const [denied, touched] = await outcomes(conversation);
    expect(denied?.text).toMatch(/The user denied the upgrade/);
    expect(touched?.status).toBe("failed");
    expect((await conversation.stored()).conversation.mode).toBe("restricted");
    expect(existsSync(join(system.cwd, name))).toBe(false);
  });

  test("a Stop while an approval is awaited ends in idle, with the call cancelled", async () => {
    const conversation = await create();
    const { id } = await asking(conversation, say("So what?"));
    await conversation.cancel();
    await conversation.untilState("idle");
    expect((await outcomes(conversation)).map(({ status }) => status)).toEqual(["cancelled", "skipped"]);
    expect((await decide(conversation, id, "approve")).status).toBe(409);
    expect((await conversation.stored()).conversation.mode).toBe("restricted");
  });

  test("a second request after an approval is answered as already Unrestricted", async () => {
    const conversation = await create();
    const again = randomUUID().replaceAll("-", "");
    const { id } = await asking(conversation, say(upgrade(`toolu_${again}`)), say("Built."));
    await decide(conversation, id, "approve");
    await conversation.untilState("idle");
    expect((await outcomes(conversation)).at(-1)).toEqual({
      status: "failed",
      text: "Already in Unrestricted mode",
    });
  });

  test("a downgrade leaves a running command alone, and holds for the next", async () => {
    const conversation = await create();
    const [running, next] = [randomUUID(), randomUUID()];
    const patient = toolCall("bash", {
      command: `touch ${running}; until [ -e ${running}.go ]; do sleep 0.02; done; touch ${running}.done`,
    });
    const write = toolCall("patch", { path: next, edits: [{ operation: "overwrite", content: "x" }] });
    const { id } = await asking(conversation, say(patient, touch(next), write), say("Done."));
    await decide(conversation, id, "approve");
    await until(() => existsSync(join(system.cwd, running)));
    const answer = await send("POST", `/api/conversations/${conversation.id}/mode`, { mode: "restricted" });
    expect(answer.status).toBe(202);
    writeFileSync(join(system.cwd, `${running}.go`), "");
    await conversation.untilState("idle");
    expect((await outcomes(conversation)).slice(2).map(({ status, text }) => [status, text])).toEqual([
      ["completed", "(no output)"],
      ["failed", expect.stringMatching(/Permission denied/) as string],
      ["failed", expect.stringMatching(/^Patch tool is disabled/) as string],
    ]);
    expect(existsSync(join(system.cwd, `${running}.done`))).toBe(true);
    expect(existsSync(join(system.cwd, next))).toBe(false);
  });

  test("an operator may decide by a signal", async () => {
    const conversation = await create();
    const { name, id } = await asking(conversation, say("Built."));
    await conversation.handle.signal(decideUpgradeSignal, { decision: "approve", toolCallId: id });
    await conversation.untilState("idle");
    expect(existsSync(join(system.cwd, name))).toBe(true);
  });
});

test.skipIf(!available)(
  "a pending question survives the death of the worker, and the answer counts all the same",
  async () => {
    const system = await startSystem({ workers: 0 });
    const { send } = startApiOn(system);
    const first = await startWorkerProcess(system);
    const made = await bodyOf(await send("POST", "/api/conversations", { cwd: system.cwd }));
    const conversation = new TestConversation(system, String(made["id"]));
    const { name, id } = await asking(conversation, say("Built."));
    first.signal("SIGKILL");
    await first.exited;
    await system.startWorker();
    const answer = await send("POST", `/api/conversations/${conversation.id}/approval`, {
      decision: "approve",
      toolCallId: id,
    });
    expect(answer.status).toBe(202);
    await conversation.untilState("idle");
    expect(existsSync(join(system.cwd, name))).toBe(true);
    expect(await conversation.types()).toEqual([
      "user",
      "agent",
      "tool",
      "system",
      "tool",
      "agent",
      "run_stop",
    ]);
  },
);
