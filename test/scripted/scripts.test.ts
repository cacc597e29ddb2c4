/** The choice of the script that answers, and the record that the server keeps. */
import { describe, expect, test } from "vitest";
import { hold } from "../../local/scripted/cues.ts";
import { say } from "../../local/scripted/script.ts";
import { startScriptedServer } from "../../local/scripted/server.ts";
import { ask, collect, post, stream, useScriptedServer } from "./support.ts";

const server = useScriptedServer({ fallback: () => say("Nobody scripted this.") });
const said = (body: object): unknown =>
  "content" in body ? (body.content as { text: string }[])[0]?.text : body;

describe.concurrent("scripts", () => {
  test("answer their conversations side by side, each in its order", async () => {
    const left = server().script("left", [say("l1"), say("l2")]);
    const right = server().script("right", (request, n) => say(`${request.key ?? ""} ${n}`));
    const first = await Promise.all([
      post(server(), ask(`Hi. ${left}`)),
      post(server(), ask(`Hi. ${right}`)),
    ]);
    const second = await Promise.all([post(server(), ask(left)), post(server(), ask(right))]);
    expect([...first, ...second].map(({ body }) => said(body))).toEqual(["l1", "right 1", "l2", "right 2"]);
  });

  test("are found by the first tag in the user's texts, however long the conversation is", async () => {
    const tag = server().script("first", [say("found")]);
    const reply = await post(server(), {
      ...ask(""),
      messages: [
        { role: "user", content: [{ type: "text", text: tag }] },
        { role: "assistant", content: "[[script:assistant]]" },
        { role: "user", content: "[[script:second]]" },
      ],
    });
    expect(said(reply.body)).toBe("found");
  });

  test("leave the rest to the fallback", async () => {
    expect(said((await post(server(), ask("Hello."))).body)).toBe("Nobody scripted this.");
  });

  test.each([
    ["an unknown script", "[[script:unknown]]", "unknown"],
    ["a script that is over", "[[script:over]]", "over"],
    ["a script that throws", "[[script:throws]]", "Oops."],
  ])("%s is an error that is not worth a retry", async (_name, text, message) => {
    if (text.includes("over")) server().script("over", []);
    if (text.includes("throws"))
      server().script("throws", () => {
        throw new Error("Oops.");
      });
    expect(await post(server(), ask(text))).toMatchObject({
      status: 400,
      body: { error: { message: expect.stringContaining(message) as unknown } },
    });
  });

  test("have unique names", () => {
    server().script("once", []);
    expect(() => server().script("once", [])).toThrow(/already/);
  });
});

describe.concurrent("the record", () => {
  test("holds what arrived, when, and how it ended", async () => {
    const tag = server().script("facts", [say("x")]);
    const before = performance.now();
    await post(server(), ask(tag));
    const request = await server().nextRequest("facts", 1);
    await request.ended;
    expect(request).toMatchObject({
      key: "facts",
      n: 1,
      refusal: null,
      end: "answered",
      closedByClient: false,
    });
    expect(request.body.messages).toEqual([{ role: "user", content: tag }]);
    expect(request.headers["anthropic-version"]).toBe("2026-10-21");
    expect(request.arrivedAt).toBeGreaterThan(before);
    expect(request.endedAt).toBeGreaterThan(request.arrivedAt);
  });

  test("holds what was refused and why", async () => {
    await post(server(), ask("[[script:refused]]", { nonsense: true }));
    const request = await server().nextRequest("refused", 1);
    expect(request.refusal).toMatchObject({
      status: 400,
      message: "nonsense: Extra inputs are not permitted",
    });
    expect(() => request.body).toThrow(/nonsense/);
  });

  test("resolves with requests that are still to come", async () => {
    const tag = server().script("later", () => say("x"));
    const next = server().nextRequest("later");
    const second = server().nextRequest("later", 2);
    await post(server(), ask(tag));
    expect((await next).n).toBe(1);
    await post(server(), ask(tag));
    expect((await second).n).toBe(2);
    expect(server().requestsOf("later")).toHaveLength(2);
  });

  test("shows that the client closed the connection, and stops answering", async () => {
    const gate = hold();
    const tag = server().script("closed", [say("x", gate, "y")]);
    const abort = new AbortController();
    const events = collect(stream(server(), ask(tag), abort.signal));
    await gate.reached;
    abort.abort();
    await expect(events).rejects.toThrow();
    const request = await server().waitFor(({ key, closedByClient }) => key === "closed" && closedByClient);
    expect(request.end).toBe("client_closed");
  });
});

test("a server forgets old requests, and still counts them", async () => {
  const other = await startScriptedServer({ remember: 2 });
  try {
    const tag = other.script("many", (_request, n) => say(String(n)));
    for (let i = 1; i <= 3; i += 1) expect(said((await post(other, ask(tag))).body)).toBe(String(i));
    expect(other.requests.map(({ n }) => n)).toEqual([2, 3]);
  } finally {
    await other.close();
  }
});

describe.concurrent("the end of the server", () => {
  test("cuts held streams, and rejects those who still wait for a request", async () => {
    const other = await startScriptedServer();
    const gate = hold();
    const tag = other.script("held", [say(gate)]);
    const events = collect(stream(other, ask(tag)));
    const never = other.nextRequest("held", 2);
    await gate.reached;
    const begun = performance.now();
    await other.close();
    expect(performance.now() - begun).toBeLessThan(1000);
    await expect(events).rejects.toThrow();
    await expect(never).rejects.toThrow(/held #1/);
    await other.close();
  });
});
