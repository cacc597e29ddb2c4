/** The queue as clients see it (docs/machine.md, "The queue"): what a Stop does with it, holds, releases, archiving. */
import { randomUUID } from "node:crypto";
import { expect, test } from "vitest";
import { hold } from "../../local/scripted/cues.ts";
import { fail, say, type Answer } from "../../local/scripted/script.ts";
import { startSystem } from "../support/system.ts";
import { at, inState, Person } from "./person.ts";
import { problemOf, startApiOn } from "./support.ts";

const system = await startSystem();
const api = startApiOn(system);
const person = new Person(api, system.cwd);

const script = (...answers: readonly Answer[]): string => system.model.script(randomUUID(), answers);

/** A conversation whose request is held at the provider, with two follow-ups. */
async function busy(...later: readonly Answer[]): Promise<string> {
  const held = hold();
  const tag = script(say("one", held), ...later);
  const id = await person.create({ message: { text: `go ${tag}` } });
  await held.reached;
  for (const [messageId, text] of [
    ["second", "And then?"],
    ["third", "And after that?"],
  ])
    await person.say(id, { id: messageId, text, delivery: "followUp" });
  return id;
}

const rootsOf = async (id: string): Promise<readonly string[]> =>
  (await person.messages(id)).flatMap((message) => (message.type === "user" ? [message.id] : []));

test("a Stop says what starts next; clients are told of the rest before it does", async () => {
  const id = await busy(say("Two."), say("Three."));
  const events = await person.follow(id);
  await events.until("synced");
  const answer = await person.order("POST", at(id, "/cancel"));
  expect(answer).toMatchObject({ next: { messageId: "second" }, queueHeld: null });
  await events.until(inState("idle"));
  await events.until((event) => event.name === "message.added" && event.data["id"] === "third");
  await events.until(inState("idle"));
  const states = events.received.filter(({ name }) => name === "state.changed");
  expect(states.map(({ data }) => (data["state"] as { kind: string }).kind)).toEqual([
    "cancelling",
    "idle",
    "llm_requesting",
    "idle",
    "llm_requesting",
    "idle",
  ]);
  expect((await rootsOf(id)).slice(1)).toEqual(["second", "third"]);
});

test("a Stop that holds the queue: nothing starts until it is released, and all clients see why", async () => {
  const id = await busy(say("Two."), say("Three."));
  const events = await person.follow(id);
  await events.until("synced");
  const answer = await person.order("POST", at(id, "/cancel"), { queue: "hold" });
  expect(answer).toMatchObject({ next: null, queueHeld: "cancel" });
  await events.until(inState("idle"));
  expect(events.received.find(({ name }) => name === "queue.changed")?.data).toMatchObject({
    queue: [{ messageId: "second" }, { messageId: "third" }],
    queueHeld: "cancel",
  });
  expect(await person.conversation(id)).toMatchObject({ state: { kind: "idle" }, queueHeld: "cancel" });
  expect(await rootsOf(id)).toHaveLength(1);

  await person.order("POST", at(id, "/queue/release"));
  await events.until((event) => event.name === "message.added" && event.data["id"] === "third");
  await events.until(inState("idle"));
  expect(await person.conversation(id)).toMatchObject({ queue: [], queueHeld: null });
  // Nothing is held any more: no error.
  await person.order("POST", at(id, "/queue/release"));
});

test("a Stop that clears the queue drops what waits, under either name", async () => {
  for (const body of [{ queue: "clear" }, { clearQueue: true }, { queue: "clear", clearQueue: true }]) {
    const id = await busy();
    expect(await person.order("POST", at(id, "/cancel"), body)).toMatchObject({ next: null });
    await person.untilState(id, "idle");
    expect(await person.conversation(id)).toMatchObject({ queue: [], queueHeld: null });
  }
});

test("a Stop that contradicts itself, or names no such thing, is refused and stops nothing", async () => {
  const id = await busy();
  for (const body of [{ queue: "hold", clearQueue: true }, { queue: "later" }, { queue: null }]) {
    const problem = await problemOf(await api.send("POST", at(id, "/cancel"), body));
    expect(problem).toMatchObject({ status: 422, code: "invalid_request", errors: [{ path: "queue" }] });
  }
  expect(await person.conversation(id)).toMatchObject({ state: { kind: "llm_requesting" } });
  await person.order("POST", at(id, "/cancel"), { queue: "clear" });
});

test("a key that the provider does not accept holds the queue", async () => {
  const held = hold();
  const tag = script(fail("authentication_error", { beforeHeaders: [held] }), say("Two."));
  const id = await person.create({ message: { text: `go ${tag}` } });
  await held.reached;
  await person.say(id, { id: "second", text: "And then?", delivery: "followUp" });
  held.release();
  await person.untilState(id, "error");
  expect(await person.conversation(id)).toMatchObject({
    queueHeld: "auth",
    queue: [{ messageId: "second" }],
  });
});

test("archiving stops the work once and starts nothing; the messages wait", async () => {
  const id = await busy();
  const archived = await person.order("PATCH", at(id), { archived: true }, 200);
  expect(archived).toMatchObject({ archived: true, state: { kind: "idle" }, queueHeld: "cancel" });
  const types = (await person.messages(id)).map(({ type }) => type);
  expect(types).toEqual(["user", "run_stop"]);
  expect((await person.conversation(id))["queue"]).toMatchObject([
    { messageId: "second" },
    { messageId: "third" },
  ]);
});

test("an operator stops and releases by signals with the same inputs", async () => {
  const id = await busy(say("Two."), say("Three."));
  const handle = system.temporal.workflow.getHandle(id);
  await handle.signal("cancel", { queue: "hold" });
  await person.untilState(id, "idle");
  expect(await person.conversation(id)).toMatchObject({ queueHeld: "cancel" });
  await handle.signal("releaseQueue", { releaseQueue: true });
  await expect.poll(() => rootsOf(id)).toEqual([expect.any(String), "second", "third"]);
  await person.untilState(id, "idle");
});
