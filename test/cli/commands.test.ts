/** The commands of `bedrock` beside `run`: each against the real API (docs/command-line.md). */
import { randomUUID } from "node:crypto";
import { describe, expect, test, vi } from "vitest";
import { hold } from "../../local/scripted/cues.ts";
import { fail, say, text, toolCall, type Answer } from "../../local/scripted/script.ts";
import { at, Person } from "../api/person.ts";
import { serveApi, startApiOn } from "../api/support.ts";
import { startSystem } from "../support/system.ts";
import { bedrock, idIn, run, type Options } from "./support.ts";

const system = await startSystem();
const api = startApiOn(system);
const { url } = await serveApi(api);
const person = new Person(api, system.cwd);
const here: Options = { url, cwd: system.cwd };

const script = (...answers: readonly Answer[]): string => system.model.script(randomUUID(), [...answers]);
const untilState = (id: string, kind: string) =>
  vi.waitFor(async () => expect(await person.stateOf(id)).toBe(kind), 20_000);
const asks = () => say(text("I ask."), toolCall("request_mode_upgrade", { reason: "To write." }));

describe("what is done to conversations", () => {
  test("new prints the id; list shows it; a message to it is sent without waiting; export has all of it", async () => {
    const made = await run(["new", "--title", "Fix it"], here);
    const id = made.stdout.trim();
    expect(await person.conversation(id)).toMatchObject({ title: "Fix it", cwd: system.cwd });
    const { stdout } = await run(["list"], here);
    expect(stdout).toMatch(new RegExp(`^${id.slice(0, 13)} .* ready .*Fix it`, "m"));

    const tag = script(say(text("See:"), toolCall("bash", { command: "echo '```'" })), say(text("Done.")));
    expect((await run(["send", id.slice(0, 13), "Go on.", tag], here)).code).toBe(0);
    await vi.waitFor(async () => expect((await person.messages(id)).at(-1)?.type).toBe("run_stop"), 20_000);

    const exported = (await run(["export", id, "--md"], here)).stdout;
    expect(exported).toMatch(/^# Fix it\n/);
    expect(exported).toMatch(/## You\n\nGo on\.[^]*See:[^]*\*\*bash\*\* \(completed\)[^]*Done\./);
    // A fence in the output does not end that of the document.
    expect(exported).toMatch(/````\n```\n````/);
    const json = JSON.parse((await run(["export", id, "--json"], here)).stdout) as { messages: unknown[] };
    expect(json.messages).toEqual(await person.messages(id));

    const cycles = JSON.parse((await run(["cycles", id, "--json"], here)).stdout) as object;
    expect(cycles).toEqual(await person.read(`/api/conversations/${id}/cycles?view=steps`));
    expect((await run(["cycles", id], here)).stdout).toContain("echo");

    const [root] = await person.messages(id);
    const trace = (await run(["trace", id], here)).stdout;
    expect(trace).toMatch(/^\d+ % of \d.* went to .*\.\n\n *\d+ % +[\d.]+ s  /);
    expect(trace).toMatch(/^bash +[\d.]+ s \| *█+ *\| completed$/m);
    const asJson = (await run(["trace", id, "--cycle", root?.id ?? "", "--json"], here)).stdout;
    const read = (await person.read(`/api/conversations/${id}/cycles/${root?.id ?? ""}/trace`)) as object;
    expect(JSON.parse(asJson)).toMatchObject({ cycleId: root?.id, reason: "completed" });
    expect(Object.keys(JSON.parse(asJson) as object)).toEqual(Object.keys(read));
  });

  test("cancel stops and holds what waits, release lets it go on", async () => {
    const tag = script(say(text("Well", hold())), say(text("Now.")));
    const id = await person.create({ message: { text: `Go. ${tag}` } });
    await untilState(id, "llm_requesting");
    const later = ["send", id, "--delivery", "followUp", "Later."];
    expect((await run(later, here)).code).toBe(0);
    const stopped = await run(["cancel", id, "--json"], here);
    expect(JSON.parse(stopped.stdout)).toMatchObject({ next: null });
    await untilState(id, "idle");
    expect(await person.conversation(id)).toMatchObject({ queueHeld: expect.anything() as unknown });
    expect((await run(["release", id], here)).code).toBe(0);
    await vi.waitFor(async () => expect(JSON.stringify(await person.messages(id))).toContain("Now."), 20_000);
  });

  test("approve and deny say what they did; where nothing waits, they say so", async () => {
    const id = await person.create({ message: { text: `Go. ${script(asks(), say(text("Thanks.")))}` } });
    await untilState(id, "awaiting_mode_approval");
    expect(await run(["approve", id], here)).toMatchObject({
      code: 0,
      stderr: expect.stringContaining("Allowed: To write.") as string,
    });
    await untilState(id, "idle");
    const again = await run(["deny", id], here);
    expect(again).toMatchObject({ code: 64, stderr: expect.stringContaining("no approval") as string });

    expect((await run(["mode", id, "restricted"], here)).code).toBe(0);
    expect((await person.conversation(id))["mode"]).toBe("restricted");
    expect((await run(["mode", id, "unrestricted"], here)).code).toBe(64);
  });

  test("wrap-up writes a summary, and new --continue goes on from it", async () => {
    const id = await person.create({
      message: { text: `Go. ${script(say(text("Well.")), say(text("The summary.")))}` },
    });
    await vi.waitFor(async () => expect((await person.messages(id)).at(-1)?.type).toBe("run_stop"), 20_000);
    expect((await run(["wrap-up", id], here)).code).toBe(0);
    await untilState(id, "context_exhausted");
    const next = (await run(["new", "--continue", id], here)).stdout.trim();
    expect((await person.conversation(next))["continuedFrom"]).toBe(id);
    expect(JSON.stringify(await person.messages(next))).toContain("The summary.");
  });

  test("help has examples and the exit codes", async () => {
    const { code, stdout } = await run(["--help"], here);
    expect(code).toBe(0);
    expect(stdout).toMatch(/Examples:[^]*Exit codes: 0 done/);
    // It is for the scripts of shells.
    expect(stdout).not.toMatch(/^ +complete\b/m);
  });
});

describe("chat", () => {
  test("on a terminal: lines are messages, orders begin with a slash, and nothing that is typed as a message approves", async () => {
    const chatting = bedrock(["chat"], { ...here, isTerminal: true });
    await chatting.shows("/help says");
    chatting.type(`Go. ${script(asks(), say(text("Thanks.")))}\r`);
    await chatting.shows("/approve or /deny");
    const [id = ""] = /[0-9a-f]{32}/.exec(chatting.stdout()) ?? [];
    chatting.type("y\ryes\r");
    await vi.waitFor(async () => expect((await person.conversation(id))["queue"]).toHaveLength(2), 10_000);
    expect(await person.stateOf(id)).toBe("awaiting_mode_approval");
    chatting.type("/approve\r");
    await chatting.shows("Thanks.");
    await untilState(id, "idle");
    chatting.type("/nonsense\r");
    await chatting.shows("There is no /nonsense");
    chatting.type("/quit\r");
    expect((await chatting.ended).code).toBe(0);
  });

  test.for([
    ["NO_COLOR", { NO_COLOR: "1" }, /\x1b\[[\d;]*m/],
    ["TERM=dumb", { TERM: "dumb" }, /\x1b/],
  ] as const)("on a terminal with %s is plain, as are its questions", async ([, env, escapes]) => {
    const chatting = bedrock(["chat"], { ...here, env, isTerminal: true });
    await chatting.shows("/help says");
    chatting.type(`Go. ${script(asks(), say(text("Thanks.")))}\r`);
    await chatting.shows("/approve or /deny");
    chatting.type("/deny\r");
    await chatting.shows("Thanks.");
    chatting.type("/quit\r");
    const { code, stdout } = await chatting.ended;
    expect(code).toBe(0);
    expect(stdout).not.toMatch(escapes);
    expect(stdout).toMatch(/I ask\.[^]*Thanks\./);
  });

  test("on a terminal: Ctrl-C stops the run, and once more ends the chat", async () => {
    const chatting = bedrock(["chat"], { ...here, isTerminal: true });
    await chatting.shows("/help says");
    chatting.type(`Go. ${script(say(text("Well\n", hold())))}\r`);
    await chatting.shows("Well\r\n");
    chatting.type("\x03");
    await chatting.shows("stopped");
    chatting.type("\x03");
    expect((await chatting.ended).code).toBe(0);
  });

  test.for([
    [1, fail("invalid_request_error", { message: "No." })],
    [130, say(text("Well", hold()))],
  ] as const)("in a pipe: ends with %i where a run was not completed", async ([code, answer]) => {
    const chatting = bedrock(["chat"], here);
    chatting.type(`One. ${script(answer, say(text("Second.")))}\n`);
    if (code === 130) {
      await chatting.shows("Well");
      await person.order("POST", at(idIn(chatting.stderr()), "/cancel"), { queue: "hold" });
    }
    chatting.type("Two.\n");
    chatting.endInput();
    const ended = await chatting.ended;
    expect(ended.code, ended.stderr).toBe(code);
    expect(ended.stdout).toContain("Second.\n");
  });

  test("in a pipe: each line waits for the run before", async () => {
    const chatting = bedrock(["chat"], here);
    chatting.type(`One. ${script(say(text("First.")), say(text("Second.")))}\nTwo.\n`);
    chatting.endInput();
    expect(await chatting.ended).toMatchObject({ code: 0, stdout: "First.\nSecond.\n" });
  });
});
