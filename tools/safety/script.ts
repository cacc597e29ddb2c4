/**
 * Owns: what stands in a script: its commands wherever they are (pipelines, loops, functions, substitutions), what is
 * assigned to its names, and what is fed to its commands.
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
import type { Names, Source } from "./names.ts";

export type ScriptCommand = {
  /** Its name and arguments. */
  readonly words: readonly Word[];
  /** What it reads, where the script says it: texts, each of words. */
  readonly input: readonly (readonly Source[])[];
};

export type Script =
  | { readonly kind: "parsed"; readonly commands: readonly ScriptCommand[] }
  /** A sentence's end. */
  | { readonly kind: "broken"; readonly problem: string };

type Input = ScriptCommand["input"];

/** Nodes of the tree within each other. Nobody writes it; reading it would take the more time the deeper it is. */
const MAX_DEPTH = 200;

/** Reads a script; what it assigns is added to the names. */
export function readScript(source: string, names: Names): Script {
  const reader = new Reader(source, names);
  reader.visit(parse(source), []);
  if (reader.problem !== null) return { kind: "broken", problem: reader.problem };
  for (const { words } of reader.commands) {
    const [name, ...args] = words;
    if (name?.value === "set") names.call(args[0]?.value === "--" ? args.slice(1) : args);
    else if (name !== undefined && reader.functions.has(name.value)) names.call(args);
  }
  return { kind: "parsed", commands: reader.commands };
}

class Reader {
  readonly #source: string;
  readonly #names: Names;
  readonly commands: ScriptCommand[] = [];
  readonly functions = new Set<string>();
  problem: string | null = null;
  #depth = 0;

  constructor(source: string, names: Names) {
    this.#source = source;
    this.#names = names;
  }

  /** @param input what the node reads, where the script says it */
  visit(node: SyntaxNode, input: Input): void {
    if (this.#depth === MAX_DEPTH) {
      this.problem ??= "it is nested too deeply";
      return;
    }
    this.#depth++;
    this.#read(node, input);
    this.#depth--;
  }

  #read(node: SyntaxNode, input: Input): void {
    if (node.type === "Script") this.#takeError(node.errors?.[0]);
    if (node.type === "Function") this.functions.add(node.name.value);
    if (node.type === "Assignment") this.#assign(node);
    if (node.type === "For" || node.type === "Select")
      this.#names.assign(node.name.value, node.wordlist ?? []);
    if (node.type === "Command") {
      const words = wordsOf(node);
      if (words.length > 0) this.commands.push({ words, input: [...fed(node.redirects), ...input] });
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
    if (value.type === "Word") this.#names.assign(name, [value]);
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
  redirects.flatMap((redirect): Source[][] => {
    if (redirect.type === "HereDoc") return [[redirect.body.text]];
    return redirect.type === "HereString" && redirect.target !== undefined ? [[redirect.target]] : [];
  });

/** What a command surely prints. */
function outputOf(node: SyntaxNode | undefined): Input {
  if (node?.type !== "Command") return [];
  const name = node.name?.value;
  if (name === "cat") return fed(node.redirects);
  return name === "echo" || name === "printf" ? [wordsOf(node).slice(1)] : [];
}
