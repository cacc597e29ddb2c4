/** Workers that end during a request, which is asked again elsewhere without loss (REQ-BED-006, 007), or a tool. */
import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { expect, onTestFinished, test } from "vitest";
import { hold } from "../../local/scripted/cues.ts";
import { say, toolCall } from "../../local/scripted/script.ts";
import { TestConversation } from "../support/conversation.ts";
import { startSystem } from "../support/system.ts";
import { startWorkerProcess } from "../support/worker-process.ts";

test("when a worker is killed in a request, another asks again, and the attempt does not count", async () => {
  const system = await startSystem({ workers: 0 });
  const killed = await startWorkerProcess(system);
  const conversation = await TestConversation.open(system);
  const name = randomUUID();
  const held = hold();
  const tag = system.model.script(name, [say("half an ", held), say("A whole answer.")]);
  await conversation.send(`go ${tag}`);
  await held.reached;
  await system.startWorker();
  killed.signal("SIGKILL");
  const again = await system.model.nextRequest(name, 2);
  expect(again.n).toBe(2);
  const { state } = (await conversation.stored()).conversation;
  if (state.kind === "llm_requesting") expect(state.attempt).toBe(1);
  await conversation.untilState("idle");
  const texts = JSON.stringify(await conversation.messages());
  expect(texts).toContain("A whole answer.");
  expect(texts).not.toContain("half an");
});

test("the shutdown of a worker in a request does not act as the person's Stop", async () => {
  const system = await startSystem({ workers: 0 });
  const first = await system.startWorker();
  const conversation = await TestConversation.open(system);
  const name = randomUUID();
  const held = hold();
  const tag = system.model.script(name, [say("half an ", held), say("A whole answer.")]);
  await conversation.send(`go ${tag}`);
  await held.reached;
  await system.startWorker();
  await first.stop();
  await conversation.untilState("idle");
  expect(await conversation.types()).toEqual(["user", "agent", "run_stop"]);
});

test("a worker that is shut down ends, although a tool hangs in the file system", async () => {
  const system = await startSystem({ workers: 0 });
  const worker = await startWorkerProcess(system);
  const conversation = await TestConversation.open(system, "unrestricted");
  const path = join(system.cwd, "held");
  await writeFile(path, "text");
  const holder = await holdFile(path);
  const tag = system.model.script(randomUUID(), [
    say(toolCall("edit", { path, oldText: "text", newText: "new" })),
  ]);
  await conversation.send(`go ${tag}`);
  await holder.opening;
  const asked = performance.now();
  worker.signal("SIGTERM");
  await worker.exited;
  // After 45 s the kernel would let the tool go on.
  expect(performance.now() - asked).toBeLessThan(20_000);
});

/** Makes every open of the file wait in the kernel, as for a disk that does not answer. */
async function holdFile(path: string) {
  const script = `
    open(my $file, "+<", $ARGV[0]) or die;
    $SIG{IO} = sub { syswrite(STDOUT, "opening\\n") };
    fcntl($file, ${F_SETLEASE}, ${F_WRLCK}) or die "fcntl: $!";
    syswrite(STDOUT, "held\\n");
    sleep 1 for 1 .. 60;`;
  const holder = spawn("perl", ["-e", script, path], { stdio: ["ignore", "pipe", "inherit"] });
  onTestFinished(() => void holder.kill("SIGKILL"));
  const lines = createInterface(holder.stdout);
  await once(lines, "line");
  return { opening: once(lines, "line") };
}

const [F_SETLEASE, F_WRLCK] = [1024, 1];
