/** Owns: ripgrep's output for the lines it found (`rg --json`), and how such a line is shown. */

/** The lines that follow are of this file. */
export type FoundFile = { readonly kind: "file"; readonly path: string };

export type FoundLine = {
  readonly kind: "line";
  readonly isMatch: boolean;
  /** As it was given to ripgrep, or as ripgrep found it below. */
  readonly path: string;
  readonly number: number;
  /** Without its line ending. */
  readonly text: string;
  /** The offset of the first match in the text, in UTF-16 code units. */
  readonly matchAt: number;
};

/** `bytes` is base64, of what is not UTF-8. */
type Text = { readonly text: string } | { readonly bytes: string };
type Event =
  | { readonly type: "end" | "summary" }
  | { readonly type: "begin"; readonly data: { readonly path: Text } }
  | {
      readonly type: "match" | "context";
      readonly data: {
        readonly path: Text;
        readonly lines: Text;
        readonly line_number: number;
        readonly submatches: readonly { readonly start: number }[];
      };
    };

/** The file or the line that an event is about; null for an event about neither. */
export function parseEvent(json: string): FoundFile | FoundLine | null {
  const event = JSON.parse(json) as Event;
  if (event.type === "begin") return { kind: "file", path: decode(event.data.path).toString() };
  if (event.type !== "match" && event.type !== "context") return null;
  const { path, lines, line_number: number, submatches } = event.data;
  const start = submatches[0]?.start ?? 0;
  return {
    kind: "line",
    isMatch: event.type === "match",
    path: decode(path).toString(),
    number,
    text: decode(lines)
      .toString()
      .replace(/\r?\n$/, ""),
    matchAt: start === 0 ? 0 : decode(lines).subarray(0, start).toString().length,
  };
}

const decode = (text: Text): Buffer =>
  "text" in text ? Buffer.from(text.text) : Buffer.from(text.bytes, "base64");

/** The part of a long line around a place in it. */
export function excerpt(text: string, at: number, limit: number): string {
  const clean = text.replaceAll("\0", " ");
  if (clean.length <= limit) return clean;
  const start = Math.max(0, Math.min(at - Math.floor(limit / 4), clean.length - limit));
  const part = clean.slice(start, start + limit).toWellFormed();
  const after = clean.length - start - limit;
  return (
    (start > 0 ? `[… ${start} characters cut …] ` : "") +
    part +
    (after > 0 ? ` [… ${after} characters cut …]` : "")
  );
}
