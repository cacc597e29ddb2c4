/**
 * Owns: which paths a glob matches. ripgrep has globs too, but those bring back what .gitignore leaves out. A match
 * takes time proportional to the lengths of glob and path, whatever the glob.
 */

/** Tests one character of a name: against a set, or any. */
type CharTest = (char: string) => boolean;
type NameToken = "*" | CharTest;
type PathToken = "**" | readonly NameToken[];

const MAX_ALTERNATIVES = 256;

/**
 * `*` and `?` stand for characters of a name, `**` for any number of directories. `[a-z]` and `[!a-z]` stand for one of
 * a set, `{a,b}` for alternatives, a backslash before a character for the character itself. A glob without a slash is
 * for the name at any depth; with one, for the whole path; with one at its end, for all below. A leading `!` negates
 * the glob.
 * @returns a test of relative paths, without "./" at their beginning
 */
export function compileGlob(glob: string): (path: string) => boolean {
  const isNegated = glob.startsWith("!");
  const alternatives = expandBraces(isNegated ? glob.slice(1) : glob).map(parsePath);
  return (path) => {
    const names = path.split("/").map((name) => Array.from(name));
    return alternatives.some((tokens) => matchesPath(tokens, names)) !== isNegated;
  };
}

function matchesPath(tokens: readonly PathToken[], names: readonly (readonly string[])[]): boolean {
  return matchesSequence(tokens, names, "**", (token, name) =>
    matchesSequence(token, name, "*", (test, char) => test(char)),
  );
}

/** `star` stands for any number of items. After a mismatch it is enough to go back to the last one. */
function matchesSequence<Token, Star extends string, Item>(
  tokens: readonly (Token | Star)[],
  items: readonly Item[],
  star: Star,
  matches: (token: Exclude<Token, Star>, item: Item) => boolean,
): boolean {
  const isStar = (token: Token | Star): token is Star => token === star;
  let [token, item] = [0, 0];
  let retry: { readonly token: number; item: number } | null = null;
  while (item < items.length) {
    const [wanted, found] = [tokens[token], items[item]] as [Token | Star | undefined, Item];
    if (wanted !== undefined && isStar(wanted)) {
      retry = { token: ++token, item };
    } else if (wanted !== undefined && matches(wanted as Exclude<Token, Star>, found)) {
      token++;
      item++;
    } else if (retry !== null) {
      token = retry.token;
      item = ++retry.item;
    } else {
      return false;
    }
  }
  return tokens.slice(token).every(isStar);
}

function parsePath(glob: string): PathToken[] {
  const path = glob.replace(/^(\.?\/)+/, "/");
  if (!path.includes("/")) return ["**", parseName(path)];
  const names = path
    .replace(/\/$/, "/**")
    .split("/")
    .filter((name) => name !== "");
  const tokens = names.map((name): PathToken => (name === "**" ? "**" : parseName(name)));
  // This means all below a directory, not the directory.
  return tokens.at(-1) === "**" ? [...tokens, ["*"]] : tokens;
}

function parseName(glob: string): NameToken[] {
  const tokens: NameToken[] = [];
  for (const [part, escaped, negation, set] of glob.matchAll(/\\(.)|\[([!^]?)(\]?[^\]]*)\]|./gsu)) {
    if (escaped !== undefined) tokens.push((char) => char === escaped);
    else if (set !== undefined) tokens.push(oneOf(set, negation !== ""));
    else if (part === "*") tokens.push("*");
    else if (part === "?") tokens.push(() => true);
    else tokens.push((char) => char === part);
  }
  return tokens;
}

function oneOf(set: string, isNegated: boolean): CharTest {
  const ranges = [...set.matchAll(/(.)-(.)|./gsu)].map(([single, from = single, to = single]) => ({
    from,
    to,
  }));
  return (char) => ranges.some(({ from, to }) => from <= char && char <= to) !== isNegated;
}

/** `a{b,c}d` as `abd` and `acd`. A brace without its counterpart is a plain character. */
function expandBraces(glob: string): string[] {
  const done: string[] = [];
  const todo = [glob];
  for (let next = todo.pop(); next !== undefined; next = todo.pop()) {
    const braces = innermost(next);
    if (braces === null || done.length + todo.length >= MAX_ALTERNATIVES) {
      done.push(next);
      continue;
    }
    const { start, end } = braces;
    for (const choice of next.slice(start + 1, end).split(",")) {
      todo.push(next.slice(0, start) + choice + next.slice(end + 1));
    }
  }
  return done;
}

/** The first pair of braces that holds no other. */
function innermost(glob: string): { readonly start: number; readonly end: number } | null {
  let start = -1;
  for (let at = 0; at < glob.length; at++) {
    if (glob[at] === "\\") at++;
    else if (glob[at] === "{") start = at;
    else if (glob[at] === "}" && start !== -1) return { start, end: at };
  }
  return null;
}
