/**
 * Owns: the marker that replaces a payload which none of our processes has signed. Pure, because workflows check for
 * it, too.
 * Not here: signing and checking (payload-signature.ts).
 */

export const UNSIGNED = { unsigned: true } as const;

/** If true, the caller must not act on the value. */
export function isUnsigned(value: unknown): value is typeof UNSIGNED {
  return typeof value === "object" && value !== null && "unsigned" in value && value.unsigned === true;
}
