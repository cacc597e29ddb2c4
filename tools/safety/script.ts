/**
 * Owns: what a script contains: its commands wherever they are (pipelines, loops, functions, substitutions), the values
 * that it assigns to names, and the input that it gives to its commands.
 */
import {
  forEachChild,
  parse,
  type Assignment,
  type Command,
  type ParseError,
  type Redirection,
  type SyntaxNode,
  type Word,
} from "unbash";
import type { Names, Place, Source } from "./names.ts";

export type ScriptCommand = {
  /** Its name and arguments. */
  readonly words: readonly Word[];
  readonly input: Input;
  readonly place: Place;
};

/** The input of a command, where the script shows it: texts, each of words with a separator between them. */
type Input = readonly { readonly words: readonly Source[]; readonly separator: " " | "\n" }[];

export type Script =
  | { readonly kind: "parsed"; readonly commands: readonly ScriptCommand[] }
  /** `problem` is the end of a sentence. */
  | { readonly kind: "broken"; readonly problem: string };

/** Depth of nested nodes in the tree. Nobody writes a deeper script, and the time to read one grows with its depth. */
const MAX_DEPTH = 200;

/** Nodes whose content may be skipped, or runs in another shell: its assignments may not hold afterwards. */
const UNCERTAIN: ReadonlySet<SyntaxNode["type"]> = new Set([
  ...(["If", "While", "For", "ArithmeticFor", "Select", "Case", "AndOr", "Pipeline", "Subshell"] as const),
  ...(["Function", "Coproc", "CommandExpansion", "ProcessSubstitution"] as const),
]);

/** Reads a script, and adds its assignments to the names. @param owner of its arguments */
export function readScript(source: string, names: Names, owner: string): Script {
  const reader = new Reader(source, names, owner);
  try {
    reader.visit(parse(source), []);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    return { kind: "broken", problem: TOO_DEEP };
  }
  if (reader.problem !== null) return { kind: "broken", problem: reader.problem };
  for (const { words, place } of reader.commands) {
    const [name, ...args] = words;
    if (name?.value === "set") names.call(place.owner, "", args[0]?.value === "--" ? args.slice(1) : args);
    else if (name !== undefined && reader.functions.has(name.value)) names.call(name.value, "", args);
  }
  return { kind: "parsed", commands: reader.commands };
}

const TOO_DEEP = "it is nested too deeply";

class Reader {
  readonly #source: string;
  readonly #names: Names;
  readonly commands: ScriptCommand[] = [];
  readonly functions = new Set<string>();
  problem: string | null = null;
  #owner: string;
  #depth = 0;
  /** How many enclosing nodes are uncertain, and how many are functions. */
  #uncertain = 0;
  #inFunctions = 0;

  constructor(source: string, names: Names, owner: string) {
    this.#source = source;
    this.#names = names;
    this.#owner = owner;
  }

  /** @param input what the node reads, where the script shows it */
  visit(node: SyntaxNode, input: Input): void {
    if (this.#depth === MAX_DEPTH) {
      this.problem ??= TOO_DEEP;
      return;
    }
    const [owner, isUncertain] = [this.#owner, UNCERTAIN.has(node.type)];
    this.#depth++;
    this.#before(node);
    if (isUncertain) this.#uncertain++;
    if (node.type === "Function") {
      this.#owner = node.name.value;
      this.#inFunctions++;
    }
    this.#inside(node, input);
    if (node.type === "Function") this.#inFunctions--;
    this.#owner = owner;
    if (isUncertain) this.#uncertain--;
    this.#depth--;
  }

  #before(node: SyntaxNode): void {
    if (node.type === "Script") this.#takeError(node.errors?.[0]);
    if (node.type === "Function") this.functions.add(node.name.value);
    if (node.type === "Assignment") this.#assign(node);
    if (node.type === "For" || node.type === "Select") this.#names.loop(node.name.value, node.wordlist ?? []);
  }

  #inside(node: SyntaxNode, input: Input): void {
    if (node.type === "Command") {
      const words = wordsOf(node);
      const place = { owner: this.#owner, at: this.#inFunctions > 0 ? null : this.#names.count };
      if (words.length > 0) this.commands.push({ words, input: [...fed(node.redirects), ...input], place });
      this.#visitChildren(node, []);
    } else if (node.type === "Pipeline") {
      node.commands.forEach((command, n) =>
        this.visit(command, n === 0 ? input : outputOf(node.commands[n - 1])),
      );
    } else {
      this.#visitChildren(node, node.type === "Redirected" ? [...fed(node.redirects), ...input] : input);
    }
  }

  #visitChildren(node: SyntaxNode, input: Input): void {
    forEachChild(node, (child) => this.visit(child, input));
  }

  #assign({ name, value }: Assignment): void {
    if (value.type === "Word") this.#names.assign(name, [value], this.#uncertain === 0);
    else this.#names.extend(name, value.elements);
  }

  #takeError(error: ParseError | undefined): void {
    if (error === undefined) return;
    const line = this.#source.slice(0, error.pos).split("\n").length;
    this.problem ??= `${error.message}, line ${line}`;
  }
}

const wordsOf = ({ name, args }: Command): Word[] => [
  ...(name === undefined ? [] : [name]),
  // An assignment after a name is an argument like others: `env A=b`.
  ...args.map((arg) =>
    arg.type === "Word" ? arg : { ...arg, type: "Word" as const, value: arg.text, parts: undefined },
  ),
];

/** Here-documents and here-strings. */
const fed = (redirects: readonly Redirection[]): Input =>
  redirects.flatMap((redirect) => {
    const word = redirect.type === "HereDoc" ? redirect.body.text : target(redirect);
    return word === undefined ? [] : [{ words: [word], separator: " " as const }];
  });

const target = (redirect: Redirection): Word | undefined =>
  redirect.type === "HereString" ? redirect.target : undefined;

/** What a command surely prints: echo prints its arguments in a row, printf the format again for each of them. */
function outputOf(node: SyntaxNode | undefined): Input {
  if (node?.type !== "Command") return [];
  const [name, ...words] = wordsOf(node);
  switch (name?.value) {
    case "cat":
      return fed(node.redirects);
    case "echo":
      return [{ words, separator: " " }];
    case "printf":
      return [{ words, separator: "\n" }];
    case undefined:
    default:
      return [];
  }
}
