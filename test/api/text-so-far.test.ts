/** A client that joins or comes back in the middle of an answer sees all of it (REQ-BED-011). */
import { randomUUID } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { expect, test } from "vitest";
import { hold } from "../../local/scripted/cues.ts";
import { say, text, thinking, toolCall } from "../../local/scripted/script.ts";
import { startSystem } from "../support/system.ts";
import { at, inState, Person } from "./person.ts";
import { EventReader, type Received } from "./sse.ts";
import { startApiOn } from "./support.ts";

const system = await startSystem();
const api = startApiOn(system);
const other = startApiOn(system);
const person = new Person(api, system.cwd);
const elsewhere = new Person(other, system.cwd);

type Text = {
  readonly offset: number;
  readonly text: string;
  readonly index?: number;
  readonly stream?: string;
};

/** The text of one block or stream, put together by the rule of the contract; throws at a gap. */
function textOf(events: readonly Received[], source: number | string): string {
  let whole = "";
  for (const { data } of events) {
    const { offset, text: piece, index, stream } = data as unknown as Text;
    if ((index ?? stream) !== source) continue;
    if (offset > whole.length) throw new Error(`a gap at ${whole.length}`);
    whole += piece.slice(whole.length - offset);
  }
  return whole;
}

async function readUntil(events: EventReader, source: number | string, whole: string): Promise<void> {
  while (textOf(events.received, source) !== whole) await events.next();
}

test("of an answer: its thinking and its text, in every process, before and after the next token", async () => {
  const [held, again] = [hold(), hold()];
  const tag = system.model.script(randomUUID(), [
    say(thinking(["Let me ", "see."]), text("One, ", "two, ", held, "three, ", again, "four.")),
  ]);
  const id = await person.create({ message: { text: `count ${tag}` } });
  const early = await person.follow(id);
  await readUntil(early, 1, "One, two, ");

  const late = [
    await person.follow(id),
    await elsewhere.follow(id),
    await elsewhere.follow(id, { headers: { "last-event-id": "1" } }),
  ];
  for (const events of late) {
    await readUntil(events, 0, "Let me see.");
    await readUntil(events, 1, "One, two, ");
  }
  held.release();
  for (const events of [early, ...late]) await readUntil(events, 1, "One, two, three, ");
  const [first] = late;
  await first?.cancel();
  const back = await elsewhere.follow(id);
  await readUntil(back, 1, "One, two, three, ");
  again.release();
  for (const events of [early, ...late.slice(1), back]) {
    await events.until(inState("idle"));
    expect(textOf(events.received, 1)).toBe("One, two, three, four.");
    await events.cancel();
  }
});

test("of a tool: what it has printed on either stream", async () => {
  const go = `${system.cwd}/${randomUUID()}`;
  const command = `echo begun; echo oops >&2; until [ -e ${go} ]; do sleep 0.05; done; echo done`;
  const tag = system.model.script(randomUUID(), [say(toolCall("bash", { command })), say("Ready.")]);
  const id = await person.create({ message: { text: `run ${tag}` } });
  const early = await person.follow(id);
  await readUntil(early, "stdout", "begun\n");
  await readUntil(early, "stderr", "oops\n");
  const late = await elsewhere.follow(id);
  await readUntil(late, "stdout", "begun\n");
  await readUntil(late, "stderr", "oops\n");
  await writeFile(go, "");
  for (const events of [early, late]) {
    await events.until(inState("idle"));
    expect(textOf(events.received, "stdout")).toBe("begun\ndone\n");
    await events.cancel();
  }
});

test("after the death of the process that had the stream, and with others that join at the same moment", async () => {
  const dying = startApiOn(system);
  const [held, last] = [hold(), hold()];
  const tag = system.model.script(randomUUID(), [say(text("A long ", held, "answer ", last, "indeed."))]);
  const id = await person.create({ message: { text: `say ${tag}` } });
  const lost = await new Person(dying, system.cwd).follow(id);
  await readUntil(lost, 0, "A long ");
  dying.stop();
  while ((await lost.next()) !== null);
  held.release();
  const streams = await Promise.all(
    Array.from({ length: 12 }, async () => new EventReader(await other.get(at(id, "/events?after=2")))),
  );
  for (const events of streams) await readUntil(events, 0, "A long answer ");
  last.release();
  for (const events of streams) {
    await events.until(inState("idle"));
    expect(textOf(events.received, 0)).toBe("A long answer indeed.");
    await events.cancel();
  }
});
