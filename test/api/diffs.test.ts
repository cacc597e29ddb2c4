/** What edits changed, from the tools through machine and Postgres to clients, and never to the model. */
import { applyPatch } from "diff";
import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { z } from "zod";
import { storedMessage } from "../../api/schemas/message.ts";
import { say, toolCall } from "../../local/scripted/script.ts";
import { TestConversation } from "../support/conversation.ts";
import { startSystem } from "../support/system.ts";
import { EventReader } from "./sse.ts";
import { bodyOf, startApiOn } from "./support.ts";

const system = await startSystem({ hasSandbox: false });
const { get } = startApiOn(system);

type Stored = z.output<typeof storedMessage>;

/** Of each tool message its name and what it displays. */
const displays = (messages: readonly Stored[]) =>
  messages.flatMap((message) =>
    message.type === "tool" ? [{ name: message.content[0].name, display: message.display }] : [],
  );

test("a client reads what each call changed, in the messages and in the events; the model does not", async () => {
  const conversation = await TestConversation.open(system);
  const at = `/api/conversations/${conversation.id}`;
  const events = new EventReader(await get(`${at}/events`));
  await events.until("synced");
  const [script, name] = [randomUUID(), `${randomUUID()}.txt`];
  const path = join(system.cwd, name);
  const tag = system.model.script(script, [
    say(
      toolCall("write", { path: name, content: "one\ntwo\n" }),
      toolCall("edit", { path: name, oldText: "two", newText: "2" }),
      toolCall("edit", { path: name, oldText: "never", newText: "there" }),
      toolCall("patch", { path: name, edits: [{ operation: "insert", text: "three" }] }),
      toolCall("write", { path: name, content: "one\n2\nthree\n" }),
      toolCall("read", { path: name }),
    ),
    say("Changed."),
    say("Bye."),
  ]);
  await conversation.send(`go ${tag}`);
  await conversation.untilState("idle");

  const { messages } = await bodyOf(await get(`${at}/messages`));
  const stored = displays((messages as unknown[]).map((message) => storedMessage.parse(message)));
  expect(stored.map(({ name, display }) => [name, display?.diffs?.map(({ change }) => change)])).toEqual([
    ["write", ["created"]],
    ["edit", ["modified"]],
    ["edit", undefined],
    ["patch", ["modified"]],
    ["write", undefined],
    ["read", undefined],
  ]);
  const diffs = stored.flatMap(({ display }) => display?.diffs ?? []);
  expect(diffs[1]).toEqual({
    ...{ path, change: "modified", diff: `--- ${path}\n+++ ${path}\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n` },
    ...{ addedLines: 1, removedLines: 1, truncated: false },
  });
  const result = diffs.reduce((text, { diff }) => applyPatch(text, diff) || "", "");
  expect(result).toBe(readFileSync(path, "utf8"));

  const seen: Stored[] = [];
  while (displays(seen).length < stored.length) {
    seen.push(storedMessage.parse((await events.until("message.added")).data));
  }
  expect(displays(seen)).toEqual(stored);

  await conversation.send("And now?");
  await conversation.until(({ conversation: { run, sequence } }) => run === null && sequence > 12);
  const requests = system.model.requestsOf(script).map(({ body }) => JSON.stringify(body.messages));
  expect(requests).toHaveLength(3);
  for (const request of requests) expect(request).not.toMatch(/@@ -|addedLines/);
});
