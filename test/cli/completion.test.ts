/** The completion of `bedrock` in real shells: what a person gets who presses Tab. */
import { execFile, execFileSync, spawn } from "node:child_process";
import { symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { newId } from "../../client/index.ts";
import { Person } from "../api/person.ts";
import { serveApi, startApiOn } from "../api/support.ts";
import { temporaryFolder } from "../local/support.ts";
import { freePort } from "../../local/ports.ts";
import { startSystem } from "../support/system.ts";
import { run } from "./support.ts";

const PROGRAM = join(import.meta.dirname, "..", "..", "cli", "bedrock.mjs");

const system = await startSystem();
const api = startApiOn(system);
const { url } = await serveApi(api);
const person = new Person(api, system.cwd);

/** The whole word that `list` shows of an id. */
const shown = (id: string): string => id.slice(0, 13);

const SHELLS = ["bash", "zsh", "fish"] as const;
type Shell = (typeof SHELLS)[number];

const isInstalled = (shell: Shell): boolean => {
  try {
    execFileSync(shell, ["-c", "true"], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
};
const installed = SHELLS.filter(isInstalled);
for (const shell of SHELLS)
  if (!installed.includes(shell)) console.warn(`SKIPPED, the completion in ${shell}: it is not installed.`);

/** A person's PATH with `bedrock` on it, as after `npm link`; the script of the shell is in a file. */
async function prepared(shell: Shell, at = url) {
  const folder = temporaryFolder();
  symlinkSync(PROGRAM, join(folder, "bedrock"));
  const file = join(folder, `completion.${shell}`);
  const { code, stdout, stderr } = await run(["completion", shell], { url: at });
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  writeFileSync(file, stdout);
  const env = {
    ...process.env,
    PATH: `${folder}:${process.env["PATH"] ?? ""}`,
    BEDROCK_URL: at,
    TERM: "dumb",
  };
  return { folder, file, env };
}

/** How each shell is started without the person's own settings, and reads the script. */
const INTERACTIVE = {
  bash: { command: "bash --norc --noprofile -i", setup: (file: string) => `source ${file}` },
  zsh: {
    command: "zsh -f -i",
    setup: (file: string) => `bindkey -e; autoload -Uz compinit; compinit -D -u; source ${file}`,
  },
} as const;

/** What stands in the line after Tab was pressed. */
async function pressTab(shell: keyof typeof INTERACTIVE, line: string, at = url): Promise<string> {
  const { folder, file, env } = await prepared(shell, at);
  const { command, setup } = INTERACTIVE[shell];
  const child = spawn("script", ["--quiet", "--return", "--flush", "--command", command, "/dev/null"], {
    cwd: folder,
    env: { ...env, PS1: "> " },
    stdio: ["pipe", "pipe", "inherit"],
  });
  const ended = new Promise((resolve) => child.once("close", resolve));
  onTestFinished(async () => {
    child.kill("SIGKILL");
    await ended;
  });
  let output = "";
  child.stdout.on("data", (chunk: Buffer) => (output += chunk.toString()));
  const shows = (text: string | RegExp) => vi.waitFor(() => expect(output).toMatch(text), 20_000);
  child.stdin.write(`${setup(file)}; echo read"y"\r`);
  await shows("ready");
  // The line is not run, but said: Ctrl-E and Ctrl-A go to its ends.
  child.stdin.write(`${line}\t\x05>'\x01echo '<\r`);
  await shows(/^<bedrock .*>\r?$/m);
  child.stdin.write("exit\r");
  await ended;
  return /^<(bedrock .*)>\r?$/m.exec(output)?.[1]?.trimEnd() ?? "";
}

describe("the script", () => {
  test.for(SHELLS)("for %s is right by its own syntax", async (shell, { skip }) => {
    if (!installed.includes(shell)) skip();
    const { file } = await prepared(shell);
    expect(execFileSync(shell, ["-n", file]).toString()).toBe("");
  });
});

describe.skipIf(!installed.includes("fish"))("fish", () => {
  const offered = async (line: string, at = url): Promise<string[]> => {
    const { folder, file, env } = await prepared("fish", at);
    const ask = ["--no-config", "-c", `source ${file}; complete -C '${line}'`];
    const options = { cwd: folder, env: { ...env, HOME: folder } };
    const { stdout, stderr } = await promisify(execFile)("fish", ask, options);
    expect(stderr).toBe("");
    return stdout.split("\n").filter((each) => each !== "");
  };

  test("completes commands, options, choices and conversations, each with what it is", async () => {
    const id = newId();
    await person.create({ id, title: "Fix: the \x1b[31mbuild" });
    expect(await offered("bedrock app")).toEqual(["approve\tallows what the agent asks for"]);
    expect(await offered("bedrock run --on")).toEqual([
      "--on-approval\twithout a terminal: what becomes of an approval",
    ]);
    expect(await offered("bedrock run --on-approval ")).toEqual(["exit", "deny", "wait"]);
    expect(await offered("bedrock run --on-approval=d")).toEqual(["--on-approval=deny"]);
    expect(await offered(`bedrock attach --json ${id.slice(0, 6)}`)).toEqual([
      `${shown(id)}\tFix: the \\x1b[31mbuild`,
    ]);
    expect(await offered(`bedrock attach ${id}`)).toEqual([expect.stringContaining(id)]);
    expect(await offered(`bedrock mode ${id} `)).toEqual(["restricted"]);
    expect(await offered("bedrock send x --image completion.f")).toEqual(["completion.fish"]);
  });

  test("offers nothing and says nothing where no server answers", async () => {
    expect(await offered("bedrock attach 0", `http://127.0.0.1:${await freePort()}`)).toEqual([]);
  });
});

describe.each(["bash", "zsh"] as const)("%s", (shell) => {
  test.skipIf(!installed.includes(shell))(
    "completes commands, options, choices and conversations",
    async () => {
      const id = newId();
      await person.create({ id, title: "Fix: the 'build'" });
      const lines = {
        "bedrock app": "bedrock approve",
        "bedrock wrap": "bedrock wrap-up",
        "bedrock run --on": "bedrock run --on-approval",
        "bedrock run --on-approval d": "bedrock run --on-approval deny",
        "bedrock run --on-approval=d": "bedrock run --on-approval=deny",
        [`bedrock attach ${id.slice(0, 8)}`]: `bedrock attach ${shown(id)}`,
        [`bedrock run -c ${id.slice(0, 8)}`]: `bedrock run -c ${shown(id)}`,
        [`bedrock mode ${id} r`]: `bedrock mode ${id} restricted`,
        "bedrock send x --image completion.": `bedrock send x --image completion.${shell}`,
      };
      for (const [typed, completed] of Object.entries(lines))
        expect(await pressTab(shell, typed), typed).toBe(completed);
    },
  );
});
