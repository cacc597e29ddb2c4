/**
 * REQ-BASH-009, REQ-BED-014: a host whose kernel does not enforce anything has no Restricted mode, and says so to
 * everybody; a Restricted conversation that meets one runs nothing there.
 */
import { existsSync } from "node:fs";
import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { say, toolCall } from "../../local/scripted/script.ts";
import { sandboxOfHost } from "../../sandbox/host.ts";
import { TestConversation, textOf } from "../support/conversation.ts";
import { startSystem } from "../support/system.ts";
import { withoutLandlock } from "../support/without-landlock.ts";
import { startWorkerProcess } from "../support/worker-process.ts";
import { bodyOf, problemOf, startApiOn } from "./support.ts";

const { available, reason } = await sandboxOfHost();
if (!available) console.warn(`SKIPPED, a host that loses its sandbox: ${reason ?? ""}`);

const NEEDS = /Landlock.*Linux 5\.13/;

describe("a host without Landlock", async () => {
  const system = await startSystem({ workers: 0 });
  const { get, send } = startApiOn(system);

  test("everything is Unrestricted, and everybody is told", async () => {
    const worker = await startWorkerProcess(system, {}, withoutLandlock());
    await expect
      .poll(worker.complaints)
      .toMatch(/Warning: every conversation is Unrestricted here\..*Landlock/);

    const made = await bodyOf(await send("POST", "/api/conversations", { cwd: system.cwd }));
    const sandbox = { available: false, abi: null, reason: expect.stringMatching(NEEDS) as string };
    expect(made).toMatchObject({ mode: "unrestricted", sandbox });
    expect(await bodyOf(await get("/healthz"))).toEqual({ status: "ok", sandbox });

    const id = String(made["id"]);
    const refused = await problemOf(
      await send("POST", `/api/conversations/${id}/mode`, { mode: "restricted" }),
    );
    expect(refused).toMatchObject({
      status: 409,
      code: "sandbox_unavailable",
      detail: expect.stringMatching(NEEDS) as string,
    });

    const conversation = new TestConversation(system, id);
    const calls = [
      toolCall("bash", { command: "echo made > made" }),
      toolCall("bash", { command: "echo made > unmade; git push --force" }),
      toolCall("request_mode_upgrade", { reason: "to be sure" }),
    ];
    await conversation.send(`go ${system.model.script(randomUUID(), [say(...calls), say("Done.")])}`);
    await conversation.untilState("idle");
    const results = (await conversation.results()).map((result) => [result.status, textOf(result)]);
    expect(results).toEqual([
      ["completed", "(no output)"],
      ["failed", expect.stringMatching(/^Not run, none of it/) as string],
      ["failed", "Already in Unrestricted mode"],
    ]);
    expect(existsSync(join(system.cwd, "made"))).toBe(true);
    expect(existsSync(join(system.cwd, "unmade"))).toBe(false);
  });
});

describe.skipIf(!available)("a host that loses its sandbox", async () => {
  const system = await startSystem({ workers: 0 });
  const { send } = startApiOn(system);

  test("runs nothing in a Restricted conversation, until the person approves", async () => {
    const first = await startWorkerProcess(system);
    const made = await bodyOf(await send("POST", "/api/conversations", { cwd: system.cwd }));
    expect(made).toMatchObject({ mode: "restricted" });
    first.signal("SIGKILL");
    await first.exited;
    await startWorkerProcess(system, {}, withoutLandlock());

    const conversation = new TestConversation(system, String(made["id"]));
    const name = randomUUID();
    const id = `toolu_${name.replaceAll("-", "")}`;
    const touch = toolCall("bash", { command: "touch made; echo ran" });
    const round = say(
      touch,
      toolCall("grep", { pattern: "x" }),
      toolCall("write", { path: "made", content: "x" }),
      toolCall("request_mode_upgrade", { reason: "nothing runs here" }, id),
    );
    await conversation.send(`go ${system.model.script(name, [round, say(touch), say("Done.")])}`);
    await conversation.untilState("awaiting_mode_approval");
    expect(existsSync(join(system.cwd, "made"))).toBe(false);
    await send("POST", `/api/conversations/${conversation.id}/approval`, {
      decision: "approve",
      toolCallId: id,
    });
    await conversation.untilState("idle");
    const results = (await conversation.results()).map((result) => [result.status, textOf(result)]);
    expect(results).toEqual([
      [
        "failed",
        expect.stringMatching(/^Sandbox unavailable: the command was not run\..*Landlock/) as string,
      ],
      ["failed", expect.stringMatching(/^Sandbox unavailable/) as string],
      ["failed", expect.stringMatching(/^Write tool is disabled/) as string],
      ["completed", expect.stringMatching(/approved/) as string],
      ["completed", "ran\n"],
    ]);
  });
});
