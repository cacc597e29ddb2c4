/**
 * Owns: whether a script is run at all (REQ-BASH-007). The check parses the script and examines what it would run,
 * through wrappers, functions and shells in it. It is a net for accidents, in both modes: a script that means to get
 * around it can. The kernel, and not this check, keeps a Restricted conversation from writing.
 */
import { homedir } from "node:os";
import { Names } from "./names.ts";
import { dangerOf, isRuled } from "./rules.ts";
import { readScript, type ScriptCommand } from "./script.ts";
import { asPattern, expansions, isLiteral, UNKNOWN } from "./words.ts";
import { inside, runsOthers } from "./wrappers.ts";

/** Commands that are examined at most; further ones are not foreseen. */
const MAX_COMMANDS = 5_000;
/** Depth of commands that run other commands. */
const MAX_DEPTH = 10;

type Waiting = { readonly text: string; readonly owner: string; readonly isLiteral: boolean };

/** @returns why the script is not run, in sentences for the model; null when nothing speaks against it */
export function dangerIn(script: string, home = homedir()): string | null {
  const names = new Names(home);
  const waiting: Waiting[] = [{ text: script, owner: "0", isLiteral: true }];
  let commands = 0;
  for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
    if (!names.take(next.text.length)) return null;
    const read = readScript(next.text, names, next.owner);
    if (read.kind === "broken") {
      // An inner script may look incomplete only because a part of it is not known.
      if (!next.isLiteral) continue;
      return `bash would not understand the command: ${read.problem}.`;
    }
    for (const command of read.commands) {
      const inputs = inputOf(command, names);
      const open = linesOf(command, names).map((fields) => ({ fields, depth: 0 }));
      for (let line = open.shift(); line !== undefined; line = open.shift()) {
        const { fields, depth } = line;
        if (++commands > MAX_COMMANDS) return null;
        const danger = dangerOf(fields, home);
        if (danger !== null) return danger;
        if (depth === MAX_DEPTH) continue;
        const inner = inside(fields, inputs);
        open.push(...inner.commands.map((each) => ({ fields: [...each], depth: depth + 1 })));
        for (const { text, args } of inner.scripts) {
          const owner = String(commands + waiting.length);
          const [zero = "", ...rest] = args;
          names.call(owner, zero, rest);
          const isOfScript = !inputs.includes(text) && command.words.every(isLiteral);
          waiting.push({ text: asPattern(text), owner, isLiteral: isOfScript });
        }
      }
    }
  }
  return null;
}

/**
 * The command lines that a command can become. There are none for a command that cannot matter, whatever its arguments
 * are.
 */
function linesOf({ words, place }: ScriptCommand, names: Names): string[][] {
  const [name, ...args] = words;
  if (name === undefined) return [];
  return expansions([name], names, place).flatMap(([first = "", ...rest]) => {
    const isUnknown = first === UNKNOWN;
    if (!isUnknown && !isRuled(first) && !runsOthers(first)) return [];
    // An unknown name may stand for nothing: `$SUDO rm`.
    const begin = isUnknown ? rest : [first, ...rest];
    return expansions([...begin, ...args], names, place);
  });
}

/** What a command reads, as far as it is known. */
const inputOf = ({ input, place }: ScriptCommand, names: Names): string[] =>
  input.flatMap(({ words, separator }) =>
    expansions(words, names, place).map((line) => asScript(line.join(separator))),
  );

/** Printed text, as its reader gets it: quotes are gone, and echo -e and printf make newlines. */
const asScript = (text: string): string => asPattern(text).replaceAll("\\n", "\n");
