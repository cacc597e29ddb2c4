/**
 * The fence of docs/architecture.md, rule 2: whatever is late, frozen, cut off or out of order, a tool runs at most
 * once, every call is answered, nothing is lost. Locks and signals provoke each case.
 */
import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { hold } from "../../local/scripted/cues.ts";
import { say, toolCall } from "../../local/scripted/script.ts";
import { TestConversation } from "../support/conversation.ts";
import { isDead, pidIn } from "../support/processes.ts";
import { until } from "../support/waiting.ts";
import { startSystem } from "../support/system.ts";
import { toolsQueue } from "../../protocol/workflow.ts";
import { countedTool } from "./counted-tool.ts";
import { startWorkerProcess } from "../support/worker-process.ts";

test("a cancel while Postgres is blocked stops the tool at once, and is stored when it is back", async () => {
  const system = await startSystem();
  const conversation = await TestConversation.open(system, "unrestricted");
  const name = randomUUID();
  const command = `echo $$ > ${name}; sleep 300; echo survived >> ${name}`;
  const tag = system.model.script(name, [say(toolCall("bash", { command })), say("Done.")]);
  await conversation.send(`go ${tag}`);
  await conversation.untilState("tool_executing");
  const pid = await pidIn(join(system.cwd, name));
  const unblock = await conversation.block();
  const cancelled = conversation.cancel();
  await until(() => isDead(pid));
  await unblock();
  await cancelled;
  await conversation.untilState("idle");
  expect((await conversation.results()).map((result) => result.status)).toEqual(["cancelled"]);
});

test("a cancel whose commit overtakes that of the tool: the tool never starts", async () => {
  const system = await startSystem();
  const conversation = await TestConversation.open(system, "unrestricted");
  const tool = countedTool(system);
  const held = hold();
  const tag = system.model.script(tool.name, [say("Now. ", held, tool.call), say("Done.")]);
  await conversation.send(`go ${tag}`);
  await held.reached;
  const unblock = await conversation.block();
  held.release();
  const [commitOfTool] = await conversation.untilBlocked(1);
  const cancelled = conversation.cancel();
  await conversation.untilBlocked(2);
  // The tool's commit is cut off. If it is retried, it comes after the commit of the cancel.
  await system.db.sql`select pg_terminate_backend(${commitOfTool ?? 0})`;
  await unblock();
  await cancelled;
  await conversation.untilState("idle");
  expect(tool.runs()).toBe(0);
  expect((await conversation.results()).map((result) => result.status)).toEqual(["cancelled"]);
  expect(await conversation.types()).toEqual(["user", "agent", "tool", "run_stop"]);
});

test("when a worker is killed while its tool runs, the outcome is unknown, and the tool does not run again", async () => {
  const system = await startSystem({ workers: 0 });
  const killed = await startWorkerProcess(system);
  const conversation = await TestConversation.open(system, "unrestricted");
  const name = randomUUID();
  const path = join(system.cwd, name);
  const tag = system.model.script(name, [
    say(toolCall("bash", { command: `echo $$ >> ${name}; sleep 300` })),
    say("I will check."),
  ]);
  await conversation.send(`go ${tag}`);
  const pid = await pidIn(path);
  killed.signal("SIGKILL");
  await system.startWorker();
  await conversation.untilState("idle");
  await until(() => isDead(pid));
  expect(readFileSync(path, "utf8").trim().split("\n")).toHaveLength(1);
  const [result] = await conversation.results();
  expect(result?.status).toBe("interrupted");
  expect(JSON.stringify(result?.output)).toMatch(/outcome is unknown/);
});

test("a tool that is ordered while Postgres is away starts once, when Postgres is back", async () => {
  const system = await startSystem();
  const conversation = await TestConversation.open(system, "unrestricted");
  const tool = countedTool(system);
  const held = hold();
  const tag = system.model.script(tool.name, [say("Now. ", held, tool.call), say("Done.")]);
  await conversation.send(`go ${tag}`);
  await held.reached;
  const unblock = await conversation.block();
  held.release();
  // The first attempts of the commit are cut off, as by a restart of the server.
  for (let n = 0; n < 3; n++) {
    const [pid] = await conversation.untilBlocked(1);
    await system.db.sql`select pg_terminate_backend(${pid ?? 0})`;
  }
  await unblock();
  await conversation.untilState("idle");
  expect(tool.runs()).toBe(1);
  expect((await conversation.results()).map((result) => result.status)).toEqual(["completed"]);
});

test("an activity that is run twice, at once or later, performs its effect once", async () => {
  const system = await startSystem();
  const conversation = await TestConversation.open(system, "unrestricted");
  const tool = countedTool(system);
  const held = hold();
  const answers = [say(tool.call), say("Now wait. ", held), say("Done.")];
  await conversation.send(`go ${system.model.script(tool.name, answers)}`);
  await held.reached;
  const { events } = await conversation.handle.fetchHistory();
  const scheduled = (events ?? []).flatMap(({ activityTaskScheduledEventAttributes: task }) =>
    task?.activityType?.name === "executeTool" ? [task.input?.payloads?.[0]] : [],
  );
  const input: unknown = JSON.parse(Buffer.from(scheduled[0]?.data ?? []).toString());
  const again = () =>
    system.temporal.activity.execute<{ readonly kind: string }>("executeTool", {
      id: randomUUID(),
      taskQueue: toolsQueue(system.config.toolHost),
      args: [input],
      startToCloseTimeout: "10 seconds",
      heartbeatTimeout: "5 seconds",
    });
  expect(await again()).toMatchObject({ kind: "superseded" });

  // At once: the row is reset, so that every run finds it waiting for this very tool.
  const { operationId } = input as { readonly operationId: string };
  await system.db
    .sql`update conversations set awaits = ${operationId}, claim = null where id = ${conversation.id}`;
  const kinds = (await Promise.all([again(), again(), again()])).map(({ kind }) => kind);
  expect(kinds.sort()).toEqual(["done", "superseded", "superseded"]);
  expect(tool.runs()).toBe(2);
});
