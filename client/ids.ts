/** Owns: ids that a client chooses. */

/** A new id for a message or a conversation: 128 random bits. `crypto.randomUUID` is not there in insecure contexts. */
export function newId(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) =>
    byte.toString(16).padStart(2, "0"),
  ).join("");
}
