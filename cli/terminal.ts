/**
 * Owns: where the command line reads and writes: what is data, what is for the person, whether somebody sits there, and
 * that no text steers the terminal.
 */
import type { Readable } from "node:stream";
import { styleText } from "node:util";

export type Style = "bold" | "dim" | "red" | "green" | "yellow" | "cyan";

/** What a process has to write to: a terminal, a pipe or a file. */
export type Output = {
  readonly write: (text: string, done?: () => void) => boolean;
  readonly on: (event: "error", listener: (error: NodeJS.ErrnoException) => void) => unknown;
  readonly isTTY?: boolean;
  readonly hasColors?: () => boolean;
};

type Streams = {
  readonly input: Readable & { readonly isTTY?: boolean };
  readonly output: Output;
  readonly errors: Output;
};

/** The standard streams of a process, which may be terminals. */
export type ProcessStreams = {
  readonly input: NodeJS.ReadStream;
  readonly output: NodeJS.WriteStream;
  readonly errors: NodeJS.WriteStream;
};

export class Terminal {
  /** A person can be asked. */
  readonly isInteractive: boolean;
  readonly #errors: Output;
  readonly #output: Output;
  /** Both go to one screen. */
  readonly #isOneScreen: boolean;
  #isInLine = false;
  #hasBegun = false;

  constructor({ input, output, errors }: Streams) {
    this.isInteractive = input.isTTY === true && errors.isTTY === true;
    this.#errors = errors;
    this.#output = output;
    this.#isOneScreen = output.isTTY === true && errors.isTTY === true;
    // A reader that ends early (`| head`) or a terminal that is closed wants no more. What runs on the server goes on.
    for (const stream of [output, errors]) {
      stream.on("error", (error: NodeJS.ErrnoException) => {
        if (error.code !== "EPIPE" && error.code !== "EIO") throw error;
      });
    }
  }

  /** Data, as it is: a line of JSON, an id. */
  data(line: string): void {
    this.#output.write(`${line}\n`);
  }

  /** A piece of the agent's words. */
  words(text: string): void {
    if (text === "") return;
    this.#output.write(visible(text));
    this.#isInLine = !text.endsWith("\n");
  }

  /** Ends a line that words have begun. */
  endLine(): void {
    if (this.#isInLine) this.#output.write("\n");
    this.#isInLine = false;
  }

  /** The beginning of a line for the person; `goOn` ends it, or anything that is told before. */
  begin(text: string): void {
    this.#errors.write(this.styled(visible(text), "dim"));
    this.#hasBegun = true;
  }

  /** The rest of the line that was begun; all of it where there is none any more. */
  goOn(beginning: string, rest: string): void {
    const text = this.#hasBegun ? rest : beginning + rest;
    this.#hasBegun = false;
    this.tell(text, "dim");
  }

  /** A line for the person. */
  tell(text: string, style?: Style): void {
    if (this.#hasBegun) this.#errors.write("\n");
    this.#hasBegun = false;
    if (this.#isOneScreen) this.endLine();
    this.#errors.write(`${style === undefined ? visible(text) : this.styled(visible(text), style)}\n`);
  }

  /** Part of a line for the person. */
  styled(text: string, style: Style): string {
    const hasColors = this.#errors.isTTY === true && this.#errors.hasColors?.() === true;
    return hasColors ? styleText(style, text, { validateStream: false }) : text;
  }

  /** Resolves when everything was written: a process that exits would cut a pipe off. */
  async flush(): Promise<void> {
    // A reader that has ended reads nothing more.
    const written = (stream: Output) => new Promise<void>((resolve) => stream.write("", () => resolve()));
    await Promise.all([written(this.#output), written(this.#errors)]);
  }
}

/**
 * The text without characters that steer a terminal, or write it in another order than it has. They become visible:
 * `\x1b`, `\u202e`.
 */
function visible(text: string): string {
  return text
    .replaceAll("\r\n", "\n")
    .replaceAll(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g, (character) => {
      const code = character.charCodeAt(0);
      return code < 0x100
        ? `\\x${code.toString(16).padStart(2, "0")}`
        : `\\u${code.toString(16).padStart(4, "0")}`;
    });
}
