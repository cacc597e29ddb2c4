/** Owns: identifiers at the edge: which a client may choose, and new ones. */
import { randomUUID } from "node:crypto";
import { idAt } from "../machine/ids.ts";

/** What a client's id looks like (docs/http.md, General). */
export const CLIENT_ID = /^[A-Za-z0-9_-]{1,64}$/;

/** A new UUIDv7. */
export function newId(): string {
  return idAt({ at: Date.now(), seed: randomUUID() }, 0);
}
