/**
 * Owns: what a word of a script can come to when the shell expands it, as far as the script itself says: quotes, braces,
 * the home directory, variables that the script sets, arguments of its functions.
 * Not here: anything that only running it would tell; that is UNKNOWN.
 */
import { parse, type ParameterExpansionPart, type Word, type WordPart } from "unbash";
import type { Names, Source } from "./names.ts";

/** In place of what cannot be known: the output of a command, a variable of the environment. */
export const UNKNOWN = "\u0001";
/** A star that is not a pattern, because it is quoted. */
export const QUOTED_STAR = "\u0002";
/** Between the fields that one word becomes. */
const SPLIT = "\0";
/** Names whose values are made of each other. */
const MAX_DEPTH = 10;
/** What one word, and what one command, can come to. */
const MAX_ALTERNATIVES = 64;
const MAX_COMMANDS = 512;
/** UTF-16 code units of one; no longer script could be run either. */
const MAX_CHARS = 128 * 1024;
/** Every command line that these words can become: its fields, the name first. */
export function expansions(words: readonly Source[], names: Names): string[][] {
  let lines: string[][] = [[]];
  for (const word of words) {
    const alternatives = fields(word, names);
    const [only] = alternatives;
    if (only !== undefined && alternatives.length === 1) for (const line of lines) line.push(...only);
    else
      lines = alternatives.flatMap((more) => lines.map((line) => [...line, ...more])).slice(0, MAX_COMMANDS);
  }
  return lines;
}

/** The same as texts, the fields divided by a space. */
export const texts = (words: readonly Source[], names: Names): string[] =>
  expansions(words, names).map((line) => line.join(" "));

function fields(source: Source, names: Names): string[][] {
  const isQuoted = typeof source === "string" || /["']/.test(source.text);
  return expand(source, new Scope(names)).map((text) =>
    text.split(SPLIT).filter((field) => isQuoted || field !== ""),
  );
}

/** The names, and those among them whose value is being found out: a value may be made of itself. */
class Scope {
  readonly names: Names;
  readonly #open: ReadonlySet<string>;

  constructor(names: Names, open: ReadonlySet<string> = new Set()) {
    this.names = names;
    this.#open = open;
  }

  valuesOf(name: string): string[] {
    if (this.#open.has(name)) return [];
    if (this.#open.size === MAX_DEPTH) return [UNKNOWN];
    const inner = new Scope(this.names, new Set([...this.#open, name]));
    return this.names.valuesOf(name).flatMap((list) =>
      joined(
        list.map((source) => expand(source, inner)),
        SPLIT,
      ),
    );
  }
}

function expand(source: Source, scope: Scope): string[] {
  if (typeof source === "string") return [source];
  if (source.parts !== undefined && !scope.names.take(source.text)) return [UNKNOWN];
  const braces = source.parts?.find((part) => part.type === "BraceExpansion");
  if (braces !== undefined)
    return withoutBraces(source, braces)
      .flatMap((word) => expand(word, scope))
      .slice(0, MAX_ALTERNATIVES);
  const parts = source.parts ?? [
    { type: "Literal" as const, pos: 0, end: 0, value: source.value, text: source.text },
  ];
  return joined(
    parts.map((part, n) => (n === 0 ? home(part, scope) : null) ?? expandPart(part, false, scope)),
    "",
  );
}

/** `{a,b}c` → `ac` and `bc`: the shell does it before anything else. */
function withoutBraces(word: Word, braces: WordPart & { readonly type: "BraceExpansion" }): Word[] {
  const items = [""];
  const parts = braces.parts ?? [{ type: "Literal" as const, text: braces.text.slice(1, -1) }];
  for (const part of parts) {
    const [first = "", ...more] = part.type === "Literal" ? part.text.split(",") : [part.text];
    items.push((items.pop() ?? "") + first, ...more);
  }
  const start = word.text.slice(0, braces.pos - word.pos);
  const end = word.text.slice(braces.end - word.pos);
  // A range has no items: nobody calls a file so.
  const all = items.length < 2 ? [UNKNOWN] : items.slice(0, MAX_ALTERNATIVES);
  return all.flatMap((item) => {
    const command = parse(`_ ${start}${item}${end}`).commands[0]?.command;
    return command?.type === "Command" ? command.suffix.filter((node) => node.type === "Word") : [];
  });
}

/** `~`, `~/a`, and anybody's: `~root`. */
function home(part: WordPart, { names }: Scope): string[] | null {
  if (part.type !== "Literal" || !part.text.startsWith("~")) return null;
  const [prefix = ""] = part.value.split("/", 1);
  return [(prefix === "~+" ? "." : names.home) + asQuoted(part.value.slice(prefix.length))];
}

const asQuoted = (text: string): string => text.replaceAll("*", QUOTED_STAR);
/** As if it had not been quoted. */
export const asPattern = (text: string): string => text.replaceAll(QUOTED_STAR, "*");

function expandPart(part: WordPart, isQuoted: boolean, scope: Scope): string[] {
  switch (part.type) {
    case "Literal":
    case "SingleQuoted":
    case "AnsiCQuoted":
      return [asQuoted(part.value)];
    case "Glob":
    case "ExtendedGlob":
      return [part.text];
    case "DoubleQuoted":
    case "LocaleString":
      return joined(
        part.parts.map((inner) => expandPart(inner, true, scope)),
        "",
      );
    case "SimpleExpansion":
      return variable(part.text.slice(1), isQuoted, scope);
    case "ParameterExpansion":
      return parameter(part, isQuoted, scope);
    case "CommandExpansion":
      return [KNOWN_OUTPUT[part.text.replace(/^(\$\(|`)\s*|\s*[)`]$/g, "")] ?? UNKNOWN];
    case "ArithmeticExpansion":
    case "ProcessSubstitution":
    case "BraceExpansion":
      return [UNKNOWN];
  }
}

/** Other ways to say "here". */
const KNOWN_OUTPUT: Readonly<Record<string, string>> = { pwd: ".", "git rev-parse --show-toplevel": "." };

function parameter(part: ParameterExpansionPart, isQuoted: boolean, scope: Scope): string[] {
  if (part.prefix !== undefined) return [UNKNOWN];
  const values = variable(part.parameter, isQuoted, scope);
  if (part.operation?.type !== "Default") return values;
  return [...values, ...expand(part.operation.operand, scope)];
}

function variable(name: string, isQuoted: boolean, scope: Scope): string[] {
  const values = scope.valuesOf(name);
  if (values.length === 0) return [UNKNOWN];
  if (!isQuoted) return values.map((value) => asPattern(value.trim().replace(/\s+/g, SPLIT)));
  return values.map(asQuoted);
}

/** Every way to choose one of each. */
function joined(alternatives: readonly (readonly string[])[], separator: string): string[] {
  return alternatives.reduce<string[]>(
    (starts, ends, n) =>
      starts
        .flatMap((start) => ends.map((end) => (n === 0 ? end : start + separator + end)))
        .slice(0, MAX_ALTERNATIVES)
        .map((text) => (text.length > MAX_CHARS ? UNKNOWN : text)),
    [""],
  );
}
