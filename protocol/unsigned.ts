/**
 * Owns: what stands in place of a payload that nobody of ours has signed. Pure, because workflows look for it, too.
 * Not here: signing and checking (payload-signature.ts).
 */

export const UNSIGNED = { unsigned: true } as const;

/** Whoever asks must not act upon the value. */
export function isUnsigned(value: unknown): value is typeof UNSIGNED {
  return typeof value === "object" && value !== null && "unsigned" in value && value.unsigned === true;
}
