/** Owns: JSON for a person to read, of bounded length. Pure. */
import type { Json } from "../../machine/message.ts";

/** Nested deeper, a value is only named. */
const MAX_DEPTH = 30;

/**
 * A value as indented JSON. What is too long is cut, and says so; then it is no JSON any more.
 *
 * @param limits.length UTF-16 code units of the whole, about
 * @param limits.string of one string
 */
export function jsonText(
  value: Json,
  limits: { readonly length: number; readonly string: number },
): { readonly text: string; readonly isCut: boolean } {
  const writer = new Writer(limits);
  writer.write(value, 0);
  return { text: writer.parts.join(""), isCut: writer.isCut };
}

class Writer {
  readonly parts: string[] = [];
  isCut = false;
  readonly #string: number;
  #left: number;

  constructor({ length, string }: { readonly length: number; readonly string: number }) {
    this.#left = length;
    this.#string = string;
  }

  write(value: Json, depth: number): void {
    if (typeof value === "string") this.#put(this.#stringText(value));
    else if (typeof value !== "object" || value === null) this.#put(JSON.stringify(value));
    else if (isList(value))
      this.#writeAll(
        "[",
        value.map((item) => [null, item] as const),
        "]",
        depth,
      );
    else this.#writeAll("{", Object.entries(value), "}", depth);
  }

  /** @param entries with their keys, or null */
  #writeAll(
    open: string,
    entries: readonly (readonly [string | null, Json])[],
    close: string,
    depth: number,
  ): void {
    const count = entries.length;
    if (count === 0 || depth >= MAX_DEPTH) {
      this.isCut ||= count > 0;
      this.#put(count === 0 ? open + close : `${open} … ${close}`);
      return;
    }
    this.#put(open);
    let done = 0;
    for (const [key, item] of entries) {
      if (this.#left <= 0) {
        this.isCut = true;
        this.#put(`\n${"  ".repeat(depth + 1)}… ${(count - done).toLocaleString("en-US")} more`);
        break;
      }
      const name = key === null ? "" : `${this.#stringText(key)}: `;
      this.#put(`${done > 0 ? "," : ""}\n${"  ".repeat(depth + 1)}${name}`);
      this.write(item, depth + 1);
      done++;
    }
    this.#put(`\n${"  ".repeat(depth)}${close}`);
  }

  #stringText(value: string): string {
    const room = Math.max(0, Math.min(this.#string, this.#left));
    if (value.length <= room) return JSON.stringify(value);
    this.isCut = true;
    return `${JSON.stringify(value.slice(0, room))} … ${(value.length - room).toLocaleString("en-US")} more characters`;
  }

  #put(text: string): void {
    this.parts.push(text);
    this.#left -= text.length;
  }
}

const isList = (value: object): value is readonly Json[] => Array.isArray(value);
