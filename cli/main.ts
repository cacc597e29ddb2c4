/** Owns: the commands of `bedrock`: their names, options and help, and the exit code of each (docs/command-line.md). */
import { text as readAll } from "node:stream/consumers";
import { Command, CommanderError, Option } from "commander";
import { createCalls, Refused, Unreachable } from "../client/index.ts";
import { ROLES } from "../protocol/access.ts";
import { askPerson } from "./approval.ts";
import { candidatesFor, COMPLETE, completionFor, SHELLS, type Shell } from "./completion.ts";
import { tokenQuestion } from "./decide.ts";
import { EXIT, exitCodeOf, UsageError, type ExitCode } from "./exit-codes.ts";
import type { Ask, OnApproval } from "./follow.ts";
import { insistent } from "./insist.ts";
import { collected, eventNumber, positive } from "./options.ts";
import { placeOf, withPlace, type Place } from "./place.ts";
import type { Format } from "./run.ts";
import { serverOf, type Env } from "./server.ts";
import type { TokenFlags } from "./token.ts";
import { Terminal, type ProcessStreams } from "./terminal.ts";

/** Seconds for which a server may be away. */
const PATIENCE = 60;
/** Milliseconds. */
const LONG = 1_000_000;

type OutputFlags = { readonly json?: true; readonly streamJson?: true };
type FollowingFlags = OutputFlags & {
  readonly onApproval?: Exclude<OnApproval, "ask">;
  readonly patience: number;
  readonly timeout?: number;
};

/** What `bedrock` is: one command, and then the end of this process. */
export async function main(env: Env, args: readonly string[]): Promise<never> {
  const { stdin: input, stdout: output, stderr: errors } = process;
  // Node ends when nothing but timers of AbortSignal is left, also in the middle of a request (exit code 13).
  const awake = setInterval(() => undefined, LONG);
  const code = await runCommand(args, env, { input, output, errors });
  clearInterval(awake);
  process.exit(code);
}

async function runCommand(args: readonly string[], env: Env, streams: ProcessStreams): Promise<ExitCode> {
  const terminal = new Terminal(streams);
  let code: ExitCode = EXIT.done;
  const program = commands(terminal, streams, env, (ended) => (code = ended));
  try {
    await program.parseAsync(args, { from: "user" });
    return code;
  } catch (error) {
    // Commander has said it; help and the version are no errors.
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.done : EXIT.usage;
    tellError(terminal, error, env);
    return exitCodeOf(error);
  } finally {
    await terminal.flush();
  }
}

function tellError(terminal: Terminal, error: unknown, env: Env): void {
  if (error instanceof Unreachable) {
    terminal.tell(`No server answers at ${serverOf(env).url}. Start it with: bedrock start`, "red");
    terminal.tell("If it is elsewhere, set BEDROCK_URL.");
    return;
  }
  if (error instanceof Refused && error.problem.code === "unauthorized") {
    terminal.tell("The server asks for a token. Set BEDROCK_TOKEN or BEDROCK_TOKEN_FILE.", "red");
    return;
  }
  terminal.tell(error instanceof Error ? error.message : String(error), "red");
}

function commands(
  terminal: Terminal,
  streams: ProcessStreams,
  env: Env,
  end: (code: ExitCode) => void,
): Command {
  const program = new Command("bedrock")
    .description(
      "Conversations with a coding agent that survive crashes, stop when told to, and ask before they write.",
    )
    .exitOverride()
    .configureOutput({
      writeOut: (text) => void streams.output.write(text),
      writeErr: (text) => void streams.errors.write(text),
    })
    .showHelpAfterError("(bedrock help shows the commands)")
    .addHelpText(
      "after",
      `
Examples:
  bedrock start                              the system; then, in another terminal:
  bedrock run "Why does the test fail?"      one prompt in this directory
  git diff | bedrock run "Review this:" -    with more text from standard input
  bedrock run --on-approval=deny "…" || …    in a script
  bedrock list                               what there is, and what waits for you

The server is at BEDROCK_URL (http://127.0.0.1:3000), its token in BEDROCK_TOKEN or BEDROCK_TOKEN_FILE.
Exit codes: 0 done, 1 failed, 2 waits for an approval, 3 context used up, 64 wrong use, 69 unreachable,
77 unauthorised, 124 time-out, 130 stopped.`,
    );

  const json = () => new Option("--json", "one JSON object on standard output");
  const context = (flags: OutputFlags) => ({
    terminal,
    calls: insistent(createCalls(serverOf(env)), { terminal }),
    isJson: flags.json === true,
  });
  const askToken = terminal.isInteractive ? tokenQuestion(streams, terminal) : null;
  const ask: Ask = (approval, signal) => askPerson(streams, terminal, approval, signal);
  const following = (flags: FollowingFlags) => {
    const format: Format = flags.streamJson ? "stream-json" : flags.json ? "json" : "text";
    const canAsk = terminal.isInteractive && format === "text";
    return {
      format,
      onApproval: flags.onApproval ?? (canAsk ? ("ask" as const) : ("exit" as const)),
      ask,
      askToken,
      patience: flags.patience,
      timeout: flags.timeout ?? null,
    };
  };
  const withFollowing = (command: Command): Command =>
    command
      .addOption(json().conflicts("streamJson"))
      .option("--stream-json", "the server's events, one a line")
      .addOption(
        new Option("--on-approval <what>", "without a terminal: what becomes of an approval").choices([
          "exit",
          "deny",
          "wait",
        ]),
      )
      .option("--timeout <seconds>", "stops the run after this time", positive)
      .option("--patience <seconds>", "how long the server may be away", positive, PATIENCE);

  program
    .command("start")
    .summary("starts the system, until Ctrl-C")
    .description(
      "Starts PostgreSQL, Temporal, the worker and the API, as npm start does. It prints the address.",
    )
    .action(async () => {
      const { startHere } = await import("./system.ts");
      end(await startHere(env));
    });

  program
    .command("stop")
    .summary("stops the system, also one that an editor has started")
    .action(async () => {
      const { stop } = await import("./system.ts");
      end(await stop(terminal, env));
    });

  withPlace(withFollowing(program.command("run")))
    .summary("one prompt: streams, ends")
    .description(
      "Sends a prompt, prints what the agent says, and ends when it is done. Ctrl-C stops the agent.",
    )
    .argument("<prompt...>", '"-" stands for standard input')
    .option("-c, --conversation <id>", "in this conversation; a new one unless given")
    .option("--image <file>", "adds an image; may be repeated", collected, [])
    .action(
      async (
        words: string[],
        flags: FollowingFlags &
          Place & {
            readonly conversation?: string;
            readonly image: readonly string[];
          },
      ) => {
        const { run } = await import("./run.ts");
        const { conversation = null, image: images } = flags;
        const prompt = await promptOf(words, streams);
        const options = { ...following(flags), prompt, conversation, place: placeOf(flags), images };
        end(await run(terminal, serverOf(env), options));
      },
    );

  withPlace(program.command("chat"))
    .summary("many prompts, line by line")
    .argument("[id]", "a conversation; a new one unless given")
    .option("--patience <seconds>", "without a terminal: how long the server may be away", positive, PATIENCE)
    .action(async (id: string | undefined, flags: Place & { readonly patience: number }) => {
      const { chat } = await import("./chat.ts");
      const { patience } = flags;
      const place = placeOf(flags);
      end(await chat(streams, serverOf(env), { conversation: id ?? null, place, patience }));
    });

  withFollowing(program.command("attach"))
    .summary("follows a conversation until its run ends")
    .description("Shows the last run and follows it. Ctrl-C ends the watching only.")
    .argument("<id>")
    .addOption(
      new Option("--after <number>", "begins after this event, with --stream-json or without").argParser(
        eventNumber,
      ),
    )
    .action(async (id: string, flags: FollowingFlags & { readonly after?: number }) => {
      const { attach } = await import("./run.ts");
      const options = { ...following(flags), conversation: id, after: flags.after ?? null };
      end(await attach(terminal, serverOf(env), options));
    });

  program
    .command("list")
    .summary("the conversations, newest first")
    .option("--archived", "also those in the archive")
    .addOption(json())
    .action(async (flags: OutputFlags & { readonly archived?: true }) => {
      const { list } = await import("./conversations.ts");
      await list(context(flags), flags.archived === true);
    });

  program
    .command("new")
    .summary("makes a conversation, prints its id")
    .option("--cwd <directory>", "where it works; this directory unless given")
    .option("--host <name>", "the tool host that has the directory")
    .option("--model <id>")
    .option("--title <text>")
    .option("--continue <id>", "goes on from a conversation whose context is used up")
    .option("--no-summary", "with --continue: begins without the summary")
    .addOption(json())
    .action(
      async (
        flags: OutputFlags & {
          readonly cwd?: string;
          readonly host?: string;
          readonly model?: string;
          readonly title?: string;
          readonly continue?: string;
          readonly summary: boolean;
        },
      ) => {
        const { create } = await import("./conversations.ts");
        const { cwd = null, host = null, model = null, title = null } = flags;
        const { continue: continues = null, summary: seed } = flags;
        await create(context(flags), { cwd, host, model, title, continues, seed });
      },
    );

  program
    .command("send")
    .summary("sends a message, and does not wait")
    .argument("<id>")
    .argument("<text...>", '"-" stands for standard input')
    .addOption(
      new Option(
        "--delivery <how>",
        "while the agent works: joins the next request, or starts after this run",
      ).choices(["direct", "steer", "followUp"]),
    )
    .option("--image <file>", "adds an image; may be repeated", collected, [])
    .addOption(json())
    .action(
      async (
        id: string,
        words: string[],
        flags: OutputFlags & {
          readonly delivery?: "direct" | "steer" | "followUp";
          readonly image: string[];
        },
      ) => {
        const { send } = await import("./conversations.ts");
        const text = await promptOf(words, streams);
        await send(context(flags), id, text, { delivery: flags.delivery ?? null, images: flags.image });
      },
    );

  program
    .command("cancel")
    .summary("stops what runs, with its whole process tree")
    .argument("<id>")
    .addOption(
      new Option("--queue <what>", "what becomes of messages that wait")
        .choices(["hold", "run", "clear"])
        .default("hold"),
    )
    .addOption(json())
    .action(async (id: string, flags: OutputFlags & { readonly queue: "hold" | "run" | "clear" }) => {
      const { cancel } = await import("./conversations.ts");
      await cancel(context(flags), id, flags.queue);
    });

  const simple = (name: string, summary: string, act: (id: string, flags: OutputFlags) => Promise<void>) =>
    program
      .command(name)
      .summary(summary)
      .argument("<id>")
      .addOption(json())
      .action((id: string, flags: OutputFlags) => act(id, flags));
  const load = () => import("./conversations.ts");
  simple("release", "lets messages that are held go on", async (id, flags) =>
    (await load()).release(context(flags), id),
  );
  const deciding = (flags: OutputFlags) => ({ ...context(flags), server: serverOf(env), askToken });
  simple("approve", "allows what the agent asks for", async (id, flags) =>
    (await load()).decide(deciding(flags), id, "approve"),
  );
  simple("deny", "denies it", async (id, flags) => (await load()).decide(deciding(flags), id, "deny"));
  simple("wrap-up", "a summary now, to go on from", async (id, flags) =>
    (await load()).wrapUp(context(flags), id),
  );

  program
    .command("spending")
    .summary("what was spent today, or by a conversation")
    .description("By all conversations since 00:00 UTC, or by one with its sub-agents; and the limits.")
    .argument("[id]")
    .addOption(json())
    .action(async (id: string | undefined, flags: OutputFlags) => {
      const { spending } = await import("./spending.ts");
      await spending(context(flags), id ?? null);
    });

  program
    .command("mode")
    .summary("back to Restricted mode")
    .description("Only an approval leads out of Restricted mode; this leads back.")
    .argument("<id>")
    .addArgument(program.createArgument("<mode>").choices(["restricted"]))
    .addOption(json())
    .action(async (id: string, _mode: string, flags: OutputFlags) =>
      (await load()).restrict(context(flags), id),
    );

  program
    .command("cycles")
    .summary("what was done, in steps")
    .argument("<id>")
    .addOption(new Option("--view <view>").choices(["steps", "rounds"]).default("steps"))
    .addOption(json())
    .action(async (id: string, flags: OutputFlags & { readonly view: "steps" | "rounds" }) => {
      const { cycles } = await import("./export.ts");
      await cycles(context(flags), id, flags.view);
    });

  program
    .command("trace")
    .summary("where the time of a turn went")
    .description("The last turn unless --cycle names one: a sentence, the parts, and what was done when.")
    .argument("<id>")
    .option("--cycle <id>", "the turn that this message began")
    .addOption(json())
    .action(async (id: string, flags: OutputFlags & { readonly cycle?: string }) => {
      const { trace } = await import("./trace.ts");
      await trace(context(flags), id, flags.cycle ?? null);
    });

  program
    .command("export")
    .summary("the whole conversation")
    .argument("<id>")
    .option("--md", "as Markdown (unless --json)")
    .addOption(json().conflicts("md"))
    .action(async (id: string, flags: OutputFlags) => {
      const { exportConversation } = await import("./export.ts");
      await exportConversation(context(flags), id);
    });

  program
    .command("token")
    .summary("makes a token for a person or a program")
    .description(
      "Prints a new token once, and its entry for the file that API_TOKENS_FILE names. It asks no server.",
    )
    .argument("<name>", "whose it is; an approval names it")
    .addOption(
      new Option("--role <role>", "what it may do; each role includes those before it")
        .choices(ROLES)
        .makeOptionMandatory(),
    )
    .option("--expires <time>", "2027-01-31, or with a time")
    .option("--requests-per-minute <number>", "600 unless given", positive)
    .addOption(json())
    .action(async (name: string, flags: TokenFlags) => {
      const { makeToken } = await import("./token.ts");
      makeToken(terminal, name, flags);
    });

  program
    .command("acp")
    .summary("the bridge for editors, on standard input and output")
    .description(
      "Speaks the Agent Client Protocol. It starts the system if none answers and BEDROCK_URL is not set.",
    )
    .action(async () => {
      const { acp } = await import("./acp.ts");
      end(await acp(terminal, streams, env));
    });

  program
    .command("doctor")
    .summary("what this machine lacks, and what to do")
    .addOption(json())
    .action(async (flags: OutputFlags) => {
      const { doctor } = await import("./doctor.ts");
      end(await doctor(terminal, env, flags.json === true));
    });

  program
    .command("completion")
    .summary("a completion script for a shell")
    .addArgument(program.createArgument("<shell>").choices(SHELLS))
    .addHelpText("after", "\nFor bash: bedrock completion bash >> ~/.bashrc")
    .action((shell: Shell) => terminal.data(completionFor(shell)));

  program
    .command(COMPLETE, { hidden: true })
    .argument("[words...]")
    // They are those of another command.
    .allowUnknownOption()
    .helpOption(false)
    .action(async (line: string[]) => {
      const candidates = candidatesFor(program, line);
      const { complete } = await import("./conversations.ts");
      await complete(context({}), candidates);
    });

  return program;
}

/** The words of the command line; "-" stands for standard input. @throws UsageError */
async function promptOf(words: readonly string[], { input }: ProcessStreams): Promise<string> {
  const parts: string[] = [];
  for (const word of words) parts.push(word === "-" ? await readAll(input) : word);
  const prompt = parts.join(" ").trim();
  if (prompt === "") throw new UsageError("The prompt is empty.");
  return prompt;
}
