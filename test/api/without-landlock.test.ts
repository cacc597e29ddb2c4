/**
 * REQ-BASH-009, REQ-BED-014: a host without Landlock has no Restricted mode, and its log, probes and API say so. A
 * Restricted conversation runs nothing on such a host.
 */
import { existsSync } from "node:fs";
import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { say, toolCall } from "../../local/scripted/script.ts";
import { hostSandbox } from "../support/host-sandbox.ts";
import { TestConversation, textOf } from "../support/conversation.ts";
import { spawnFamily } from "../support/family.ts";
import { startSystem } from "../support/system.ts";
import { withoutLandlock } from "../support/without-landlock.ts";
import { startWorkerProcess } from "../support/worker-process.ts";
import { bodyOf, problemOf, startApiOn } from "./support.ts";

const { available, reason } = await hostSandbox();
if (!available) console.warn(`SKIPPED, a host that loses its sandbox: ${reason ?? ""}`);

const submitted = toolCall("submit_result", { result: "done" });
const NEEDS = /Landlock.*Linux 5\.13/;

describe("a host without Landlock", async () => {
  const system = await startSystem({ workers: 0, hasSandbox: false });
  const { get, send } = startApiOn(system);

  test("makes every conversation Unrestricted, and log, probes and API say why", async () => {
    const worker = await startWorkerProcess(system, {}, withoutLandlock());
    await expect.poll(worker.output).toMatch(/Every conversation is Unrestricted here\..*Landlock/);

    const made = await bodyOf(await send("POST", "/api/conversations", { cwd: system.cwd }));
    const sandbox = { kind: "unavailable", reason: expect.stringMatching(NEEDS) as string };
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
    const script = randomUUID();
    await conversation.send(`go ${system.model.script(script, [say(...calls), say("Done.")])}`);
    await conversation.untilState("idle");
    const results = (await conversation.results()).map((result) => [result.status, textOf(result)]);
    expect(results).toEqual([
      ["completed", "(no output)"],
      ["failed", expect.stringMatching(/^Not run, none of it/) as string],
      ["failed", "Already in Unrestricted mode"],
    ]);
    expect(existsSync(join(system.cwd, "made"))).toBe(true);
    expect(existsSync(join(system.cwd, "unmade"))).toBe(false);
    expect(JSON.stringify(system.model.requestsOf(script)[0]?.body.system)).toContain(
      "This conversation began in Unrestricted mode.",
    );
  });

  test("REQ-BED-018: a sub-agent of an Unrestricted conversation is Unrestricted, for there is nothing else", async () => {
    const file = randomUUID();
    const touch = say(toolCall("bash", { command: `touch ${file}` }));
    const family = await spawnFamily(system, [{ script: [touch, say(submitted)] }]);
    await family.report();
    const [child] = await family.children();
    const { config, conversation } = (await child?.stored()) ?? {};
    expect([config?.sandbox.kind, conversation?.mode]).toEqual(["unavailable", "unrestricted"]);
    expect(existsSync(join(system.cwd, file))).toBe(true);
  });

  test("a sub-agent of a Restricted conversation does not get more rights than its parent", async () => {
    const file = randomUUID();
    const parent = await TestConversation.open(system, "restricted");
    const touch = say(toolCall("bash", { command: `touch ${file}` }));
    const family = await spawnFamily(system, [{ script: [touch, say(submitted)] }], { parent });
    await family.report();
    const [child] = await family.children();
    expect((await child?.stored())?.conversation.mode).toBe("restricted");
    expect(existsSync(join(system.cwd, file))).toBe(false);
    // The refusal does not send it to a tool that it lacks.
    const [refused] = (await child?.results()) ?? [];
    expect(textOf(refused)).toMatch(/^Sandbox unavailable.*say in your result/);
    const requests = system.model.requestsOf(family.names.children[0] ?? "");
    expect(JSON.stringify(requests.map(({ body }) => body))).not.toMatch(/request_mode_upgrade|spawn_agents/);
  });
});

describe.skipIf(!available)("a host that gets its sandbox back", async () => {
  const system = await startSystem({ workers: 0 });
  const { get, send } = startApiOn(system);

  test("gives Restricted mode back to new conversations, to one from before, and to its sub-agents", async () => {
    const first = await startWorkerProcess(system, {}, withoutLandlock());
    const made = await bodyOf(await send("POST", "/api/conversations", { cwd: system.cwd }));
    expect(made).toMatchObject({ mode: "unrestricted" });
    first.signal("SIGKILL");
    await first.exited;
    await startWorkerProcess(system);

    const another = await bodyOf(await send("POST", "/api/conversations", { cwd: system.cwd }));
    expect(another).toMatchObject({ mode: "restricted", sandbox: { kind: "available" } });
    const id = String(made["id"]);
    const parent = new TestConversation(system, id);
    const family = await spawnFamily(system, [{ script: [say(submitted)] }], { parent });
    await family.report();
    const [child] = await family.children();
    expect((await child?.stored())?.conversation.mode).toBe("restricted");
    await parent.untilState("idle");

    const changed = await send("POST", `/api/conversations/${id}/mode`, { mode: "restricted" });
    expect(changed.status).toBe(202);
    expect(await bodyOf(await get(`/api/conversations/${id}`))).toMatchObject({ mode: "restricted" });
  });
});

describe("a host that cannot find out whether it has a sandbox", async () => {
  const system = await startSystem({ workers: 0 });
  const { get, send } = startApiOn(system);
  const missing = join(system.cwd, "missing");
  // The second worker finds the bundle of the first one: to make it takes a TMPDIR.
  const DATA_DIR = join(system.cwd, "data");

  test("creates nothing, changes nothing, starts no sub-agent, and says why", async () => {
    const first = await startWorkerProcess(system, { DATA_DIR }, withoutLandlock());
    const made = await bodyOf(await send("POST", "/api/conversations", { cwd: system.cwd }));
    first.signal("SIGKILL");
    await first.exited;
    const untried = await startWorkerProcess(system, { DATA_DIR, TMPDIR: missing });
    await expect.poll(untried.output).toMatch(/No conversation can be created here.*could not be tried/);

    const refused = await problemOf(await send("POST", "/api/conversations", { cwd: system.cwd }));
    expect(refused).toMatchObject({ status: 503, code: "sandbox_unknown" });
    expect(refused.detail).toContain(missing);
    expect(await bodyOf(await get("/api/conversations"))).toMatchObject({
      conversations: [{ id: made["id"] }],
    });

    const id = String(made["id"]);
    const unchanged = await problemOf(
      await send("POST", `/api/conversations/${id}/mode`, { mode: "restricted" }),
    );
    expect(unchanged).toMatchObject({ status: 503, code: "sandbox_unknown" });
    expect(await bodyOf(await get(`/api/conversations/${id}`))).toMatchObject({ mode: "unrestricted" });

    const parent = new TestConversation(system, id);
    const family = await spawnFamily(system, [{ script: [say(submitted)] }], { parent });
    expect((await family.report()).text).toMatch(/Not started: the host could not find out/);
    expect(await family.children()).toEqual([]);
  });
});

describe.skipIf(!available)("a host that loses its sandbox", async () => {
  const system = await startSystem({ workers: 0 });
  const { send } = startApiOn(system);

  test("runs nothing in a Restricted conversation until the person approves", async () => {
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
