/** The process that `npm start` runs. */
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import Anthropic from "@anthropic-ai/sdk";
import { afterEach, expect, test } from "vitest";
import { freePort } from "./support.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const children: ChildProcess[] = [];
afterEach(() => {
  for (const child of children.splice(0)) child.kill("SIGKILL");
});

async function start(port: number): Promise<{ child: ChildProcess; url: string }> {
  const child = spawn(process.execPath, ["local/run.mjs", "local/scripted/main.ts"], {
    cwd: ROOT,
    env: { ...process.env, PORT: String(port) },
    stdio: ["ignore", "pipe", "inherit"],
  });
  children.push(child);
  const [line] = (await once(createInterface({ input: child.stdout }), "line")) as [string];
  expect(line).toMatch(/^scripted model ready http:\/\/127\.0\.0\.1:\d+$/);
  return { child, url: line.replace("scripted model ready ", "") };
}

test.each(["SIGTERM", "SIGINT"] as const)(
  "%s ends the server within a second, with a stream open",
  async (signal) => {
    const { child, url } = await start(0);
    const client = new Anthropic({ baseURL: url, apiKey: "any", maxRetries: 0 });
    const stream = client.messages.stream({
      ...{ model: "scripted-demo", max_tokens: 1000 },
      messages: [{ role: "user", content: "Hello. ".repeat(200) }],
    });
    const failed = stream.finalMessage().catch((error: unknown) => error);
    await new Promise((resolve) => stream.once("text", resolve));
    const begun = performance.now();
    child.kill(signal);
    const [code] = (await once(child, "exit")) as [number | null];
    expect(code).toBe(0);
    expect(performance.now() - begun).toBeLessThan(1000);
    expect(await failed).toBeInstanceOf(Error);
  },
);

test("the server listens on the port that it is given", async () => {
  const port = await freePort();
  expect((await start(port)).url).toBe(`http://127.0.0.1:${port}`);
});
