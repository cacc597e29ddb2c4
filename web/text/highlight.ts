/**
 * Owns: the colours of code. A grammar reads piece after piece, so code that grows is not read again. Runs in a worker;
 * a grammar is loaded when the first code in its language comes.
 * Not here: the colours themselves (text.css).
 */
import {
  codeToTokensBase,
  createCssVariablesTheme,
  createShikiPrimitiveAsync,
  getLastGrammarState,
} from "shiki/core";
import { createJavaScriptRegexEngine } from "shiki/engine/javascript";
import type { Language } from "./languages.ts";
import { COLOR_NAMES } from "./colors.ts";

const GRAMMARS = {
  bash: () => import("shiki/langs/shellscript.mjs"),
  c: () => import("shiki/langs/c.mjs"),
  csharp: () => import("shiki/langs/csharp.mjs"),
  css: () => import("shiki/langs/css.mjs"),
  diff: () => import("shiki/langs/diff.mjs"),
  docker: () => import("shiki/langs/docker.mjs"),
  go: () => import("shiki/langs/go.mjs"),
  html: () => import("shiki/langs/html.mjs"),
  ini: () => import("shiki/langs/ini.mjs"),
  java: () => import("shiki/langs/java.mjs"),
  json: () => import("shiki/langs/json.mjs"),
  make: () => import("shiki/langs/make.mjs"),
  python: () => import("shiki/langs/python.mjs"),
  rust: () => import("shiki/langs/rust.mjs"),
  sql: () => import("shiki/langs/sql.mjs"),
  toml: () => import("shiki/langs/toml.mjs"),
  tsx: () => import("shiki/langs/tsx.mjs"),
  typescript: () => import("shiki/langs/typescript.mjs"),
  xml: () => import("shiki/langs/xml.mjs"),
  yaml: () => import("shiki/langs/yaml.mjs"),
} satisfies { readonly [language in Language]: unknown };

/** A line that is longer is not coloured. */
const MAX_LINE = 1000;
/**
 * Milliseconds for a line; what is left of it then has one colour. The first line of a language compiles its patterns,
 * which takes a busy machine more than the half second that is usual.
 */
const LINE_LIMIT_MS = 3_000;
const THEME = "css-variables";

type GrammarState = NonNullable<ReturnType<typeof getLastGrammarState>>;

/** Lengths and colours in turns: the first 3 code units have colour 1, the next 5 colour 0: [3, 1, 5, 0]. */
export type Runs = readonly number[];

/** The code of one block, read piece after piece. */
export type Reading = {
  /** The colours of the next piece. */
  read(piece: string): Runs;
  /** Goes back to before piece `index`, counted from 0. */
  rewind(index: number): void;
  /** Pieces that were read. */
  readonly length: number;
};

const shiki = createShikiPrimitiveAsync({
  engine: createJavaScriptRegexEngine({ forgiving: true }),
  langs: [],
  themes: [createCssVariablesTheme({ name: THEME })],
});

/**
 * Loads the grammar of a language.
 *
 * @returns begins to read the code of a block
 * @throws Error if it cannot be loaded
 */
export async function loadLanguage(language: Language): Promise<() => Reading> {
  const primitive = await shiki;
  const { default: grammars } = await GRAMMARS[language]();
  await primitive.loadLanguage(...grammars);
  // The others are those that it embeds.
  const lang = grammars.at(-1)?.name ?? language;
  return () => startReading(primitive, lang);
}

function startReading(primitive: Awaited<typeof shiki>, lang: string): Reading {
  /** Before each piece that was read, and after the last one. */
  const states: (GrammarState | undefined)[] = [undefined];
  return {
    get length() {
      return states.length - 1;
    },
    rewind(index) {
      states.length = Math.min(states.length, index + 1);
    },
    read(piece) {
      const code = piece.endsWith("\n") ? piece.slice(0, -1) : piece;
      const state = states.at(-1);
      if (code.split("\n").some((line) => line.length > MAX_LINE)) {
        states.push(state);
        return [piece.length, 0];
      }
      const tokens = codeToTokensBase(primitive, code, {
        lang,
        theme: THEME,
        tokenizeTimeLimit: LINE_LIMIT_MS,
        ...(state === undefined ? {} : { grammarState: state }),
      });
      states.push(getLastGrammarState(primitive, tokens));
      const runs: number[] = [];
      tokens.forEach((line, at) => {
        if (at > 0) push(runs, 1, 0);
        for (const token of line) push(runs, token.content.length, colorOf(token.color));
      });
      push(runs, piece.length - code.length, 0);
      return runs;
    },
  };
}

/** The same colour again makes the last run longer. */
function push(runs: number[], length: number, color: number): void {
  if (length === 0) return;
  if (runs.at(-1) === color) runs.splice(-2, 2, (runs.at(-2) ?? 0) + length, color);
  else runs.push(length, color);
}

/** The theme's colours are the names of CSS variables. */
function colorOf(variable: string | undefined): number {
  const name = /^var\(--shiki-token-([\w-]+)\)$/.exec(variable ?? "")?.[1];
  return Math.max(
    0,
    COLOR_NAMES.findIndex((known) => known === name),
  );
}
