/** Several tool hosts: a conversation begins on the one that it names, and needs no other (docs/operations.md). */
import { mkdtempSync } from "node:fs";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeAll, expect, test } from "vitest";
import { say, toolCall } from "../../local/scripted/script.ts";
import { startSystem } from "../support/system.ts";
import { startWorkerProcess, type WorkerProcess } from "../support/worker-process.ts";
import { at, Person } from "./person.ts";
import { problemOf, startApiOn } from "./support.ts";

const system = await startSystem({ env: { WORKER_ROLES: "conversations,requests" }, workers: 1 });
const { config, cwd, model } = system;
const [near, far] = [config.toolHost, `${config.toolHost}-far`];
const requests = startApiOn(system, { toolHosts: [near, far] });
const person = new Person(requests, cwd);

const startHost = (name: string): Promise<WorkerProcess> =>
  startWorkerProcess(system, { WORKER_ROLES: "tools", TOOL_HOST: name, ANTHROPIC_API_KEY: "" });
let farHost: WorkerProcess;
beforeAll(async () => {
  [farHost] = await Promise.all([startHost(far), startHost(near)]);
});

test("the hosts are listed, the default one first, with what each can enforce", async () => {
  await expect
    .poll(() => person.read("/api/hosts"))
    .toEqual({
      hosts: [
        { name: near, default: true, sandbox: system.sandbox },
        { name: far, default: false, sandbox: system.sandbox },
      ],
    });
});

test("a conversation begins on the host that it names, and its directories are completed there", async () => {
  const made = await person.order("POST", "/api/conversations", { cwd, host: far }, 201);
  expect(made).toMatchObject({ host: far, cwd });
  expect(await person.order("POST", "/api/conversations", { cwd }, 201)).toMatchObject({ host: near });
  const dir = mkdtempSync(join(tmpdir(), "bedrock-listed-"));
  system.defer(() => rm(dir, { recursive: true }));
  for (const host of ["", far])
    expect(await person.read(`/api/directories?host=${host}&path=${dir}`)).toEqual({ directories: [dir] });
});

test("a host that there is not is refused by its name, and nothing is made", async () => {
  const before = await person.read("/api/conversations?archived=all");
  for (const [method, path, body] of [
    ["POST", "/api/conversations", { cwd, host: "elsewhere" }],
    ["GET", "/api/directories?host=elsewhere", undefined],
  ] as const) {
    const refused = await problemOf(await requests.send(method, path, body));
    expect(refused).toMatchObject({
      status: 422,
      code: "invalid_request",
      errors: [{ path: "host", message: `There is no such tool host. There are: ${near}, ${far}.` }],
    });
  }
  expect(await person.read("/api/conversations?archived=all")).toEqual(before);
});

test("a host that dies: the person is told, other hosts go on, and its conversations go on when it is back", async () => {
  const begun = (name: string) => toolCall("bash", { command: `echo began; sleep 300; echo ${name}` });
  const after = toolCall("bash", { command: "echo after" });
  const [here, there, stopped] = await Promise.all([
    person.create({ host: near }),
    person.create({ host: far }),
    person.create({ host: far }),
  ]);
  const events = await person.follow(there);
  await person.say(there, {
    text: `go ${model.script(there, [say(begun("there")), say(after), say("Done.")])}`,
  });
  await events.until(({ name }) => name === "tool.output");

  farHost.signal("SIGKILL");
  await farHost.exited;
  await model.nextRequest(there, 2);
  const [lost] = await results(there);
  expect(lost).toMatchObject({ status: "interrupted" });
  // The next call waits for its host, and the person is told.
  await events.until(({ data }) =>
    JSON.stringify(data).includes(`No worker answers for the tools of ${far}.`),
  );
  await person.say(here, { text: `go ${model.script(here, [say(after), say("Done here.")])}` });
  await person.untilState(here, "idle");
  expect(await results(here)).toMatchObject([{ status: "completed" }]);
  expect(await person.stateOf(there)).toBe("tool_executing");
  // Nobody has to wait for it.
  await person.say(stopped, { text: `go ${model.script(stopped, [say(after)])}` });
  await person.untilState(stopped, "tool_executing");
  await person.order("POST", at(stopped, "/cancel"), {});
  await person.untilState(stopped, "idle");

  farHost = await startHost(far);
  await person.untilState(there, "idle");
  expect(await results(there)).toMatchObject([{ status: "interrupted" }, { status: "completed" }]);
  await events.cancel();
});

async function results(id: string) {
  const messages = await person.messages(id);
  return messages.flatMap((message) => (message.type === "tool" ? [...message.content] : []));
}

test("a conversation that goes on from another one stays on its host", async () => {
  const id = await person.create({ host: far });
  expect(await person.conversation(id)).toMatchObject({ host: far });
  const next = await requests.send("POST", "/api/conversations", { continuedFrom: { id, seed: false } });
  expect(await next.json()).toMatchObject({ host: far });
  expect((await requests.get(at(id))).status).toBe(200);
});
