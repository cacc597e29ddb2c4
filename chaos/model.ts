/**
 * Owns: the answers of the scripted model in a run. Like a real model, it knows only the request, so a lost request
 * that is sent again gets the same answer. The virtual user's last message says what to do. The number of answers since
 * then says how far the model has come.
 */
import {
  answer,
  text,
  thinking,
  toolCall,
  type Answer,
  type ScriptedBlock,
} from "../local/scripted/script.ts";
import type { BlockParam, MessagesRequest } from "../local/scripted/messages.ts";
import { SUBMIT_TOOL } from "../machine/control-tools.ts";
import type { Round, Turn } from "./plan.ts";

/** The instruction that the model reads in a message; a task is a message, too. */
export type Directive = Turn | { readonly kind: "child"; readonly id: string; readonly round: Round };

export const SCRIPT = "chaos";
const SUMMARY = "In short: many things failed.";

/** Where the run's commands work, and what they write. */
export type Places = {
  readonly cwd: string;
  /** A file with a line for each run of a command: the time, in seconds, and the call's id. */
  readonly ledger: string;
  /** The file of an image. */
  readonly image: string;
  /** The file with the process ids of a turn that is to be stopped. */
  readonly pidsOf: (turn: string) => string;
};

/** The model's text when it has done what a turn asks for. */
export const doneWith = (id: string): string => `Done with ${id}.`;

export const directiveText = (directive: Directive): string => `[[do ${JSON.stringify(directive)}]]`;

const DIRECTIVE = /\[\[do (\{.*\})\]\]/s;

/** A slow stream, so that a fault can hit it. */
const SLOW = { characters: 12, delayMs: 15 };

/** @throws when the request lacks what it must have; a real model could not answer it either. */
export function answerOf(request: MessagesRequest, places: Places): Answer {
  if (request.tools === undefined) return answer([SUMMARY], { pace: SLOW });
  const { directive, stage, since } = positionOf(request);
  if (directive === null) throw new Error("Nobody has asked for anything.");
  const [asked, ...answered] = since.filter(({ role }) => role === "user");
  // The image that was sent must be there, and after the first answer also the one that was read.
  if (directive.kind === "image" && !(showsImage([asked]) && (stage === 0 || showsImage(answered))))
    throw new Error(`${directive.id}: there is no image in its stage ${stage}`);
  const blocks = stageOf(directive, stage, places);
  return blocks === null
    ? answer([text(doneWith(directive.id))], { pace: SLOW })
    : answer([thinking("Hm. "), "Let me see to it. ", ...blocks], { pace: SLOW });
}

/** An error counts, too: the tool that reads the image may have been interrupted. */
const showsImage = (messages: readonly unknown[]): boolean =>
  /"type":"image"|"is_error":true/.test(JSON.stringify(messages));

function positionOf({ messages }: MessagesRequest): {
  readonly directive: Directive | null;
  readonly stage: number;
  /** The message with the directive, and those after it. */
  readonly since: MessagesRequest["messages"];
} {
  let stage = 0;
  for (const [index, { role, content }] of [...messages.entries()].toReversed()) {
    if (role === "assistant") stage++;
    else {
      const texts = typeof content === "string" ? [content] : content.flatMap(textOf);
      const found = texts.toReversed().map((each) => DIRECTIVE.exec(each)?.[1]);
      const json = found.find((each) => each !== undefined);
      if (json !== undefined)
        return { directive: JSON.parse(json) as Directive, stage, since: messages.slice(index) };
    }
  }
  return { directive: null, stage, since: [] };
}

const textOf = (block: BlockParam): string[] => (block.type === "text" ? [block.text] : []);

/** The blocks of this answer; null: there is no more to do. */
function stageOf(directive: Directive, stage: number, places: Places): readonly ScriptedBlock[] | null {
  const { id } = directive;
  const commands = (round: Round, then = " && "): ScriptedBlock[] =>
    round.map((ms, n) => {
      const call = callId(id, stage, n);
      return toolCall(
        "bash",
        { command: `{ ${noted(call, places)}; }${then}sleep ${ms / 1_000} && seq 3` },
        call,
      );
    });
  switch (directive.kind) {
    case "text":
      return stage === 0 ? [text("word ".repeat(directive.words), doneWith(id))] : null;
    case "tools":
    case "steer": {
      const round = directive.rounds[stage];
      return round === undefined ? null : commands(round);
    }
    case "sub_agents": {
      if (stage > 0) return null;
      const tasks = directive.children.map((round, n) => ({
        task: `[[script:${SCRIPT}]] ${directiveText({ kind: "child", id: `${id}s${n}`, round })}`,
      }));
      return [toolCall("spawn_agents", { tasks }, callId(id, stage, 0))];
    }
    case "child":
      // Mostly Restricted: what it cannot leave in the ledger is not counted.
      return stage === 0
        ? commands(directive.round, " 2>/dev/null; ")
        : [toolCall(SUBMIT_TOOL, { result: `done with ${id}` }, callId(id, stage, 0))];
    case "approval":
      return stage === 0
        ? [
            toolCall("request_mode_upgrade", { reason: "to leave a line" }, callId(id, stage, 9)),
            ...commands([50]),
          ]
        : null;
    case "image":
      return stage === 0 ? [toolCall("read", { path: places.image }, callId(id, stage, 0))] : null;
    case "stop": {
      if (stage > 0) return null;
      const call = callId(id, stage, 0);
      const pids = places.pidsOf(id);
      // A child that leaves its parent's session, one that ignores signals, and the shell itself.
      const command = `${noted(call, places)}; setsid sleep 3000 & a=$!; (trap '' TERM; sleep 3000) & echo "$$ $a $!" > ${pids}; wait`;
      return [toolCall("bash", { command }, call)];
    }
    case "continuation":
      return null;
  }
}

const noted = (call: string, { ledger }: Places): string => `echo "$EPOCHREALTIME ${call}" >> ${ledger}`;

/** The same request gets the same id again. */
const callId = (turn: string, stage: number, n: number): string => `toolu_${turn}_${stage}_${n}`;
