/** `bedrock run` and `attach`: how they end, what they print, who is asked (docs/command-line.md). */
import { randomUUID } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { newId } from "../../client/index.ts";
import { hold } from "../../local/scripted/cues.ts";
import { fail, say, text, toolCall, type Answer } from "../../local/scripted/script.ts";
import { at, Person } from "../api/person.ts";
import { serveApi, startApiOn } from "../api/support.ts";
import { familyOf, isDead, longCommand, pidIn } from "../support/processes.ts";
import { startSystem } from "../support/system.ts";
import { startProxy } from "../support/tcp-proxy.ts";
import { bedrock, idIn, linesOf, run, type Options, type Running } from "./support.ts";

const system = await startSystem();
const api = startApiOn(system);
const { url } = await serveApi(api);
const person = new Person(api, system.cwd);
const here: Options = { url, cwd: system.cwd };

const script = (...answers: readonly Answer[]): string => system.model.script(randomUUID(), [...answers]);
const asks = (reason = "I want to write."): Answer =>
  say(text("I ask."), toolCall("request_mode_upgrade", { reason }));
const approvalOf = async (id: string) => {
  const { state } = (await person.conversation(id)) as { state: { toolCall: { id: string } } };
  return state.toolCall.id;
};

/** What is typed in the first half second of a question does not count. A person's pause, not a wait for something. */
const untilItCounts = () => new Promise((resolve) => setTimeout(resolve, 600));

describe("the exit code", () => {
  test("is 0 when the run is completed, and standard output has the words alone", async () => {
    const tag = script(say(text("I look."), toolCall("bash", { command: "echo seen" })), say(text("Done.")));
    expect(await run(["run", "Look.", tag], here)).toEqual({
      code: 0,
      stdout: "I look.\nDone.\n",
      stderr: expect.stringMatching(/▸ echo seen\n {2}│ seen\n {2}✓/) as string,
    });
  });

  test("is 1 when the run has failed, with what happened", async () => {
    const { code, stderr } = await run(
      ["run", "Go.", script(fail("invalid_request_error", { message: "No." }))],
      here,
    );
    expect(code).toBe(1);
    expect(stderr).toMatch(/request/i);
  });

  test("is 2 without a terminal when the agent asks: nothing is asked, and the command that approves works", async () => {
    const ended = await run(["run", "Go.", script(asks("To write."), say(text("Thanks.")))], here);
    expect(ended.code).toBe(2);
    expect(ended.stderr).toContain("To write.");
    const [, command = ""] = /Allow it with: bedrock (.*)/.exec(ended.stderr) ?? [];
    const id = idIn(ended.stderr);
    expect(await person.stateOf(id)).toBe("awaiting_mode_approval");
    expect((await run(command.split(" "), here)).code).toBe(0);
    const followed = await run(["attach", id], here);
    expect(followed).toMatchObject({ code: 0, stdout: "I ask.\nThanks.\n" });
    expect((await person.conversation(id))["mode"]).toBe("unrestricted");
  });

  test("is 3 when the context is used up, and the command that goes on works", async () => {
    const tokens = { cache_read_input_tokens: 0, cache_creation_input_tokens: 0, output_tokens: 100 };
    const full = { ...say(text("Much.")), usage: { input_tokens: 950_000, ...tokens } };
    const filled = script(full, say(text("The summary.")));
    const ended = await run(["run", "Go.", filled], here);
    expect(ended.code).toBe(3);
    const [, command = ""] = /Go on with: bedrock (.*)/.exec(ended.stderr) ?? [];
    const made = await run(command.split(" "), here);
    expect(made.code).toBe(0);
    expect((await person.conversation(made.stdout.trim()))["continuedFrom"]).toBe(idIn(ended.stderr));
  });

  test.for([
    [["run"], /missing required argument/],
    [["run", "  "], /empty/],
    [["run", "x", "--on-approval=approve"], /Allowed choices are exit, deny, wait/],
    [["run", "x", "--cwd", "/does/not/exist"], /exist/i],
    [["attach", "ffffffffffffffffffffffffffffffff"], /conversation/i],
    [["attach", "abc"], /list/],
    [["nothing"], /unknown command/],
    [["approve", "--yes", "x"], /unknown option/],
    [["run", "--yes", "x"], /unknown option/],
    [["run", "x", "--timeout=0"], /seconds above 0/],
    [["run", "x", "--json", "--stream-json"], /cannot be used with/],
    [["run", "x", "--image", "/does/not/exist"], /image can not be read/],
    [["run", "x", "--image", "/dev/null"], /no PNG, JPEG, GIF or WebP/],
    [["attach", "x", "--after=-1"], /number of an event/],
  ] as const)("is 64 for %j, with what to do", async ([args, wanted]) => {
    const { code, stderr, stdout } = await run(args, here);
    expect(stderr).toMatch(wanted);
    expect(code).toBe(64);
    expect(stdout).toBe("");
    expect(stderr).not.toMatch(/^\s+at /m);
  });

  test("of attach is that of the last run, also after its last event", async () => {
    const failed = await run(
      ["run", "--json", "Go.", script(fail("invalid_request_error", { message: "No." }))],
      here,
    );
    const id = (JSON.parse(failed.stdout) as { conversationId: string }).conversationId;
    const done = await person.create({ message: { text: `Go. ${script(say(text("Done.")))}` } });
    await vi.waitFor(async () => expect((await person.messages(done)).at(-1)?.type).toBe("run_stop"), 20_000);
    for (const [each, code] of [
      [id, 1],
      [done, 0],
    ] as const) {
      const { lastEvent } = (await person.conversation(each)) as { lastEvent: number };
      for (const after of [[], ["--after", String(lastEvent)], ["--after", "0"]])
        for (const format of [[], ["--json"], ["--stream-json"]])
          expect((await run(["attach", ...after, ...format, each], here)).code).toBe(code);
    }
  });

  test("of attach is 64 where nothing has run yet", async () => {
    const id = await person.create();
    const { code, stderr } = await run(["attach", id], here);
    expect({ code, stderr }).toEqual({ code: 64, stderr: "Nothing has run in this conversation yet.\n" });
  });

  test.for([
    [{ BEDROCK_URL: "localhost:3000" }, /BEDROCK_URL is no address/],
    [{ BEDROCK_TOKEN_FILE: "/does/not/exist" }, /BEDROCK_TOKEN_FILE can not be read/],
    [{ BEDROCK_URL: "", PORT: "many" }, /HOST and PORT are no address/],
  ] as const)("is 64 with the settings %j, with what is wrong", async ([env, wanted]) => {
    const { code, stderr, stdout } = await run(["list"], { ...here, env });
    expect({ code, stdout }).toEqual({ code: 64, stdout: "" });
    expect(stderr).toMatch(wanted);
  });

  test("is 64 for the beginning of several ids, which are shown", async () => {
    const beginning = newId().slice(0, 20);
    const ids = await Promise.all(
      ["a", "b"].map((end) => person.create({ id: beginning + newId().slice(0, 11) + end })),
    );
    const { code, stderr } = await run(["attach", beginning], here);
    expect(code).toBe(64);
    expect(stderr).toContain(`Several ids begin with "${beginning}"`);
    for (const id of ids) expect(stderr).toContain(id);
    const [first = ""] = ids;
    expect((await run(["export", first.slice(0, 31), "--json"], here)).stdout).toContain(first);
  });

  test("is 1 where the agent is at work already, and its run goes on", async () => {
    const held = hold();
    const id = await person.create({ message: { text: `Go. ${script(say(text("Well", held, ".")))}` } });
    await vi.waitFor(async () => expect(await person.stateOf(id)).toBe("llm_requesting"), 10_000);
    const { code, stdout, stderr } = await run(["run", "-c", id, "Also."], here);
    expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
    expect(stderr).toMatch(/steer|followUp|stop/i);
    expect(await person.stateOf(id)).toBe("llm_requesting");
    held.release();
  });

  test("is 69 when no server answers, with what to do", async () => {
    const { code, stderr } = await run(["run", "x"], { ...here, url: "http://127.0.0.1:1" });
    expect(code).toBe(69);
    expect(stderr).toContain("Start it with: bedrock start");
  });

  test("is 77 when the server asks for a token; a file with it serves", async () => {
    const { url: guarded } = await serveApi(startApiOn(system, { apiToken: "the-right-token" }));
    const ended = await run(["run", "x"], { ...here, url: guarded, env: { BEDROCK_TOKEN: "wrong" } });
    expect(ended.code).toBe(77);
    expect(ended.stderr).toContain("BEDROCK_TOKEN");
    for (const args of [["list"], ["new"], ["chat"], ["acp"]])
      expect(await run(args, { ...here, url: guarded })).toEqual({
        code: 77,
        stdout: "",
        stderr: "The server asks for a token. Set BEDROCK_TOKEN or BEDROCK_TOKEN_FILE.\n",
      });
    const file = join(system.cwd, "token");
    writeFileSync(file, "the-right-token\n");
    const env = { BEDROCK_TOKEN_FILE: file };
    expect((await run(["run", "Go.", script(say(text("Hi.")))], { ...here, url: guarded, env })).code).toBe(
      0,
    );
  });

  test("is 124 when the time is over, and the run is stopped", async () => {
    const ended = await run(["run", "--timeout=1", "Go.", script(say(text("Well", hold())))], here);
    expect(ended.code).toBe(124);
    expect(ended.stdout).toBe("Well\n");
    expect(await person.stateOf(idIn(ended.stderr))).toBe("idle");
  });

  test("is 130 when another client has stopped the run", async () => {
    const running = bedrock(["run", "Go.", script(say(text("Well", hold())))], here);
    await running.shows("Well");
    const id = idIn(running.stderr());
    await person.order("POST", at(id, "/cancel"), { queue: "hold" });
    const { code, stderr } = await running.ended;
    expect(code).toBe(130);
    expect(stderr).toContain(`bedrock run -c ${id}`);
  });
});

describe("an approval", () => {
  test("is denied with --on-approval=deny, and the run goes on", async () => {
    const ended = await run(
      ["run", "--on-approval=deny", "Go.", script(asks(), say(text("Then not.")))],
      here,
    );
    expect(ended).toMatchObject({ code: 0, stdout: "I ask.\nThen not.\n" });
    expect((await person.conversation(idIn(ended.stderr)))["mode"]).toBe("restricted");
  });

  test("is waited for with --on-approval=wait, until another client decides", async () => {
    const running = bedrock(["run", "--on-approval=wait", "Go.", script(asks(), say(text("Thanks.")))], here);
    await running.shows("Allow it with");
    const id = idIn(running.stderr());
    const decision = { decision: "approve", toolCallId: await approvalOf(id) };
    await person.order("POST", at(id, "/approval"), decision);
    expect(await running.ended).toMatchObject({ code: 0, stdout: "I ask.\nThanks.\n" });
  });

  test("on a terminal is asked for with its reason; Enter alone denies", async () => {
    const running = bedrock(["run", "Go.", script(asks("To save it."), say(text("Then not.")))], {
      ...here,
      isTerminal: true,
    });
    await running.shows("Allow it? [y/N]");
    expect(running.stdout()).toContain("To save it.");
    const id = idIn(running.stdout());
    await untilItCounts();
    running.type("\r");
    expect((await running.ended).code).toBe(0);
    expect((await person.conversation(id))["mode"]).toBe("restricted");
  });

  test("on a terminal is not given by what was typed before the question; a later y gives it", async () => {
    const held = hold();
    const running = bedrock(
      [
        "run",
        "Go.",
        script(
          say(text("Well", held), toolCall("request_mode_upgrade", { reason: "To." })),
          say(text("Thanks.")),
        ),
      ],
      { ...here, isTerminal: true },
    );
    await running.shows("Well");
    const id = idIn(running.stdout());
    running.type("y\ry\ryes\r");
    held.release();
    await running.shows("Allow it? [y/N]");
    expect(await person.stateOf(id)).toBe("awaiting_mode_approval");
    await untilItCounts();
    expect(await person.stateOf(id)).toBe("awaiting_mode_approval");
    running.type("y\r");
    expect((await running.ended).code).toBe(0);
    expect((await person.conversation(id))["mode"]).toBe("unrestricted");
  });

  test("that somebody else gives closes the question", async () => {
    const running = bedrock(["run", "Go.", script(asks(), say(text("Thanks.")))], {
      ...here,
      isTerminal: true,
    });
    await running.shows("Allow it? [y/N]");
    const id = idIn(running.stdout());
    await person.order("POST", at(id, "/approval"), {
      decision: "approve",
      toolCallId: await approvalOf(id),
    });
    const { code, stdout } = await running.ended;
    expect(code).toBe(0);
    expect(stdout).toMatch(/Decided elsewhere\.[^]*Thanks\./);
  });
});

describe("output", () => {
  test("--json is one object", async () => {
    const { code, stdout } = await run(["run", "--json", "Go.", script(say(text("Hello.")))], here);
    expect(code).toBe(0);
    expect(stdout.trim().split("\n")).toHaveLength(1);
    expect(JSON.parse(stdout)).toMatchObject({
      outcome: "done",
      exitCode: 0,
      text: "Hello.",
      mode: "restricted",
      usage: { outputTokens: expect.any(Number) as number },
    });
  });

  const full = {
    ...say(text("Much.")),
    usage: {
      input_tokens: 950_000,
      cache_read_input_tokens: 0,
      cache_creation_input_tokens: 0,
      output_tokens: 100,
    },
  };
  test.for([
    [1, "failed", [], [fail("invalid_request_error", { message: "No." })]],
    [2, "waits", [], [asks()]],
    [3, "exhausted", [], [full, say(text("The summary."))]],
    [124, "cancelled", ["--timeout=1"], [say(text("Well", hold()))]],
    [124, "cancelled", ["--timeout=1", "--on-approval=wait"], [asks()]],
  ] as const)(
    "that ends with %i is one object with --json, and events alone with --stream-json",
    async ([exitCode, outcome, options, answers]) => {
      const ended = await run(["run", "--json", ...options, "Go.", script(...answers)], here);
      expect(ended.code).toBe(exitCode);
      expect(ended.stdout).toMatch(/^\{.*\}\n$/);
      expect(JSON.parse(ended.stdout)).toMatchObject({
        exitCode,
        outcome,
        conversationId: expect.stringMatching(/^[0-9a-f]{32}$/) as string,
      });
      const streamed = await run(["run", "--stream-json", ...options, "Go.", script(...answers)], here);
      expect(streamed.code).toBe(exitCode);
      for (const { event } of linesOf(streamed.stdout)) expect(event).toMatch(/^[a-z_.]+$/);
    },
  );

  test("--stream-json, killed and gone on with after its last number, has each durable event once", async () => {
    const held = hold();
    const tag = script(
      say(text("One."), toolCall("ls", { path: "." })),
      say(text("Two", held, ".")),
      say(text("Never.")),
    );
    const first = bedrock(["run", "--stream-json", "Go.", tag], here);
    await first.shows('"text":"Two"');
    first.kill("SIGKILL");
    const before = linesOf((await first.ended).stdout);
    const id = (before.find(({ event }) => event === "message.added")?.data as { cycleId: string }).cycleId;
    const conversation = (await person.read("/api/conversations"))["conversations"] as { id: string }[];
    const found = await Promise.all(
      conversation.map(async (each) => ({ each, messages: await person.messages(each.id) })),
    );
    const mine = found.find(({ messages }) => messages.some((message) => message.id === id))?.each.id ?? "";
    const last = Math.max(...before.flatMap(({ number }) => number ?? []));
    held.release();
    const second = await run(["attach", mine, "--stream-json", "--after", String(last)], here);
    expect(second.code).toBe(0);
    const numbers = [...before, ...linesOf(second.stdout)].flatMap(({ number }) => number ?? []);
    const { lastEvent } = (await person.conversation(mine)) as { lastEvent: number };
    expect(numbers).toEqual(Array.from({ length: lastEvent }, (_, n) => n + 1));
  });

  test.for([
    ["in a pipe", {}, false],
    ["with NO_COLOR", { NO_COLOR: "1" }, true],
    ["with TERM=dumb", { TERM: "dumb" }, true],
  ] as const)("is plain %s", async ([, env, isTerminal]) => {
    const tag = script(say(text("I look."), toolCall("ls", { path: "." })), say(text("Done.")));
    const { code, stdout, stderr } = await run(["run", "Go.", tag], { ...here, env, isTerminal });
    expect(code).toBe(0);
    expect(stdout + stderr).toContain("Done.");
    expect(stdout + stderr).not.toContain("\x1b");
  });

  test.for([
    ["NO_COLOR", { NO_COLOR: "1" }, /\x1b\[[\d;]*m/],
    ["TERM=dumb", { TERM: "dumb" }, /\x1b/],
  ] as const)("is plain also where it asks, with %s", async ([, env, escapes]) => {
    const running = bedrock(["run", "Go.", script(asks("To save."), say(text("Thanks.")))], {
      ...here,
      env,
      isTerminal: true,
    });
    await running.shows("Allow it? [y/N]");
    await untilItCounts();
    running.type("y\r");
    const { code, stdout } = await running.ended;
    expect(code).toBe(0);
    expect(stdout).not.toMatch(escapes);
    expect(stdout).toMatch(/To save\.[^]*Thanks\./);
  });

  test("has colours on a terminal, and no text of the agent or of a command can steer it", async () => {
    const tag = script(
      say(text("\x1b[2J\x1b]0;owned\x07 fine"), toolCall("bash", { command: "printf '\\033[31mred\\n'" })),
      say(text("Done.")),
    );
    const { stdout } = await run(["run", "Go.", tag], { ...here, isTerminal: true });
    expect(stdout).toContain("\x1b[");
    expect(stdout).toContain("\\x1b[2J\\x1b]0;owned\\x07 fine");
    expect(stdout).not.toContain("\x1b[2J");
    expect(stdout).not.toContain("\x1b]0");
    expect(stdout).not.toContain("\x1b[31mred");
  });

  test("standard input joins the prompt where it says -", async () => {
    const running = bedrock(["run", "Read this:", "-", script(say(text("Read.")))], here);
    running.type("the diff\n");
    running.endInput();
    const { stderr } = await running.ended;
    const [message] = await person.messages(idIn(stderr));
    expect(JSON.stringify(message?.content)).toContain("Read this: the diff");
  });
});

describe("Ctrl-C", () => {
  test("stops the run with its process tree, and prints the command that goes on", async () => {
    const { command, file } = longCommand(system.cwd);
    const tag = script(asks(), say(text("Now."), toolCall("bash", { command })));
    const running = bedrock(["run", "--on-approval=wait", "Go.", tag], { ...here, isTerminal: true });
    await running.shows("Allow it with");
    const id = idIn(running.stdout());
    await person.order("POST", at(id, "/approval"), {
      decision: "approve",
      toolCallId: await approvalOf(id),
    });
    const pid = await pidIn(file);
    running.type("\x03");
    const { code, stdout } = await running.ended;
    expect(code).toBe(130);
    expect(stdout).toContain("Stopping");
    expect(stdout).toContain(`bedrock run -c ${id}`);
    expect(isDead(pid)).toBe(true);
  });

  test("in attach ends the watching only", async () => {
    const held = hold();
    const id = await person.create({ message: { text: `Go. ${script(say(text("Well", held, ".")))}` } });
    const running = bedrock(["attach", id], { ...here, isTerminal: true });
    await running.shows("Well");
    running.type("\x03");
    expect((await running.ended).code).toBe(130);
    expect(await person.stateOf(id)).toBe("llm_requesting");
    held.release();
  });

  test.for(["SIGINT", "SIGTERM", "SIGHUP"] as const)("%s in attach stops nothing", async (signal) => {
    const id = await person.create({ message: { text: `Go. ${script(say(text("Well", hold())))}` } });
    const running = bedrock(["attach", id], here);
    await running.shows("Well");
    running.kill(signal);
    await running.ended;
    expect(await person.stateOf(id)).toBe("llm_requesting");
  });
});

describe("closing the terminal", () => {
  /** The terminal goes, and with it its person. Resolves when the command has ended. */
  async function closed(running: Running): Promise<void> {
    const family = familyOf(running.pid);
    expect(family.length).toBeGreaterThan(1);
    running.kill("SIGKILL");
    await vi.waitFor(() => expect(family.every(isDead)).toBe(true), 10_000);
  }

  test("stops nothing", async () => {
    const held = hold();
    const running = bedrock(["run", "Go.", script(say(text("Well", held, ".")))], {
      ...here,
      isTerminal: true,
    });
    await running.shows("Well");
    const id = idIn(running.stdout());
    await closed(running);
    expect(await person.stateOf(id)).toBe("llm_requesting");
    held.release();
    await vi.waitFor(async () => expect(await person.stateOf(id)).toBe("idle"), 10_000);
    expect(await run(["attach", id], here)).toMatchObject({ code: 0, stdout: "Well.\n" });
  });

  test("stops no run of a command that goes on without it, to its end", async () => {
    const held = hold();
    const tag = script(say(text("Well", held, "."), toolCall("ls", { path: "." })), say(text("Done.")));
    const outputIn = join(system.cwd, randomUUID());
    const running = bedrock(["run", "Go.", tag], {
      ...here,
      isTerminal: true,
      outlivesTerminal: { outputIn },
    });
    await running.shows(/[0-9a-f]{32}/);
    const id = idIn(running.stdout());
    await held.reached;
    const family = familyOf(running.pid);
    running.kill("SIGKILL");
    await running.ended;
    expect(await person.stateOf(id)).toBe("llm_requesting");
    held.release();
    await vi.waitFor(() => expect(family.every(isDead)).toBe(true), 20_000);
    expect(readFileSync(outputIn, "utf8")).toBe("Well.\nDone.\n");
  });

  test.for([true, false])("while it asks decides nothing (it ends with it: %s)", async (ends) => {
    const outputIn = join(system.cwd, randomUUID());
    const running = bedrock(["run", "Go.", script(asks(), say(text("Thanks.")))], {
      ...here,
      isTerminal: true,
      ...(ends ? {} : { outlivesTerminal: { outputIn } }),
    });
    await running.shows("Allow it? [y/N]");
    const id = idIn(running.stdout());
    await closed(running);
    expect(await person.stateOf(id)).toBe("awaiting_mode_approval");
    expect((await run(["approve", id], here)).code).toBe(0);
    expect(await run(["attach", id], here)).toMatchObject({ code: 0, stdout: "I ask.\nThanks.\n" });
  });

  test("during a chat stops nothing", async () => {
    const chatting = bedrock(["chat"], { ...here, isTerminal: true });
    await chatting.shows("/help says");
    chatting.type(`Go. ${script(say(text("Well\n", hold())))}\r`);
    await chatting.shows("Well\r\n");
    await closed(chatting);
    expect(await person.stateOf(idIn(chatting.stdout()))).toBe("llm_requesting");
  });
});

describe("a server that goes away", () => {
  async function behindProxy() {
    const proxy = await startProxy({ host: "127.0.0.1", port: Number(new URL(url).port) });
    onTestFinished(() => proxy.cut());
    return { proxy, options: { ...here, url: `http://127.0.0.1:${proxy.port}` } };
  }

  test("is said, and followed again when it is back: nothing is missing or doubled", async () => {
    const { proxy, options } = await behindProxy();
    const held = hold();
    const running = bedrock(["run", "Go.", script(say(text("One, ", held, "two.")))], options);
    await running.shows("One,");
    await proxy.cut();
    await running.shows("Trying again");
    held.release();
    await proxy.mend();
    expect(await running.ended).toMatchObject({ code: 0, stdout: "One, two.\n" });
    expect(running.stderr()).toContain("Connected again");
  });

  test("for longer than --patience ends with 69, and the run goes on", async () => {
    const { proxy, options } = await behindProxy();
    const held = hold();
    const running = bedrock(["run", "--patience=1", "Go.", script(say(text("One", held, ".")))], options);
    await running.shows("One");
    const id = idIn(running.stderr());
    await proxy.cut();
    const { code, stderr } = await running.ended;
    expect(code).toBe(69);
    expect(stderr).toContain(`bedrock attach ${id}`);
    expect(await person.stateOf(id)).toBe("llm_requesting");
    held.release();
  });
});
