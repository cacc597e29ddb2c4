/**
 * Owns: what a word of a script can become when the shell expands it, as far as the script itself shows it: quotes,
 * braces, the home directory, variables that the script sets, arguments of its functions.
 * Not here: anything that only running the script would show; that is UNKNOWN.
 */
import { parse, type ParameterExpansionPart, type Word, type WordPart } from "unbash";
import type { Names, Place, Source } from "./names.ts";

/** Stands for what cannot be known: the output of a command, a variable of the environment. */
export const UNKNOWN = "\u0001";
/** A star that is not a pattern, because it is quoted. */
const QUOTED_STAR = "\u0002";
/** A star that has become names of files already. Later quotes do not change that. */
const EXPANDED_STAR = "\u0003";
/** Separates the fields that one word becomes. */
const SPLIT = "\0";
/** Depth of names whose values are made of other names. */
const MAX_DEPTH = 10;
/** Alternatives of one word, and of one command. */
const MAX_ALTERNATIVES = 64;
const MAX_COMMANDS = 512;
/** UTF-16 code units of one alternative; a longer script could not be run either. */
const MAX_CHARS = 128 * 1024;

/** Every command line that these words can become: its fields, the name first. */
export function expansions(words: readonly Source[], names: Names, place: Place): string[][] {
  let lines: string[][] = [[]];
  for (const word of words) {
    const alternatives = fields(word, names, place);
    const [only] = alternatives;
    if (only !== undefined && alternatives.length === 1) {
      for (const line of lines) line.push(...only);
      continue;
    }
    const length = 1 + (lines[0]?.length ?? 0);
    // With so many lines, the rest of them is not expanded.
    if (!names.take(alternatives.length * lines.length * length)) return lines;
    lines = alternatives.flatMap((more) => lines.map((line) => [...line, ...more])).slice(0, MAX_COMMANDS);
  }
  return lines;
}

/** The alternatives of one word, each as its fields. */
function fields(source: Source, names: Names, place: Place): string[][] {
  const isQuoted = typeof source === "string" || /["']/.test(source.text);
  return expand(source, new Scope(names, place)).map((text) =>
    text
      .replaceAll(EXPANDED_STAR, "*")
      .split(SPLIT)
      .filter((field) => isQuoted || field !== ""),
  );
}

/** Whether a word alone determines what it becomes. */
export const isLiteral = ({ parts = [] }: Word): boolean =>
  parts.every(
    (part) =>
      ["Literal", "SingleQuoted", "AnsiCQuoted", "Glob"].includes(part.type) ||
      (part.type === "DoubleQuoted" && part.parts.every(({ type }) => type === "Literal")),
  );

/** The names, and those among them whose value is being expanded: a value may be made of itself. */
class Scope {
  readonly names: Names;
  readonly #place: Place;
  readonly #open: ReadonlySet<string>;

  constructor(names: Names, place: Place, open: ReadonlySet<string> = new Set()) {
    this.names = names;
    this.#place = place;
    this.#open = open;
  }

  valuesOf(name: string): string[] {
    if (this.#open.has(name)) return [];
    if (this.#open.size === MAX_DEPTH) return [UNKNOWN];
    const inner = new Scope(this.names, this.#place, new Set([...this.#open, name]));
    const { values, isList } = this.names.valuesOf(name, this.#place);
    return values
      .slice(0, MAX_ALTERNATIVES)
      .flatMap((list) =>
        joined(
          list.map((source) => expand(source, inner)),
          SPLIT,
        ),
      )
      .map((text) => (isList ? text.replaceAll("*", EXPANDED_STAR) : text));
  }
}

function expand(source: Source, scope: Scope): string[] {
  if (typeof source === "string") return [source];
  if (source.parts !== undefined && !scope.names.take(source.text.length)) return [UNKNOWN];
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

/** `{a,b}c` → `ac` and `bc`: the shell does this before all other expansions. */
function withoutBraces(word: Word, braces: WordPart & { readonly type: "BraceExpansion" }): Word[] {
  const items = [""];
  const parts = braces.parts ?? [{ type: "Literal" as const, text: braces.text.slice(1, -1) }];
  for (const part of parts) {
    const [first = "", ...more] = part.type === "Literal" ? part.text.split(",") : [part.text];
    items.push((items.pop() ?? "") + first, ...more);
  }
  const start = word.text.slice(0, braces.pos - word.pos);
  const end = word.text.slice(braces.end - word.pos);
  // A range has no items, and nobody gives files such names.
  const all = items.length < 2 ? [UNKNOWN] : items.slice(0, MAX_ALTERNATIVES);
  return all.flatMap((item) => {
    const command = parse(`_ ${start}${item}${end}`).commands[0]?.command;
    return command?.type === "Command" ? command.suffix.filter((node) => node.type === "Word") : [];
  });
}

/** Expands `~`, `~/a`, and the home directory of any user: `~root`. */
function home(part: WordPart, { names }: Scope): string[] | null {
  if (part.type !== "Literal" || !part.text.startsWith("~")) return null;
  const [prefix = ""] = part.value.split("/", 1);
  return [(prefix === "~+" ? "." : names.home) + asQuoted(part.value.slice(prefix.length))];
}

const asQuoted = (text: string): string => text.replaceAll("*", QUOTED_STAR);
/** The text as if it had not been quoted. */
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

/** Commands that print this directory, or its `.git`. */
const KNOWN_OUTPUT: Readonly<Record<string, string>> = {
  pwd: ".",
  "git rev-parse --show-toplevel": ".",
  "git rev-parse --git-dir": ".git",
};

function parameter(part: ParameterExpansionPart, isQuoted: boolean, scope: Scope): string[] {
  if (part.prefix !== undefined) return [UNKNOWN];
  const values = variable(part.parameter, isQuoted, scope);
  if (part.operation?.type !== "Default") return values;
  // With `?` the operand is an error message, and never becomes the value.
  if (part.operation.operator.endsWith("?")) return values;
  return [...values, ...expand(part.operation.operand, scope)];
}

function variable(name: string, isQuoted: boolean, scope: Scope): string[] {
  const values = scope.valuesOf(name);
  if (values.length === 0) return [UNKNOWN];
  if (!isQuoted) return values.map((value) => asPattern(value.trim().replace(/\s+/g, SPLIT)));
  return values.map(asQuoted);
}

/** Every way to choose one alternative of each, joined. */
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
