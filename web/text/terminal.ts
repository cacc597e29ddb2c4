/**
 * Owns: what a terminal would show of a command's output: lines of text in some colours, read piece by piece. Other
 * control sequences are left out: nothing here sets a title, makes a link, moves or hides text. Pure.
 *
 * Not a library, since the one at hand needs memory for the square of the colour changes: 200 kB of output end the tab.
 */

/** `className` is "" for text without a style. */
type Span = { readonly text: string; readonly className: string };
export type Line = {
  readonly spans: readonly Span[];
  /** A long line is cut in several, so that each is cheap to show. The last line is open. */
  readonly end: "newline" | "cut" | "open";
};

export type TerminalText = {
  /** All that was read. */
  readonly source: string;
  /** At least one; the last one grows. */
  readonly lines: readonly Line[];
  readonly style: Style;
  /** A sequence that is not complete. */
  readonly pending: string;
  /** The cursor is at the beginning of the last line: what comes next replaces it. */
  readonly returned: boolean;
};

type Color = "red" | "green" | "yellow" | "blue" | "magenta" | "cyan" | "gray";
type Style = {
  readonly text?: Color | undefined;
  readonly back?: Color | undefined;
  readonly bold?: boolean;
  readonly dim?: boolean;
  readonly italic?: boolean;
  readonly underline?: boolean;
  readonly struck?: boolean;
  readonly inverse?: boolean;
};

/** UTF-16 code units, and styles, of a line before it is cut. */
const MAX_LENGTH = 2000;
const MAX_SPANS = 40;

const EMPTY_LINE: Line = { spans: [], end: "open" };
export const EMPTY_TERMINAL: TerminalText = {
  source: "",
  lines: [EMPTY_LINE],
  style: {},
  pending: "",
  returned: false,
};

const CONTROL = /[\0-\x08\n\x0b-\x1f\x7f-\x9f]/g;
const CSI = /(?:\x1b\[|\x9b)([0-?]{0,64})[ -/]{0,8}([@-~])/y;
/** Titles, links, queries: up to their end. One without an end in its line is no sequence, and its text is shown. */
const STRING = /(?:\x1b[\]PX^_]|[\x90\x98\x9d\x9e\x9f])[^\0-\x1f\x7f-\x9f]{0,4096}(?:\x07|\x1b\\|\x9c)/y;
const SHORT = /\x1b[ -/]{0,4}[0-~]/y;
const INCOMPLETE =
  /(?:(?:\x1b\[|\x9b)[0-?]{0,64}[ -/]{0,8}|(?:\x1b[\]PX^_]|[\x90\x98\x9d\x9e\x9f])[^\0-\x1f\x7f-\x9f]{0,4096}\x1b?|\x1b[ -/]{0,4}|\r)$/y;

/** The state after all of `text`; reads only what is new. */
export const readTerminal = (before: TerminalText, text: string): TerminalText =>
  text.startsWith(before.source)
    ? append(before, text.slice(before.source.length), text)
    : append(EMPTY_TERMINAL, text, text);

function append(before: TerminalText, added: string, source: string): TerminalText {
  const screen = new Screen(before);
  const text = before.pending + added;
  const matchAt = (pattern: RegExp, at: number): RegExpExecArray | null => {
    pattern.lastIndex = at;
    return pattern.exec(text);
  };
  let at = 0;
  while (at < text.length) {
    const control = matchAt(CONTROL, at)?.index ?? text.length;
    if (control > at) screen.print(text.slice(at, control));
    at = control;
    if (at === text.length) break;
    if (matchAt(INCOMPLETE, at) !== null) return screen.after(source, text.slice(at));
    const csi = matchAt(CSI, at);
    if (csi !== null) screen.control(csi[2] ?? "", csi[1] ?? "");
    const sequence = csi ?? matchAt(STRING, at) ?? matchAt(SHORT, at);
    if (sequence === null) screen.single(text.charAt(at));
    at += sequence?.[0].length ?? 1;
  }
  return screen.after(source, "");
}

class Screen {
  readonly #lines: Line[];
  /** The spans of the last line. */
  #spans: Span[];
  #length: number;
  #style: Style;
  #className: string;
  #returned: boolean;

  constructor({ lines, style, returned }: TerminalText) {
    this.#lines = lines.slice(0, -1);
    this.#spans = [...(lines.at(-1)?.spans ?? [])];
    this.#length = this.#spans.reduce((sum, { text }) => sum + text.length, 0);
    this.#style = style;
    this.#className = classOf(style);
    this.#returned = returned;
  }

  after(source: string, pending: string): TerminalText {
    return {
      source,
      lines: [...this.#lines, { spans: this.#spans, end: "open" }],
      style: this.#style,
      pending,
      returned: this.#returned,
    };
  }

  print(text: string): void {
    if (this.#returned) this.#clearLine();
    for (let at = 0; at < text.length;) {
      const isStyleNew = this.#spans.at(-1)?.className !== this.#className;
      if (this.#length >= MAX_LENGTH || (isStyleNew && this.#spans.length >= MAX_SPANS)) this.#endLine("cut");
      const part = text.slice(at, at + MAX_LENGTH - this.#length);
      const last = this.#spans.at(-1);
      if (last?.className === this.#className)
        this.#spans[this.#spans.length - 1] = { ...last, text: last.text + part };
      else this.#spans.push({ text: part, className: this.#className });
      this.#length += part.length;
      at += part.length;
    }
  }

  /** A control character alone. */
  single(character: string): void {
    if (character === "\n") this.#endLine("newline");
    else if (character === "\r") this.#returned = true;
    else if (character === "\b") this.#back();
  }

  /** A control sequence: its last character and its parameters. */
  control(final: string, parameters: string): void {
    if (final === "m" && /^[\d;:]*$/.test(parameters)) {
      this.#style = styleAfter(this.#style, parameters);
      this.#className = classOf(this.#style);
    } else if (final === "K" && (parameters === "2" || this.#returned)) this.#clearLine();
    else if (final === "G" && (parameters === "" || parameters === "1")) this.#returned = true;
  }

  #endLine(end: Line["end"]): void {
    this.#lines.push({ spans: this.#spans, end });
    this.#spans = [];
    this.#length = 0;
    this.#returned = false;
  }

  #clearLine(): void {
    while (this.#lines.at(-1)?.end === "cut") this.#lines.pop();
    this.#spans = [];
    this.#length = 0;
    this.#returned = false;
  }

  #back(): void {
    const last = this.#spans.pop();
    if (last === undefined) return;
    const text = last.text.replace(/.$/su, "");
    this.#length -= last.text.length - text.length;
    if (text !== "") this.#spans.push({ ...last, text });
  }
}

const COLORS: readonly (Color | undefined)[] = [
  ...([undefined, "red", "green", "yellow", "blue", "magenta", "cyan", undefined] as const),
];

/** Of the 16 colours; black and white are the colours of the page. */
const baseColor = (index: number): Color | undefined => (index === 8 ? "gray" : COLORS[index % 8]);

function styleAfter(before: Style, parameters: string): Style {
  let style = before;
  const codes = parameters.split(";");
  for (let at = 0; at < codes.length; at++) {
    const [code = "", ...parts] = (codes[at] ?? "").split(":");
    const number = Number(code);
    if (number === 38 || number === 48) {
      // Colons keep a colour's numbers together; semicolons do not.
      const count = parts.length > 0 ? 0 : codes[at + 1] === "5" ? 2 : codes[at + 1] === "2" ? 4 : 0;
      const numbers = (parts.length > 0 ? parts : codes.slice(at + 1, at + 1 + count)).map(Number);
      at += count;
      style = { ...style, [number === 38 ? "text" : "back"]: extendedColor(numbers) };
    } else style = afterCode(style, number);
  }
  return style;
}

function afterCode(style: Style, code: number): Style {
  if (code === 0) return {};
  if (code === 1) return { ...style, bold: true };
  if (code === 2) return { ...style, dim: true };
  if (code === 3) return { ...style, italic: true };
  if (code === 4) return { ...style, underline: true };
  if (code === 7) return { ...style, inverse: true };
  if (code === 9) return { ...style, struck: true };
  if (code === 21 || code === 22) return { ...style, bold: false, dim: false };
  if (code === 23) return { ...style, italic: false };
  if (code === 24) return { ...style, underline: false };
  if (code === 27) return { ...style, inverse: false };
  if (code === 29) return { ...style, struck: false };
  if (code >= 30 && code <= 37) return { ...style, text: baseColor(code - 30) };
  if (code === 39) return { ...style, text: undefined };
  if (code >= 40 && code <= 47) return { ...style, back: baseColor(code - 40) };
  if (code === 49) return { ...style, back: undefined };
  if (code >= 90 && code <= 97) return { ...style, text: baseColor(code - 82) };
  if (code >= 100 && code <= 107) return { ...style, back: baseColor(code - 92) };
  // Others blink, or hide text.
  return style;
}

/** The colour of ours that is next to one of 256 (5, n) or of all (2, r, g, b): ours can be read on both themes. */
function extendedColor([mode, ...numbers]: readonly number[]): Color | undefined {
  if (mode === 2) return nearestColor(numbers.slice(-3));
  const [index = 0] = numbers;
  if (index < 16) return baseColor(index);
  if (index >= 232) return index >= 238 && index <= 248 ? "gray" : undefined;
  const cube = index - 16;
  return nearestColor([Math.floor(cube / 36), Math.floor(cube / 6) % 6, cube % 6].map((level) => level * 51));
}

function nearestColor([red = 0, green = 0, blue = 0]: readonly number[]): Color | undefined {
  const most = Math.max(red, green, blue);
  const least = Math.min(red, green, blue);
  if (most - least < 40) return most > 80 && most < 180 ? "gray" : undefined;
  const half = (most + least) / 2;
  return COLORS[(red > half ? 1 : 0) + (green > half ? 2 : 0) + (blue > half ? 4 : 0)];
}

function classOf({ text, back, bold, dim, italic, underline, struck, inverse }: Style): string {
  // No colour can be read on each of the others.
  const color = back !== undefined ? `tx-on-${back}` : text !== undefined ? `tx-${text}` : "";
  return [
    ...[inverse === true && back === undefined ? "tx-inverse" : color, bold === true && "tx-bold"],
    ...[dim === true && color === "" && inverse !== true && "tx-gray", italic === true && "tx-italic"],
    ...[underline === true && "tx-underline", struck === true && "tx-struck"],
  ]
    .filter((name) => name !== false && name !== "")
    .join(" ");
}
