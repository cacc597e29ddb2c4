/** `bedrock` where requests, answers and connections are lost: what it does is done once, and it never hangs. */
import { randomUUID } from "node:crypto";
import { describe, expect, onTestFinished, test } from "vitest";
import { freePort } from "../../local/ports.ts";
import { hold } from "../../local/scripted/cues.ts";
import { say, text, toolCall, type Answer } from "../../local/scripted/script.ts";
import { at, Person } from "../api/person.ts";
import { serveApi, startApiOn } from "../api/support.ts";
import { startHttpProxy } from "../support/http-proxy.ts";
import { startSystem } from "../support/system.ts";
import { startProxy } from "../support/tcp-proxy.ts";
import { deferred } from "../support/waiting.ts";
import { bedrock, idIn, run, type Options } from "./support.ts";

const system = await startSystem();
const api = startApiOn(system);
const { url } = await serveApi(api);
const person = new Person(api, system.cwd);
const here: Options = { url, cwd: system.cwd };

const script = (...answers: readonly Answer[]): string => system.model.script(randomUUID(), [...answers]);
const typesOf = async (id: string) => (await person.messages(id)).map(({ type }) => type);
/** The ids of the conversations with this title. */
const titled = async (title: string) => {
  const { conversations } = (await person.read("/api/conversations")) as {
    conversations: { id: string; title: string }[];
  };
  return conversations.filter((each) => each.title === title).map(({ id }) => id);
};

/** A connection to the server that the test can cut and mend. */
const behindProxy = async () => {
  const proxy = await startProxy({ host: "127.0.0.1", port: Number(new URL(url).port) });
  onTestFinished(() => proxy.cut());
  return { proxy, options: { ...here, url: `http://127.0.0.1:${proxy.port}` } };
};
/** A run that is under way when its command loses the server. */
const cutOff = async () => {
  const { proxy, options } = await behindProxy();
  const running = bedrock(["run", "Go.", script(say(text("Well", hold())))], options);
  await running.shows("Well");
  await proxy.cut();
  return { proxy, running };
};

const CREATE = "POST /api/conversations";

describe("an answer that is lost", () => {
  test("to a prompt in a new conversation: it is sent once, and its run is followed", async () => {
    const losing = await startHttpProxy(url, (what, before) =>
      what === CREATE && before === 0 ? "lose answer" : "pass",
    );
    const ended = await run(["run", "Go.", script(say(text("Hello.")))], { ...here, url: losing });
    expect(ended).toMatchObject({ code: 0, stdout: "Hello.\n" });
    expect(ended.stderr).toContain("The server does not answer. Trying again …");
    expect(await typesOf(idIn(ended.stderr))).toEqual(["user", "agent", "run_stop"]);
  });

  test("to a prompt in a conversation that there is: it is sent once", async () => {
    const id = await person.create();
    const losing = await startHttpProxy(url, (what, before) =>
      what === `POST /api/conversations/${id}/messages` && before === 0 ? "lose answer" : "pass",
    );
    const ended = await run(["run", "-c", id, "Go.", script(say(text("Hello.")))], { ...here, url: losing });
    expect(ended).toMatchObject({ code: 0, stdout: "Hello.\n" });
    expect(await typesOf(id)).toEqual(["user", "agent", "run_stop"]);
  });

  test("to new: one conversation is made, and its id is printed", async () => {
    const losing = await startHttpProxy(url, (what, before) =>
      what === CREATE && before === 0 ? "lose answer" : "pass",
    );
    const title = randomUUID();
    const made = await run(["new", "--title", title], { ...here, url: losing });
    expect(made).toMatchObject({ code: 0, stderr: "The server does not answer. Trying again …\n" });
    expect(await titled(title)).toEqual([made.stdout.trim()]);
  });

  test("to every try of a prompt: the end is 69 after --patience, with the command that shows what became of it", async () => {
    const losing = await startHttpProxy(url, (what) => (what === CREATE ? "lose answer" : "pass"));
    const ended = await run(["run", "--patience=1", "Go.", script(say(text("Hello.")))], {
      ...here,
      url: losing,
    });
    expect(ended).toMatchObject({ code: 69, stdout: "" });
    const [, command = ""] = /Look with: bedrock (.*)/.exec(ended.stderr) ?? [];
    expect(await run(command.split(" "), here)).toMatchObject({ code: 0, stdout: "Hello.\n" });
  });
});

describe("a server that is not there", () => {
  const ID = "0123456789abcdef0123456789abcdef";

  test.each([
    `run x`,
    `run -c ${ID} x`,
    `run --json x`,
    `run --stream-json x`,
    `chat`,
    `chat ${ID}`,
    `list`,
    `new`,
    `send ${ID} x`,
    `attach ${ID}`,
    `cancel ${ID}`,
    `release ${ID}`,
    `approve ${ID}`,
    `deny ${ID}`,
    `mode ${ID} restricted`,
    `wrap-up ${ID}`,
    `cycles ${ID}`,
    `export ${ID}`,
  ])("ends at once with 69, with what to do: bedrock %s", async (line) => {
    const nowhere = `http://127.0.0.1:${await freePort()}`;
    expect(await run(line.split(" "), { ...here, url: nowhere })).toEqual({
      code: 69,
      stdout: "",
      stderr: `No server answers at ${nowhere}. Start it with: bedrock start\nIf it is elsewhere, set BEDROCK_URL.\n`,
    });
  });
});

describe("a stream that never comes", () => {
  test.each(["attach", "attach --json"])(
    "ends bedrock %s with 69 after --patience, and says so before",
    async (line) => {
      const args = line.split(" ");
      const id = await person.create({ message: { text: `Go. ${script(say(text("Well", hold())))}` } });
      const broken = await startHttpProxy(url, (what) =>
        what === "GET /api/stream" ? "lose request" : "pass",
      );
      const { code, stdout, stderr } = await run([...args, "--patience=1", id], { ...here, url: broken });
      expect(code).toBe(69);
      expect(stderr).toMatch(/Trying again …\nThe server is still away\. .*\nFollow it again with: bedrock/);
      expect(stdout).toBe(
        args.includes("--json")
          ? `${JSON.stringify({ conversationId: id, outcome: "unreachable", exitCode: 69 })}\n`
          : "",
      );
    },
  );

  test("because the server asks for another token by now ends with 77", async () => {
    const refusing = await startHttpProxy(url, (what, before) => {
      if (what !== "GET /api/stream") return "pass";
      return before === 0 ? "lose request" : { status: 401 };
    });
    const ended = await run(["run", "Go.", script(say(text("Well", hold())))], { ...here, url: refusing });
    expect(ended.code).toBe(77);
    expect(ended.stderr).toContain("BEDROCK_TOKEN");
    expect(await person.stateOf(idIn(ended.stderr))).toBe("llm_requesting");
  });
});

describe("a conversation that is deleted while the server is away", () => {
  test("ends what follows it with 1, which says so", async () => {
    const { proxy, running } = await cutOff();
    await running.shows("Trying again");
    await person.order("DELETE", at(idIn(running.stderr())), undefined, 204);
    await proxy.mend();
    const { code, stderr } = await running.ended;
    expect(code).toBe(1);
    expect(stderr).toContain("The conversation was deleted.");
  });
});

describe("Ctrl-C", () => {
  test("before the server has answered stops the run as soon as it has", async () => {
    const arrived = deferred<undefined>();
    const gate = deferred<"pass">();
    const slow = await startHttpProxy(url, (what) => {
      if (what !== CREATE) return "pass";
      arrived.resolve(undefined);
      return gate.promise;
    });
    const title = randomUUID();
    const running = bedrock(["run", title, script(say(text("Well", hold())))], { ...here, url: slow });
    await arrived.promise;
    // What the conversation is called is said before.
    await running.shows(/^[0-9a-f]{32}$/m);
    running.kill("SIGINT");
    await running.shows("Stopping, as soon as the server has answered.");
    gate.resolve("pass");
    const { code, stderr } = await running.ended;
    expect(code).toBe(130);
    const id = idIn(stderr);
    expect(stderr).toContain(`Go on with: bedrock run -c ${id}`);
    expect(await person.stateOf(id)).toBe("idle");
  });

  test("while the server is away stops the run when it is back", async () => {
    const { proxy, running } = await cutOff();
    await running.shows("Trying again");
    running.kill("SIGINT");
    await running.shows("Stopping");
    await proxy.mend();
    const { code, stderr } = await running.ended;
    expect(code).toBe(130);
    expect(await person.stateOf(idIn(stderr))).toBe("idle");
  });

  test("for the second time ends the command without an answer, and says how to go on", async () => {
    const { running } = await cutOff();
    running.kill("SIGINT");
    await running.shows("Stopping");
    running.kill("SIGINT");
    const { code, stderr } = await running.ended;
    expect(code).toBe(130);
    expect(stderr).toContain(`Go on with: bedrock run -c ${idIn(stderr)}`);
  });
});

describe("chat", () => {
  test("says that the server is away, and goes on when it is back", async () => {
    const { proxy, options } = await behindProxy();
    const held = hold();
    const chatting = bedrock(["chat"], { ...options, isTerminal: true });
    await chatting.shows("/help says");
    chatting.type(`Go. ${script(say(text("Well\n", held, "done.")))}\r`);
    await chatting.shows("Well\r\n");
    await proxy.cut();
    await chatting.shows("Trying again");
    held.release();
    await proxy.mend();
    await chatting.shows("Connected again.");
    await chatting.shows("done.");
    chatting.type("/quit\r");
    expect((await chatting.ended).code).toBe(0);
  });

  test("in a pipe ends with 69 when the server stays away for longer than --patience", async () => {
    const { proxy, options } = await behindProxy();
    const chatting = bedrock(["chat", "--patience=1"], options);
    chatting.type(`Go. ${script(say(text("Well\n", hold())))}\n`);
    await chatting.shows("Well\n");
    await proxy.cut();
    const { code, stderr } = await chatting.ended;
    expect(code).toBe(69);
    expect(stderr).toContain("The server is still away");
  });

  test("in a pipe ends with 2 at an approval, with the commands that decide, and says what was not sent", async () => {
    const asks = say(text("I ask."), toolCall("request_mode_upgrade", { reason: "To write." }));
    const chatting = bedrock(["chat"], here);
    // Its input stays open: nothing tells it that no more will come.
    chatting.type(`Go. ${script(asks, say(text("Thanks.")))}\n/approve\n`);
    const { code, stderr, stdout } = await chatting.ended;
    expect({ code, stdout }).toEqual({ code: 2, stdout: "I ask.\n" });
    const id = idIn(stderr);
    expect(stderr).toContain(`Allow it with: bedrock approve ${id}`);
    expect(stderr).toContain("1 more line was not sent.");
    expect(await person.stateOf(id)).toBe("awaiting_mode_approval");
  });
});
