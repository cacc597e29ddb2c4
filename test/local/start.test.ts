/** The whole of `npm start`, as a person runs it: real Postgres, Temporal, worker, API and scripted model. */
import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";
import { freePort } from "../../local/ports.ts";
import { isRunning } from "../../local/process-identity.ts";
import { portsOf } from "../support/ports.ts";
import { familyOf } from "../support/processes.ts";
import { converse, processesOf, refused, ROOT, SLOW, start, stateOf } from "./npm-start.ts";
import { eventually, temporaryFolder } from "./support.ts";

/** The states that a person waits for between the blocks. Without a sandbox the agent asks for no approval. */
const WAITS = ["idle", "tool_executing", "idle", "awaiting_mode_approval|idle", "idle", "idle"];

/** Runs the conversation of README.md as it stands there, at a person's pace; resolves with curl's output. */
async function followReadme(url: string, cwd: string, token: string): Promise<string> {
  const readme = readFileSync(join(ROOT, "README.md"), "utf8");
  const section = readme.slice(readme.indexOf("## One conversation"), readme.indexOf("## Architecture"));
  const blocks = [...section.matchAll(/^```sh\n(.*?)^```$/gms)].map(([, block = ""]) => block);
  expect(blocks).toHaveLength(WAITS.length + 1);
  const waitFor = (kinds: string): string =>
    `until curl -s $api/$id | grep -qE '"kind":"(${kinds})"'; do sleep 0.1; done\n`;
  const script = blocks.flatMap((block, n) => [block, waitFor(WAITS[n] ?? "idle")]).join("");
  const running = promisify(execFile)(
    "bash",
    ["-c", `${script.replaceAll("http://127.0.0.1:3000", url)}kill %1`],
    { cwd, timeout: SLOW },
  );
  // What the person types when the block asks.
  running.child.stdin?.end(`${token}\n`);
  return (await running).stdout;
}

/** Runs the program of README.md as it stands there; resolves with what it prints. */
async function followProgram(url: string): Promise<string> {
  const readme = readFileSync(join(ROOT, "README.md"), "utf8");
  const [, program = ""] = /^```js\n(.*?)^```$/ms.exec(readme) ?? [];
  expect(program.split("\n").length).toBeLessThan(16);
  const { stdout } = await promisify(execFile)(
    process.execPath,
    ["--input-type=module", "--eval", program.replace("http://127.0.0.1:3000", url)],
    // The package's own name leads to its entry here.
    { cwd: ROOT, timeout: SLOW },
  );
  return stdout;
}

describe("npm start", () => {
  test(
    "answers when it prints ready, refuses a second start, replaces killed processes, and leaves nothing running",
    async () => {
      const folder = temporaryFolder();
      const dataDir = join(folder, "data");
      const port = await freePort();
      const token = randomBytes(32).toString("hex");
      // As a person who has chosen the token.
      const first = await start(dataDir, port, { API_TOKEN: token, ANONYMOUS_ROLE: "talk" });
      expect(first.url).toBe(`http://127.0.0.1:${port}`);
      expect((await fetch(`${first.url}/readyz`)).status).toBe(200);
      expect(first.output()).toMatch(/No ANTHROPIC_API_KEY: using the built-in scripted model/);
      expect(first.output()).not.toContain("Web UI");
      const temporal = portsOf(familyOf(first.process.pid ?? 0)).find(({ command }) =>
        command.includes("start-dev"),
      );
      expect(temporal?.command).toContain("--headless");
      expect(first.output().match(/^ready /gm)).toHaveLength(1);

      const another = temporaryFolder();
      expect(await refused(dataDir, await freePort())).toContain("uses " + dataDir);
      expect(await refused(another, port)).toContain("Set PORT to another port");
      const unsafe = await refused(another, 0, { HOST: "0.0.0.0" });
      expect(unsafe).toContain("set API_TOKEN");

      const said = await followReadme(first.url, folder, token);
      expect(said).toContain("event: text.delta");
      expect(said).toMatch(/"reason":"completed".*"reason":"interrupted".*"reason":"completed"/s);
      expect(readFileSync(join(folder, "notes.txt"), "utf8")).toBe("hello\n");
      expect(said).toContain('"kind":"ai_block"');
      expect(said.match(/"kind":"completed","result":"Here is what I saw/g)).toHaveLength(2);

      expect(await followProgram(first.url)).toContain("Here is what I saw");

      const before = processesOf(dataDir);
      expect(Object.keys(before).sort()).toEqual(["api", "postgres", "scripted", "temporal", "worker"]);
      for (const name of ["worker", "postgres"]) process.kill(before[name]?.pid ?? 0, "SIGKILL");
      await eventually(
        "a new worker and a new Postgres",
        () => {
          const now = processesOf(dataDir);
          return ["worker", "postgres"].every((name) => now[name] && now[name].pid !== before[name]?.pid);
        },
        SLOW,
      );
      await eventually("ready again", async () => (await fetch(`${first.url}/readyz`)).status === 200, SLOW);
      const id = await converse(first.url, folder, "Hello");
      await eventually("an answer", async () => (await stateOf(first.url, id)) === "idle", SLOW);

      const running = Object.values(processesOf(dataDir));
      const stopAt = performance.now();
      first.process.kill("SIGINT");
      const [code] = (await once(first.process, "exit")) as [number];
      expect(code).toBe(0);
      expect(performance.now() - stopAt).toBeLessThan(10_000);
      expect(running.filter(isRunning)).toEqual([]);
    },
    2 * SLOW,
  );

  test(
    "leaves nothing running after kill -9, and comes up clean: running work is interrupted, and all messages are there",
    async () => {
      const folder = temporaryFolder();
      const dataDir = join(folder, "data");
      const port = await freePort();
      const first = await start(dataDir, port);
      const id = await converse(first.url, folder, "run: sleep 600");
      await eventually("the command", async () => (await stateOf(first.url, id)) === "tool_executing", SLOW);
      const before = processesOf(dataDir);
      expect(Object.keys(before).sort()).toEqual(["api", "postgres", "scripted", "temporal", "worker"]);
      first.process.kill("SIGKILL");
      await once(first.process, "exit");
      await eventually("the end of all", () => !Object.values(before).some(isRunning));

      const second = await start(dataDir, port);
      expect(second.output()).not.toContain("earlier start");
      expect(await stateOf(second.url, id)).toBe("idle");
      const messages = await (await fetch(`${second.url}/api/conversations/${id}/messages`)).text();
      expect(messages).toContain("run: sleep 600");
      expect(messages).toMatch(/"status":"interrupted"/);

      // The second signal does not wait for anything.
      const after = Object.values(processesOf(dataDir));
      second.process.kill("SIGTERM");
      await eventually("the first signal", () => second.output().includes("Stopping"));
      second.process.kill("SIGTERM");
      await once(second.process, "exit");
      await eventually("the end of all", () => !after.some(isRunning), 2000);
    },
    2 * SLOW,
  );

  test(
    "goes on when its output is closed, and leaves nothing running then either",
    async () => {
      const dataDir = join(temporaryFolder(), "data");
      const started = await start(dataDir, await freePort());
      started.process.stdout?.destroy();
      started.process.stderr?.destroy();
      const before = processesOf(dataDir);
      // The death of a worker makes it print a line.
      process.kill(before["worker"]?.pid ?? 0, "SIGKILL");
      await eventually(
        "another worker",
        () => {
          const worker = processesOf(dataDir)["worker"];
          return worker !== undefined && worker.pid !== before["worker"]?.pid;
        },
        SLOW,
      );
      const running = Object.values(processesOf(dataDir));
      started.process.kill("SIGTERM");
      await once(started.process, "exit");
      expect(running.filter(isRunning)).toEqual([]);
    },
    SLOW,
  );
});
