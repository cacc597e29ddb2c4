/** Operators read conversations by their titles in Temporal: the search attribute, the summary, the details. */
import { randomUUID } from "node:crypto";
import { expect, test } from "vitest";
import { hold } from "../../local/scripted/cues.ts";
import { say, toolCall, type Answer } from "../../local/scripted/script.ts";
import { renamedSignal } from "../../protocol/workflow.ts";
import { startApiOn } from "../api/support.ts";
import { TestConversation } from "../support/conversation.ts";
import { spawnFamily } from "../support/family.ts";
import { resetWorkflow } from "../support/reset.ts";
import { startSystem } from "../support/system.ts";

const system = await startSystem();
const api = startApiOn(system);

/** What Temporal has of the conversation's present run. */
const titleOf = async ({ handle }: TestConversation): Promise<unknown> =>
  (await handle.describe()).typedSearchAttributes.getAll().find(({ key }) => key.name === "title")?.value;

const shows = (conversation: TestConversation, title: string): Promise<void> =>
  expect.poll(() => titleOf(conversation)).toBe(title);

/** The ids in Temporal's list. */
async function found(query: string): Promise<string[]> {
  const ids: string[] = [];
  for await (const { workflowId } of system.temporal.workflow.list({ query })) ids.push(workflowId);
  return ids;
}

/**
 * The names of the search attributes that the present run has written, one entry for each time, without the SDK's own.
 */
async function written({ handle }: TestConversation): Promise<string[][]> {
  const { events } = await handle.fetchHistory();
  return (events ?? [])
    .map((event) => event.upsertWorkflowSearchAttributesEventAttributes?.searchAttributes?.indexedFields)
    .flatMap((fields) => (fields == null ? [] : [Object.keys(fields).sort()]))
    .filter((names) => !names.includes("TemporalChangeVersion"));
}

const details = async ({ handle }: TestConversation): Promise<string> => {
  const { currentDetails } = await handle.query<{ currentDetails: string }>("__temporal_workflow_metadata");
  return currentDetails;
};

const rename = async ({ id }: TestConversation, title: string): Promise<void> => {
  expect((await api.send("PATCH", `/api/conversations/${id}`, { title })).status).toBe(200);
};

const script = (...answers: readonly Answer[]): string => system.model.script(randomUUID(), answers);

/** A conversation made over HTTP, as the page makes it. */
async function create(wanted: {
  readonly title?: string;
  readonly text?: string;
}): Promise<TestConversation> {
  const { text, ...more } = wanted;
  const message = text === undefined ? {} : { message: { text } };
  const answer = await api.send("POST", "/api/conversations", { cwd: system.cwd, ...more, ...message });
  expect(answer.status).toBe(201);
  const { id } = (await answer.json()) as { readonly id: string };
  return new TestConversation(system, id);
}

test("the first message gives the title, and a turn writes it no more", async () => {
  const conversation = await TestConversation.open(system);
  expect(await titleOf(conversation)).toBe("New conversation");
  const tag = script(say(toolCall("ls", {})), say("One."), say("Two."));
  await conversation.send(`\n  Why is it red? ${tag}\nTell me.`);
  await conversation.untilState("idle");
  await conversation.send("and now?");
  await conversation.untilState("idle");
  await conversation.settled();
  expect(await titleOf(conversation)).toBe(`Why is it red? ${tag}`);
  const [heading, , state] = (await details(conversation)).split("\n");
  expect(heading).toBe(`Why is it red? ${tag}`);
  expect(state).toMatch(/^\*\*idle/);
  const [made, first, ...later] = await written(conversation);
  expect(made).toEqual(["mode", "status", "title"]);
  expect(first).toEqual(["status", "title"]);
  expect(later).toEqual([["status"], ["status"], ["status"]]);
});

test("a title that was chosen is the summary, and can be searched for from its beginning", async () => {
  const title = `Search ${randomUUID()}: its beginning, and more`;
  const conversation = await create({ title });
  await shows(conversation, title);
  expect(await (await conversation.handle.describe()).staticSummary()).toBe(title);
  await expect.poll(() => found(`title = "${title}"`)).toEqual([conversation.id]);
  expect(await found(`title STARTS_WITH "${title.slice(0, 50)}"`)).toEqual([conversation.id]);
  expect(await found(`title = "${title.slice(0, 50)}"`)).toEqual([]);
});

test("a new title is shown at once while the agent works, and nothing else is written", async () => {
  const held = hold();
  const conversation = await create({ text: `Before ${script(say(held, "Done."))}` });
  await held.reached;
  const before = await written(conversation);
  await rename(conversation, "After");
  await shows(conversation, "After");
  expect((await written(conversation)).slice(before.length)).toEqual([["title"]]);
  await rename(conversation, "After");
  await rename(conversation, " Once  more ");
  await shows(conversation, "Once more");
  expect((await written(conversation)).slice(before.length)).toEqual([["title"], ["title"]]);
  held.release();
  await conversation.untilState("idle");
});

test("a title that was chosen before the first message stays", async () => {
  const conversation = await create({});
  await rename(conversation, "Chosen");
  await shows(conversation, "Chosen");
  await conversation.send(`Not this ${script(say("Yes."))}`);
  await conversation.untilState("idle");
  await conversation.settled();
  expect(await titleOf(conversation)).toBe("Chosen");
});

test("of two titles the later one is shown, in whichever order the workflow hears of them", async () => {
  const conversation = await create({ title: "First" });
  const { lastEvent } = await conversation.stored();
  const tell = (title: string, event: number) => conversation.handle.signal(renamedSignal, { title, event });
  await tell("Third", lastEvent + 2);
  await tell("Second", lastEvent + 1);
  await tell("A copy", lastEvent + 2);
  await conversation.settled();
  expect(await titleOf(conversation)).toBe("Third");
});

test("a title that is no text, or none of ours, changes nothing but leaves a note", async () => {
  const conversation = await create({ title: "Kept" });
  await conversation.handle.signal("renamed", { title: 7, event: 1_000 });
  await conversation.until(({ conversation: { sequence } }) => sequence === 1);
  expect(JSON.stringify(await conversation.messages())).toContain("renamed was not taken (invalid_request)");
  expect(await titleOf(conversation)).toBe("Kept");
});

test.each([
  ["control characters", "red \u001b[31m\r\nalert\u0007 \0", "red [31m alert"],
  ["what a Postgres server could not parse as a Text", "run: 'ls' :A* & | !", "run: 'ls' :A* & | !"],
  ["500 characters", "😀".repeat(250), `${"😀".repeat(79)}…`],
])("a title with %s is shown, and holds nothing up", async (_what, title, shown) => {
  const conversation = await create({ title });
  await shows(conversation, shown);
  await rename(conversation, `${title} again`.slice(-500));
  await conversation.send(`go ${script(say("Yes."))}`);
  await conversation.untilState("idle");
});

test("a workflow that was ended takes the title from the row, with the next message", async () => {
  const conversation = await create({ title: "At first" });
  await shows(conversation, "At first");
  await conversation.handle.terminate("test");
  await rename(conversation, "Meanwhile");
  await conversation.send(`go ${script(say("Yes."))}`);
  await conversation.untilState("idle");
  await conversation.settled();
  expect(await titleOf(conversation)).toBe("Meanwhile");
  // An older signal of before the row was read.
  await conversation.handle.signal(renamedSignal, { title: "At first", event: 1 });
  await conversation.settled();
  expect(await titleOf(conversation)).toBe("Meanwhile");
});

test("after a reset the title is the row's", async () => {
  const conversation = await create({ text: `First ${script(say("One."), say("Two."))}` });
  await conversation.untilState("idle");
  await rename(conversation, "Second");
  await shows(conversation, "Second");
  await conversation.settled();
  await resetWorkflow(conversation, (tasks) => tasks[1], "forget");
  await conversation.send("go on");
  await conversation.untilState("idle");
  await shows(conversation, "Second");
});

test("the next run of a long conversation keeps the title without writing it", async () => {
  const conversation = await create({ title: "Long" });
  await rename(conversation, "Longer");
  await shows(conversation, "Longer");
  const { runId } = await conversation.handle.describe();
  // The server asks a run only once to cancel, so the workflow continues as a new run.
  await conversation.handle.cancel();
  await expect.poll(async () => (await conversation.handle.describe()).runId).not.toBe(runId);
  await conversation.settled();
  expect(await titleOf(conversation)).toBe("Longer");
  expect(await written(conversation)).toEqual([]);
  expect(await details(conversation)).toMatch(/^Longer\n/);
  const { event } = (await conversation.stored()).title;
  await conversation.handle.signal(renamedSignal, { title: "Outdated", event });
  await conversation.settled();
  expect(await titleOf(conversation)).toBe("Longer");
});

test("a sub-agent's title is its task from the start, and it writes none itself", async () => {
  const held = hold();
  const family = await spawnFamily(system, [
    { script: [say("… ", held, toolCall("submit_result", { result: "x" }))] },
  ]);
  await held.reached;
  const child = await family.child(1);
  const title = await titleOf(child);
  expect(title).toMatch(/^task 1 /);
  const [row] = await system.db.sql<
    { title: string }[]
  >`select title from conversations where id = ${child.id}`;
  expect(title).toBe(row?.title);
  expect(await (await child.handle.describe()).staticSummary()).toBe(`sub-agent: ${String(title)}`);
  expect((await written(child)).flat()).not.toContain("title");
  await rename(child, "Renamed task");
  await shows(child, "Renamed task");
  held.release();
  await family.parent.untilState("idle");
});

test("with TITLES_IN_TEMPORAL=false no list has a title, also not of sub-agents", async () => {
  const hiding = await startSystem({ env: { TITLES_IN_TEMPORAL: "false" } });
  const hidden = await TestConversation.open(hiding);
  const agents = [toolCall("spawn_agents", { tasks: [{ task: "A task" }] })];
  const tag = hiding.model.script(randomUUID(), [say(...agents), say("Done.")]);
  await hidden.send(`go ${tag}`);
  await hidden.untilState("idle");
  const attributesOf = async (query: string) => {
    const found: string[][] = [];
    for await (const { typedSearchAttributes } of hiding.temporal.workflow.list({ query }))
      found.push(typedSearchAttributes.getAll().map(({ key }) => key.name));
    return found;
  };
  const query = `TaskQueue = "${hiding.config.taskQueue}"`;
  await expect.poll(async () => (await attributesOf(query)).length).toBe(2);
  for (const names of await attributesOf(query)) {
    expect(names).toContain("status");
    expect(names).not.toContain("title");
  }
});
