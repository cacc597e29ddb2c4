/**
 * Owns: whether a script is run at all (REQ-BASH-007): it is parsed, and what it would run is looked at, through
 * wrappers, functions and shells in it. A net for accidents, in both modes. It is not what keeps a Restricted
 * conversation from writing: that is the kernel, and a script that means to get around this check can.
 */
import { homedir } from "node:os";
import { Names } from "./names.ts";
import { dangerOf } from "./rules.ts";
import { readScript } from "./script.ts";
import { asPattern, expansions, texts, UNKNOWN } from "./words.ts";
import { inside } from "./wrappers.ts";

/** Commands that are looked at: more are not foreseen. */
const MAX_COMMANDS = 5_000;

/** @returns why the script is not run, in sentences for the model; null when nothing speaks against it */
export function dangerIn(script: string, home = homedir()): string | null {
  const names = new Names(home);
  const scripts = [script];
  let commands = 0;
  for (let text = scripts.shift(); text !== undefined && names.take(text); text = scripts.shift()) {
    const read = readScript(text, names);
    if (read.kind === "broken") {
      // What is not known of an inner one may be what would make it whole.
      if (text.includes(UNKNOWN)) continue;
      return `bash would not understand the command: ${read.problem}.`;
    }
    for (const { words, input } of read.commands) {
      const inputs = input.flatMap((source) => texts(source, names).map(asScript));
      // A name that is not known may stand for nothing: `$SUDO rm`.
      const open = expansions(words, names).flatMap((fields) =>
        fields[0] === UNKNOWN ? [fields, fields.slice(1)] : [fields],
      );
      for (let fields = open.shift(); fields !== undefined; fields = open.shift()) {
        if (++commands > MAX_COMMANDS) return null;
        const danger = dangerOf(fields, home);
        if (danger !== null) return danger;
        const inner = inside(fields, inputs);
        open.push(...inner.commands.map((command) => [...command]));
        for (const { text: nested, args } of inner.scripts) {
          names.call(args);
          scripts.push(asPattern(nested));
        }
      }
    }
  }
  return null;
}

/** What is printed, as it is read: quotes are gone, and echo -e and printf make newlines. */
const asScript = (text: string): string => asPattern(text).replaceAll("\\n", "\n");
