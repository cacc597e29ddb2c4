/**
 * Owns: making any value acceptable to jsonb and text. Postgres refuses U+0000 and lone surrogates. It would refuse a
 * commit with them at every attempt, and the conversation could never go on.
 */

/** JSON in which every U+0000 and every lone surrogate, in keys too, is U+FFFD. Other text is untouched. */
export function encodeJson(value: unknown): string {
  const json = JSON.stringify(value);
  // JSON.stringify escapes exactly these characters as \uXXXX, and control characters, which are fine.
  return json.includes("\\u")
    ? json.replace(ESCAPES, (match, code: string) => (code === "\\" ? match : "\ufffd"))
    : json;
}

/** The same for one string outside of JSON. */
export function cleanText(text: string): string {
  return text.replace(/[\0\p{Surrogate}]/gu, "\ufffd");
}

/** Also matches an escaped backslash, to step over it: the characters after it are no escape. */
const ESCAPES = /\\(\\|u0000|ud[89a-f][0-9a-f]{2})/g;
