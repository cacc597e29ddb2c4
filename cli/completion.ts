/**
 * Owns: the completion of command lines: a script for each shell, which asks `bedrock complete`, and what can stand at
 * the end of an unfinished line, by the commands that there are. Pure.
 */
import type { Command, Option } from "commander";

export const SHELLS = ["bash", "zsh", "fish"] as const;
export type Shell = (typeof SHELLS)[number];

/** The hidden command: `bedrock complete -- run --on` prints `--on-approval`, and after a tab what that is. */
export const COMPLETE = "complete";

const SCRIPTS: { readonly [shell in Shell]: string } = {
  // The shell completes files where nothing comes.
  bash: `_bedrock() {
  mapfile -t COMPREPLY < <("\${COMP_WORDS[0]}" ${COMPLETE} -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null | cut -f1)
}
complete -o default -o nosort -F _bedrock bedrock`,
  zsh: `#compdef bedrock
_bedrock() {
  local -a lines
  lines=("\${(@f)$("\${words[1]}" ${COMPLETE} -- "\${(@)words[2,CURRENT]}" 2>/dev/null)}")
  if [[ -z "\${lines[1]}" ]]; then
    _files
    return
  fi
  # What is before a colon is the word.
  lines=("\${(@)lines//:/\\\\:}")
  lines=("\${(@)lines/$'\\t'/:}")
  _describe -V 'bedrock' lines
}
compdef _bedrock bedrock`,
  fish: `function __bedrock_complete
  set -l words (commandline -opc) (commandline -ct)
  set -l lines (bedrock ${COMPLETE} -- $words[2..] 2>/dev/null)
  if test (count $lines) -eq 0
    __fish_complete_path (commandline -ct)
  else
    printf '%s\\n' $lines
  end
end
complete -c bedrock -f -k -a '(__bedrock_complete)'`,
};

/** A script that the person's shell reads: `bedrock completion bash > …`. */
export const completionFor = (shell: Shell): string => SCRIPTS[shell];

export type Candidates =
  | {
      readonly kind: "words";
      readonly words: readonly { readonly word: string; readonly description: string }[];
    }
  /** Ids of conversations. `before` is the part of the word that stands before the id. */
  | { readonly kind: "conversations"; readonly before: string; readonly beginning: string }
  /** What the shell itself knows, as files. */
  | { readonly kind: "anything" };

/**
 * What can stand in the place of the last word.
 *
 * @param line the words after `bedrock`; the last one is unfinished, and may be empty
 */
export function candidatesFor(program: Command, line: readonly string[]): Candidates {
  const [name = "", ...words] = joined(line);
  const commands = program.createHelp().visibleCommands(program);
  if (words.length === 0)
    return beginning(
      name,
      commands.map((each) => ({ word: each.name(), description: each.summary() || each.description() })),
    );
  const command = commands.find((each) => each.name() === name);
  const current = words.at(-1) ?? "";
  if (command === undefined) return { kind: "anything" };
  const [, flag = "", given = ""] = /^(--[^=]+)=(.*)$/s.exec(current) ?? [];
  const valued = optionWithValue(command, flag === "" ? words.at(-2) : flag);
  if (valued !== undefined) {
    // bash takes "--option=value" for three words, of which the last one is completed.
    const before = flag === "" || line.includes("=") ? "" : `${flag}=`;
    const typed = flag === "" ? current : given;
    // "--model <id>" is none of a conversation.
    return ofPlace(valued.argChoices, /^(-c|--continue)\b/.test(valued.flags), before, typed);
  }
  if (current.startsWith("-"))
    return beginning(
      current,
      command.options.map(({ long, description }) => ({ word: long ?? "", description })),
    );
  const place = argumentsIn(command, words.slice(0, -1));
  const argument = command.registeredArguments[place];
  if (argument === undefined) return { kind: "anything" };
  return ofPlace(argument.argChoices, argument.name() === "id", "", current);
}

function ofPlace(
  choices: readonly string[] | undefined,
  isConversation: boolean,
  before: string,
  typed: string,
): Candidates {
  if (isConversation) return { kind: "conversations", before, beginning: typed };
  if (choices === undefined) return { kind: "anything" };
  return beginning(
    before + typed,
    choices.map((choice) => ({ word: before + choice, description: "" })),
  );
}

type Word = { readonly word: string; readonly description: string };

const beginning = (typed: string, words: readonly Word[]): Candidates => ({
  kind: "words",
  words: words.filter(({ word }) => word !== "" && word.startsWith(typed)),
});

/** "--option", "=", "value" as one word. */
function joined(line: readonly string[]): readonly string[] {
  const words: string[] = [];
  line.forEach((word, n) => {
    const isJoined = (word === "=" || line[n - 1] === "=") && words.length > 0;
    words.push(isJoined ? (words.pop() ?? "") + word : word);
  });
  return words;
}

const optionWithValue = (command: Command, flag = ""): Option | undefined =>
  command.options.find(({ short, long, required }) => required && [long, short].includes(flag));

/** How many of the words are arguments, and not options or their values. */
const argumentsIn = (command: Command, words: readonly string[]): number =>
  words.filter((word, n) => !word.startsWith("-") && optionWithValue(command, words[n - 1]) === undefined)
    .length;
