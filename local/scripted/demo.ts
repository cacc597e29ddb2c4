/**
 * Owns: the demo agent, which answers when nothing else is scripted. It has no state: what it does next follows
 * from the request alone, as with a real model. It uses only tools that the request offers.
 */
import type { MessageParam, MessagesRequest, ToolResultParam, ToolUseParam } from "./messages.ts";
import {
  contentBlocks,
  resultText,
  textsOf,
  toolCallsOf,
  toolNames,
  toolResultsOf,
  userTexts,
} from "./reading.ts";
import { answer, thinking, toolCall, type Answer, type ScriptedBlock } from "./script.ts";
import type { ParsedRequest } from "./scripts.ts";

type Parts = (string | ScriptedBlock)[];

const PACE = { characters: 6, delayMs: 5 };
/** A file that is read may say the same somewhere. */
const RESTRICTED = /^\w+ tool is disabled in Restricted mode/i;
const DENIED = /\b(den(y|ied)|declined|rejected|refused|cancelled|skipped|interrupted)\b/i;

const GREETING =
  "Hello! I am the scripted demo model of Bedrock. No real model is behind me: I follow a small script, " +
  "but the tools that I call are real and run in your directory. Let me look around.";
const HELP =
  "I am only the scripted demo model, so I understand a few commands: `run: <command>`, " +
  "`write: <path> <text>` and `delegate: <task> ; <task>`. With an Anthropic API key a real model answers here.";

export function demo({ body }: ParsedRequest): Answer {
  const parts = toolNames(body).length === 0 ? [summarise(body)] : decide(body);
  const thinks = body.thinking?.type === "enabled" || body.thinking?.type === "adaptive";
  const thought = thinking("I follow my script: look at the last message, then pick the next step.");
  return answer(thinks ? [thought, ...parts] : parts, { pace: PACE });
}

function decide(body: MessagesRequest): Parts {
  const last = body.messages.at(-1);
  const pairs = pairsOf(body.messages, body.messages.length - 1);
  const command = commandIn(textsOf(last));
  if (pairs.length === 0) return command === null ? begin(body) : obey(command, body);
  if (command !== null) return [report(pairs), ...obey(command, body)];
  return proceed(pairs, body);
}

/** A message without a command. */
function begin(body: MessagesRequest): Parts {
  const isFirst = !body.messages.some((message) => message.role === "assistant");
  const [look, ...more] = lookAround(body);
  if (offers(body, "submit_result"))
    return look === undefined || !isFirst
      ? [submit("There was nothing that I could do with my tools.", true)]
      : ["I take a look.", look];
  if (!isFirst) return [HELP];
  return look === undefined ? [GREETING, HELP] : [GREETING, look, ...more];
}

function lookAround(body: MessagesRequest): ScriptedBlock[] {
  const ls = body.tools?.find((tool) => tool.name === "ls");
  const properties = ls?.input_schema["properties"] ?? null;
  const takesPath = typeof properties === "object" && properties !== null && "path" in properties;
  return [
    ...(ls === undefined ? [] : [toolCall("ls", takesPath ? { path: "." } : {})]),
    ...(offers(body, "bash") ? [toolCall("bash", { command: "pwd && uname -sm" })] : []),
  ];
}

type Command =
  | { readonly kind: "run"; readonly command: string }
  | { readonly kind: "write"; readonly path: string; readonly content: string }
  | { readonly kind: "delegate"; readonly tasks: readonly string[] };

/** The command in the last text that has one. */
function commandIn(texts: readonly string[]): Command | null {
  for (const text of texts.toReversed()) {
    const [, kind, rest = ""] = /^\s*(run|write|delegate):[ \t]*(\S.*)$/m.exec(text) ?? [];
    if (kind === "run") return { kind, command: rest.trim() };
    if (kind === "delegate") return { kind, tasks: rest.split(";").flatMap((task) => task.trim() || []) };
    if (kind === "write") {
      const [path = "", ...words] = rest.trim().split(" ");
      return { kind, path, content: `${words.join(" ")}\n` };
    }
  }
  return null;
}

function obey(command: Command, body: MessagesRequest): Parts {
  switch (command.kind) {
    case "run":
      return offers(body, "bash")
        ? [`I run \`${command.command}\`.`, toolCall("bash", { command: command.command })]
        : cannot("run commands", body);
    case "write": {
      const { path, content } = command;
      return offers(body, "write")
        ? [`I write ${path}.`, toolCall("write", { path, content })]
        : cannot("write files", body);
    }
    case "delegate": {
      const tasks = command.tasks.map((task) => ({ task }));
      return offers(body, "spawn_agents")
        ? [`I hand this to ${tasks.length} sub-agents.`, toolCall("spawn_agents", { tasks })]
        : cannot("delegate", body);
    }
  }
}

function cannot(what: string, body: MessagesRequest): Parts {
  const excuse = `I cannot ${what} here: the tool for it is not offered to me.`;
  return offers(body, "submit_result") ? [submit(excuse, false)] : [excuse];
}

/** Tool results without a command beside them. */
function proceed(pairs: readonly Pair[], body: MessagesRequest): Parts {
  const decision = pairs.find(({ call }) => call.name === "request_mode_upgrade");
  if (decision !== undefined) return afterDecision(decision, body);
  const run = runOf(body);
  const asked = run.some(({ call }) => call.name === "request_mode_upgrade");
  const refused = pairs.find(isRestricted);
  if (refused !== undefined && !asked && offers(body, "request_mode_upgrade"))
    return [
      `\`${refused.call.name}\` is disabled in Restricted mode. I ask for more.`,
      toolCall("request_mode_upgrade", { reason: `I was asked to use \`${refused.call.name}\`.` }),
    ];
  if (offers(body, "submit_result")) return [submit(report(run), !pairs.some(failed))];
  const readme = readmeIn(pairs);
  if (readme !== null && offers(body, "read"))
    return [`There is a ${readme}; I read it.`, toolCall("read", { path: readme })];
  return [report(run)];
}

function afterDecision(decision: Pair, body: MessagesRequest): Parts {
  const said = resultText(decision.result);
  const refused = runOf(body).findLast(isRestricted);
  if (refused === undefined || (DENIED.test(said) && !/already in unrestricted/i.test(said)))
    return [`I leave it at that. The answer to my request was: ${clip(said, 300)}`];
  return ["Thank you. I try again.", toolCall(refused.call.name, refused.call.input)];
}

const submit = (result: string, success: boolean): ScriptedBlock =>
  toolCall("submit_result", { result, success });

function readmeIn(pairs: readonly Pair[]): string | null {
  const listing = pairs.find(({ call }) => call.name === "ls");
  return listing === undefined ? null : (/\bREADME(\.\w+)?/i.exec(resultText(listing.result))?.[0] ?? null);
}

/** A call and its result. */
type Pair = { readonly call: ToolUseParam; readonly result: ToolResultParam };

const failed = ({ result }: Pair): boolean => result.is_error === true;
const isRestricted = ({ call, result }: Pair): boolean =>
  result.is_error === true && call.name !== "request_mode_upgrade" && RESTRICTED.test(resultText(result));

/** The results in message `m`, with the calls of the message before. */
function pairsOf(messages: readonly MessageParam[], m: number): Pair[] {
  const calls = toolCallsOf(messages[m - 1]);
  return toolResultsOf(messages[m]).flatMap((result) => {
    const call = calls.find(({ id }) => id === result.tool_use_id);
    return call === undefined ? [] : [{ call, result }];
  });
}

/** Every call since the user's last message without tool results. */
function runOf({ messages }: MessagesRequest): Pair[] {
  const start = messages.findLastIndex(
    (message) =>
      message.role === "user" && !contentBlocks(message).some((block) => block.type === "tool_result"),
  );
  return messages.flatMap((_message, m) => (m > start ? pairsOf(messages, m) : []));
}

function report(pairs: readonly Pair[]): string {
  const lines = pairs
    .filter((pair) => pair.call.name !== "request_mode_upgrade" && !isRestricted(pair))
    .map(({ call, result }) => {
      const said = clip(resultText(result).trim(), 1500) || "(nothing)";
      const verb = result.is_error === true ? "failed and said" : "said";
      return `\`${nameOf(call)}\` ${verb}:\n\`\`\`\n${said}\n\`\`\``;
    });
  return lines.length === 0 ? "There is nothing to report." : `Here is what I saw.\n\n${lines.join("\n\n")}`;
}

function nameOf({ name, input }: ToolUseParam): string {
  const { command, path } = input;
  if (typeof command === "string") return command;
  return typeof path === "string" ? `${name} ${path}` : name;
}

function summarise(body: MessagesRequest): string {
  const said = clip(userTexts(body).join("\n").replaceAll(/\s+/g, " "), 600);
  return `Summary by the scripted demo model. The conversation so far, cut short: ${said}`;
}

const offers = (body: MessagesRequest, tool: string): boolean => toolNames(body).includes(tool);

const clip = (text: string, longest: number): string =>
  text.length <= longest ? text : `${text.slice(0, longest)}…`;
