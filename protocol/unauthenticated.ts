/**
 * Owns: the marker that replaces a payload which none of our processes has encrypted. Pure, because workflows check for
 * it, too.
 * Not here: encrypting and decrypting (payload-encryption.ts).
 */

export const UNAUTHENTICATED = { unauthenticated: true } as const;

/** If true, the caller must not act on the value. */
export function isUnauthenticated(value: unknown): value is typeof UNAUTHENTICATED {
  return (
    typeof value === "object" &&
    value !== null &&
    "unauthenticated" in value &&
    value.unauthenticated === true
  );
}
