/** Owns: the ids that the API makes. */
import { randomUUID } from "node:crypto";
import { idAt } from "../machine/ids.ts";

/** A new UUIDv7. */
export function newId(): string {
  return idAt({ at: Date.now(), seed: randomUUID() }, 0);
}
