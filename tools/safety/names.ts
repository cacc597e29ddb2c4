/** Owns: what the names of a script can stand for: everything that is assigned to them, wherever that stands. */
import type { Word } from "unbash";

/** UTF-16 code units that are looked at for one script. One that needs more means to be hard to foresee. */
const MAX_CHARS_IN_ALL = 1024 * 1024;

/** A word of the script, or a text that is known already. */
export type Source = Word | string;

export class Names {
  readonly home: string;
  readonly #values = new Map<string, Source[]>();
  readonly #arrays = new Map<string, Source[]>();
  readonly #calls: (readonly Source[])[] = [];
  #chars = 0;

  constructor(home: string) {
    this.home = home;
    this.assign("HOME", [home]);
    // Wherever it has gone to by then: here.
    this.assign("PWD", ["."]);
  }

  assign(name: string, values: readonly Source[]): void {
    this.#values.set(name, [...(this.#values.get(name) ?? []), ...values]);
  }

  extend(name: string, elements: readonly Source[]): void {
    this.#arrays.set(name, [...(this.#arrays.get(name) ?? []), ...elements]);
  }

  /** A function or a script gets these arguments: `$1`, `$@`. */
  call(args: readonly Source[]): void {
    this.#calls.push(args);
  }

  /** false: enough has been looked at; the rest is unknown. */
  take(text: string): boolean {
    this.#chars += text.length;
    return this.#chars < MAX_CHARS_IN_ALL;
  }

  /** Alternatives; several fields where it is a list. */
  valuesOf(name: string): readonly (readonly Source[])[] {
    if (name === "@" || name === "*") return this.#calls;
    if (/^\d+$/.test(name))
      return this.#calls.flatMap((args) => args.slice(Number(name) - 1, Number(name)).map((arg) => [arg]));
    const elements = this.#arrays.get(name);
    return [
      ...(this.#values.get(name) ?? []).map((value) => [value]),
      ...(elements === undefined ? [] : [elements]),
    ];
  }
}
