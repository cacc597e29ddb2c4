/** Owns: the values of a script's names where they are used, as far as the script itself shows them. */
import type { Word } from "unbash";

/** UTF-16 code units that are examined for one script. A script that needs more is meant to be hard to foresee. */
const MAX_CHARS_IN_ALL = 1024 * 1024;

/** A word of the script, or a text that is known already. */
export type Source = Word | string;

/** A place in a script: whose `$1` it has, and how many assignments precede it. */
export type Place = {
  /** A function's name, or the number of a script. */
  readonly owner: string;
  /** null: in a function, which may run at any time. */
  readonly at: number | null;
};

type Assigned = {
  readonly at: number;
  /** Alternatives, each of one field or, for a list, of several. */
  readonly values: readonly (readonly Source[])[];
  /** Earlier assignments do not count any more. */
  readonly isCertain: boolean;
};

/** The values of a name. `isList`: stars in them have become names of files, whatever quotes come later. */
export type Values = { readonly values: readonly (readonly Source[])[]; readonly isList: boolean };

export class Names {
  readonly home: string;
  readonly #assigned = new Map<string, Assigned[]>();
  readonly #lists = new Set<string>();
  readonly #calls = new Map<string, (readonly Source[])[]>();
  #count = 0;
  #chars = 0;

  constructor(home: string) {
    this.home = home;
    this.assign("HOME", [home], true);
    // Wherever the script has gone to by then, its directory is ".".
    this.assign("PWD", ["."], true);
  }

  /** The number of assignments so far: the place of what comes next. */
  get count(): number {
    return this.#count;
  }

  /** The name gets one of these values. */
  assign(name: string, values: readonly Source[], isCertain: boolean): void {
    this.#add(
      name,
      values.map((value) => [value]),
      isCertain,
    );
  }

  /** The variable of a loop gets each of the values, one after the other. */
  loop(name: string, values: readonly Source[]): void {
    this.#lists.add(name);
    this.assign(name, values, true);
  }

  /** An array gets more elements, whatever they replace. */
  extend(name: string, elements: readonly Source[]): void {
    this.#lists.add(name);
    const before = this.#assigned.get(name)?.at(-1)?.values[0] ?? [];
    this.#add(name, [[...before, ...elements]], true);
  }

  /** A function, or a script, gets `$0` and these arguments. */
  call(owner: string, zero: Source, args: readonly Source[]): void {
    this.#calls.set(owner, [...(this.#calls.get(owner) ?? []), [zero, ...args]]);
  }

  valuesOf(name: string, { owner, at }: Place): Values {
    const calls = this.#calls.get(owner) ?? [];
    if (name === "@" || name === "*") return { values: calls.map((args) => args.slice(1)), isList: true };
    if (/^\d+$/.test(name)) {
      const values = calls.flatMap((args) => args.slice(Number(name), Number(name) + 1).map((arg) => [arg]));
      return { values, isList: true };
    }
    const all = this.#assigned.get(name) ?? [];
    const before = all.filter((assigned) => at !== null && assigned.at < at);
    const last = before.findLastIndex(({ isCertain }) => isCertain);
    const counting = before.length === 0 ? all : before.slice(Math.max(0, last));
    return { values: counting.flatMap(({ values }) => values), isList: this.#lists.has(name) };
  }

  /**
   * Counts what is examined. Returns false if that is enough, and the rest is unknown.
   * @param chars UTF-16 code units, or fields
   */
  take(chars: number): boolean {
    this.#chars += chars;
    return this.#chars < MAX_CHARS_IN_ALL;
  }

  #add(name: string, values: Assigned["values"], isCertain: boolean): void {
    const all = this.#assigned.get(name);
    const assigned = { at: this.#count++, values, isCertain };
    if (all === undefined) this.#assigned.set(name, [assigned]);
    else all.push(assigned);
  }
}
