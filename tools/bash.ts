/** Owns: the `bash` tool: one command line, its output and exit code as text. */
import { z } from "zod";
import { runCommand, type CommandResult } from "../sandbox/command.ts";
import { confine } from "../sandbox/host.ts";
import { commandEnvironment } from "../sandbox/environment.ts";
import { dangerIn } from "./safety/check.ts";
import { completed, defineTool, failed, interrupted, type ToolRun } from "./tool.ts";

const DEFAULT_TIMEOUT_SECONDS = 120;
const MAX_TIMEOUT_SECONDS = 600;
/** Bytes of output that the model gets to read. */
const OUTPUT_LIMIT = 30 * 1024;

export const bash = defineTool({
  name: "bash",
  description: `Run a command line with bash in the working directory and get what it prints (standard output and standard error together) and its exit code.

Each call is a new shell: directory changes and variables do not persist. There is no terminal and no input; do not start editors, pagers or prompts. Whatever is still running in the background when the command returns is killed. Output beyond ${OUTPUT_LIMIT / 1024} KiB is cut in its middle: filter it, or write it to a file.

Some commands are never run: git add with -A, --all, . or *; git push with --force; rm -rf of /, ~, .git, * and the like; what bash cannot parse.

In Restricted mode commands run in a kernel sandbox: they can read files (not the server's own, nor devices) but not create, change, delete or lock any (except writing to /dev/null; SQLite reads a database without locks as file:PATH?immutable=1), have no network access, cannot signal or inspect processes outside, and have limited memory, CPU time and processes. What it blocks fails with "Permission denied" or "Operation not permitted"; do not retry or work around it.`,
  whenRestricted: {
    user: "If the task needs more, call request_mode_upgrade.",
    subAgent: "If your task needs more, say so in your result.",
  },
  input: z.strictObject({
    command: z.string().min(1).describe("The command line"),
    timeoutSeconds: z
      .number()
      .positive()
      .max(MAX_TIMEOUT_SECONDS)
      .optional()
      .describe(
        `Seconds after which the command is killed; default ${DEFAULT_TIMEOUT_SECONDS}, at most ${MAX_TIMEOUT_SECONDS}`,
      ),
  }),
  async run(
    { command, timeoutSeconds = DEFAULT_TIMEOUT_SECONDS },
    { cwd, mode, isSubAgent, hidden, signal, lease, onOutput, env },
  ) {
    if (command.includes("\0"))
      return failed("The command contains a NUL character, which no shell can run.");
    const danger = dangerIn(command);
    if (danger !== null) return failed(`Not run, none of it. ${danger}`);
    const confinement = mode === "restricted" ? await confine(hidden) : null;
    if (typeof confinement === "string") {
      // Running without enforcement would be worse than not running.
      const instead = isSubAgent
        ? "Do your task without commands, or say in your result that it needs them."
        : "Use request_mode_upgrade to ask the user for Unrestricted mode.";
      return failed(`Sandbox unavailable: the command was not run. ${confinement} ${instead}`);
    }
    const result = await runCommand({
      confinement,
      argv: ["bash", "-c", command],
      cwd,
      env: env ?? commandEnvironment(),
      signal,
      timeoutMs: timeoutSeconds * 1000,
      limitBytes: OUTPUT_LIMIT,
      ...(lease === undefined ? {} : { lease }),
      ...(onOutput === undefined ? {} : { onOutput }),
    });
    return describe(result, timeoutSeconds);
  },
});

function describe(result: CommandResult, timeoutSeconds: number): ToolRun {
  const { output, exitCode } = result;
  if (result.spawnError !== null) return failed(`The command could not be started: ${result.spawnError}.`);
  if (result.aborted) return interrupted(output);
  if (result.outOfMemory) return failed(withNote(output, "took more memory than it may and was killed"));
  if (result.timedOut) return failed(withNote(output, `timed out after ${timeoutSeconds} s and was killed`));
  if (result.flooded) return failed(withNote(output, "printed without end and was killed"));
  if (exitCode === 0) return completed(output);
  return failed(withNote(output, exitCode === null ? howKilled(result.signal) : `exit code ${exitCode}`));
}

/** The limits of the sandbox that end a command by a signal. */
const LIMITS: Readonly<Partial<Record<NodeJS.Signals, string>>> = {
  SIGXFSZ: "in Restricted mode no file can be written, temporary ones included",
  SIGXCPU: "it used more processor time than Restricted mode allows",
};

function howKilled(signal: CommandResult["signal"]): string {
  if (signal === null) return "killed by a signal";
  const limit = LIMITS[signal];
  return `killed by ${signal}${limit === undefined ? "" : `: ${limit}`}`;
}

function withNote(output: string, note: string): string {
  const text = output.trim() === "" ? "(no output)" : output.trimEnd();
  return `${text}\n[${note}]`;
}
