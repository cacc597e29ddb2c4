/** Owns: which languages are coloured, under which names, and what they are called. Not here: their grammars (highlight.ts). */

/** Each with the names that models write after a fence. */
const LANGUAGES = {
  bash: { title: "Shell", names: ["sh", "shell", "zsh", "shellscript", "console"] },
  c: { title: "C", names: ["h"] },
  csharp: { title: "C#", names: ["cs", "c#"] },
  css: { title: "CSS", names: [] },
  diff: { title: "Diff", names: ["patch"] },
  docker: { title: "Dockerfile", names: ["dockerfile"] },
  go: { title: "Go", names: ["golang"] },
  html: { title: "HTML", names: ["htm"] },
  ini: { title: "INI", names: ["properties"] },
  java: { title: "Java", names: [] },
  json: { title: "JSON", names: ["jsonc", "json5", "jsonl"] },
  make: { title: "Makefile", names: ["makefile"] },
  python: { title: "Python", names: ["py", "python3"] },
  rust: { title: "Rust", names: ["rs"] },
  sql: { title: "SQL", names: ["postgres", "postgresql", "psql"] },
  toml: { title: "TOML", names: [] },
  tsx: { title: "TSX", names: [] },
  typescript: { title: "TypeScript", names: ["ts", "mts", "cts"] },
  xml: { title: "XML", names: ["svg"] },
  yaml: { title: "YAML", names: ["yml"] },
} as const;

/** A grammar that highlight.ts loads. */
export type Language = keyof typeof LANGUAGES;

/** One grammar reads them, and TSX. */
const SCRIPTS = new Map([
  ["javascript", "JavaScript"],
  ["js", "JavaScript"],
  ["mjs", "JavaScript"],
  ["cjs", "JavaScript"],
  ["jsx", "JSX"],
]);

const BY_NAME = new Map<string, Language>();
for (const language of Object.keys(LANGUAGES) as Language[]) {
  for (const name of [language, ...LANGUAGES[language].names]) BY_NAME.set(name, language);
}
for (const name of SCRIPTS.keys()) BY_NAME.set(name, "tsx");

/**
 * What stands after a fence: "ts", "ts title=queue.ts", "{.python}".
 *
 * @returns `language`: null if its code is not coloured; `title`: for a person, "" if the fence names none
 */
export function languageOf(info: string): { readonly language: Language | null; readonly title: string } {
  const [word = ""] = info.trim().split(/[\s,{:]/, 1);
  const name = word.toLowerCase();
  const language = BY_NAME.get(name) ?? null;
  const known = SCRIPTS.get(name) ?? (language === null ? undefined : LANGUAGES[language].title);
  return { language, title: known ?? word.slice(0, 40) };
}
