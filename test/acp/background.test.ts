/** `bedrock acp` where no server answers: it starts the system, which outlives the editor; `bedrock stop` ends it. */
import { mkdirSync, writeFileSync } from "node:fs";
import { createServer as createHttpServer } from "node:http";
import { createServer } from "node:net";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { dataFolders, holderOfData } from "../../local/data-dir.ts";
import { freePort } from "../../local/ports.ts";
import { identify, isRunning, type ProcessIdentity } from "../../local/process-identity.ts";
import { bedrock, run, type Options } from "../cli/support.ts";
import { processesOf } from "../local/npm-start.ts";
import { temporaryFolder } from "../local/support.ts";
import { familyOf } from "../support/processes.ts";
import { openEditor, type Editor } from "./editor.ts";

const SLOW = 180_000;

/** Settings of an installation of its own: as a person has them, without the address of a server. */
type Installation = { readonly DATA_DIR: string; readonly PORT: string; readonly SCRIPTED_MODEL: "1" };

async function installation(settings: Partial<Installation> = {}) {
  const cwd = temporaryFolder();
  const env: Installation = {
    DATA_DIR: join(cwd, "data"),
    PORT: String(await freePort()),
    SCRIPTED_MODEL: "1",
    ...settings,
  };
  const here: Options = { url: "", env, cwd };
  const launcher = () => holderOfData(dataFolders(env.DATA_DIR));
  /** The process that started all others, and all of these. */
  const all = (): readonly ProcessIdentity[] => {
    const first = launcher();
    const below = first === null ? [] : familyOf(first.pid).flatMap((pid) => identify(pid) ?? []);
    return [...below, ...Object.values(processesOf(env.DATA_DIR))];
  };
  onTestFinished(async () => {
    await run(["stop"], here);
  });
  return { env, here, cwd, launcher, all };
}

const begin = async ({ agent }: Editor, cwd: string): Promise<string> =>
  (await agent.request("session/new", { cwd, mcpServers: [] })).sessionId;
const prompt = (editor: Editor, sessionId: string, text: string) =>
  editor.agent.request("session/prompt", { sessionId, prompt: [{ type: "text", text }] });

describe("an editor where no server answers", () => {
  test(
    "gets a system that goes on without it; the next editor has the same one; stop ends all of its processes",
    async () => {
      const { env, here, cwd, launcher, all } = await installation();
      expect(await run(["stop"], here)).toEqual({
        code: 0,
        stdout: "",
        stderr: `Nothing runs with the data in ${env.DATA_DIR}.\n`,
      });

      const first = await openEditor(env);
      const id = await begin(first, cwd);
      expect(await prompt(first, id, "Hello.")).toEqual({ stopReason: "end_turn" });
      const started = launcher();
      // Of the others, some live for a moment only.
      const lasting = Object.entries(processesOf(env.DATA_DIR));
      expect(lasting.map(([name]) => name).sort()).toEqual([
        ...["api", "postgres", "scripted", "temporal", "worker"],
      ]);
      await first.kill();
      expect(lasting.filter(([, each]) => !isRunning(each))).toEqual([]);

      const second = await openEditor(env);
      await second.agent.request("session/load", { sessionId: id, cwd, mcpServers: [] });
      expect(second.said()).not.toBe("");
      expect(await prompt(second, id, "Once more.")).toEqual({ stopReason: "end_turn" });
      expect(launcher()).toEqual(started);
      // The other commands find it by the same settings.
      expect((await run(["list"], here)).stdout).toContain(id.slice(0, 13));

      const before = all();
      expect(await run(["stop"], here)).toEqual({ code: 0, stdout: "", stderr: "Stopped.\n" });
      expect(lasting.filter(([, each]) => isRunning(each))).toEqual([]);
      // What these had started ends with them, in the next moment.
      await expect.poll(() => before.filter(isRunning)).toEqual([]);
      expect((await run(["stop"], here)).stderr).toContain("Nothing runs");
    },
    SLOW,
  );

  test(
    "shares one system with another that comes at the same moment",
    async () => {
      const { env, cwd, all, launcher } = await installation();
      const editors = await Promise.all([openEditor(env), openEditor(env), openEditor(env)]);
      const started = launcher();
      const ids = await Promise.all(editors.map((editor) => begin(editor, cwd)));
      for (const [n, editor] of editors.entries())
        expect(await prompt(editor, ids[n] ?? "", "Hello.")).toEqual({ stopReason: "end_turn" });
      const { sessions } = await editors[0].agent.request("session/list", { cwd });
      expect(sessions.map(({ sessionId }) => sessionId).sort()).toEqual(ids.sort());
      expect(launcher()).toEqual(started);
      expect(all().length).toBeGreaterThan(5);
    },
    SLOW,
  );

  test(
    "uses a system that is just being started by a person",
    async () => {
      const { env, here, cwd, launcher } = await installation();
      const person = bedrock(["start"], here);
      await expect.poll(() => launcher()).not.toBeNull();
      const started = launcher();
      const editor = await openEditor(env);
      expect(await prompt(editor, await begin(editor, cwd), "Hello.")).toEqual({ stopReason: "end_turn" });
      expect(launcher()).toEqual(started);
      await editor.kill();
      person.kill("SIGINT");
      expect((await person.ended).code).toBe(0);
    },
    SLOW,
  );
});

describe("a start that fails", () => {
  const refused = async (here: Options): Promise<string> => {
    const { code, stdout, stderr } = await run(["acp"], here);
    expect({ code, stdout }, stderr).toEqual({ code: 69, stdout: "" });
    expect(stderr).not.toMatch(/^\s+at /m);
    return stderr;
  };
  /** A program that listens, and answers in its own way or not at all. */
  async function occupied(kind: "http" | "silent"): Promise<string> {
    const server =
      kind === "http"
        ? createHttpServer((_, answer) => answer.writeHead(404).end("Not found"))
        : createServer((socket) => socket.on("error", () => undefined));
    await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
    onTestFinished(() => void server.close());
    return String((server.address() as AddressInfo).port);
  }

  test.for(["http", "silent"] as const)(
    "says that another program has the port (%s)",
    { timeout: SLOW },
    async (kind) => {
      const { here, launcher } = await installation({ PORT: await occupied(kind) });
      expect(await refused(here)).toMatch(/[Aa]nother program .*\bPORT\b/);
      expect(launcher()).toBeNull();
    },
  );

  test(
    "says that Postgres can not start",
    async () => {
      const { env, here, launcher } = await installation();
      mkdirSync(env.DATA_DIR);
      writeFileSync(join(env.DATA_DIR, "pg18"), "");
      expect(await refused(here)).toContain("holds no PostgreSQL cluster. Move it away");
      expect(launcher()).toBeNull();
    },
    SLOW,
  );

  test(
    "says that another Postgres can not be reached",
    async () => {
      const { env, here } = await installation();
      const nowhere = { ...env, DATABASE_URL: `postgres://nobody@127.0.0.1:${await freePort()}/none` };
      expect(await refused({ ...here, env: nowhere })).toMatch(
        /DATABASE_URL cannot be used: .*Start it, or correct the address\./,
      );
    },
    SLOW,
  );

  test("says that the data can not be written", async () => {
    const file = join(temporaryFolder(), "file");
    writeFileSync(file, "");
    const { here } = await installation({ DATA_DIR: join(file, "data") });
    expect(await refused(here)).toContain("Set another one.");
  });

  test(
    "says that a system with the same data answers elsewhere",
    async () => {
      const { env, here } = await installation();
      await (await openEditor(env)).kill();
      const elsewhere = { ...here, env: { ...env, PORT: String(await freePort()) } };
      expect(await refused(elsewhere)).toContain(`Set BEDROCK_URL=http://127.0.0.1:${env.PORT}`);
    },
    SLOW,
  );

  test("is not tried where BEDROCK_URL names a server: that is somebody else's", async () => {
    const { here, launcher } = await installation();
    const url = `http://127.0.0.1:${await freePort()}`;
    expect(await refused({ ...here, url })).toContain(`No server answers at ${url}.`);
    expect(launcher()).toBeNull();
  });
});
