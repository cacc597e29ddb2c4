/** Owns: ids in the API's style. */
import { randomBytes } from "node:crypto";

const ALPHABET = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";

/** An id in the API's style, such as `toolu_01…`; never the same twice. */
export function newId(prefix: "msg" | "req" | "toolu"): string {
  const characters = [...randomBytes(22)].map((byte) => ALPHABET.charAt(byte % ALPHABET.length));
  return `${prefix}_01${characters.join("")}`;
}
