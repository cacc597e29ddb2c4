/**
 * Owns: identifiers made inside the machine. They derive from the event's stamp, so `transition` stays pure and a
 * replay makes the same ids again.
 */

/** When an event happened, and the randomness that it may use. The caller supplies both. */
export interface Stamp {
  /** Milliseconds since the Unix epoch. */
  readonly at: number;
  /** A UUID with at least 122 bits that no other event has. */
  readonly seed: string;
}

const COUNTER_LIMIT = 0x1000;

/**
 * The `n`th identifier of a stamp: a UUIDv7 whose time is the stamp's, whose 12-bit counter is `n` and whose 62 random
 * bits are the seed's (RFC 9562, 6.2, fixed-length dedicated counter).
 *
 * @param n 0 to 4095. Larger values wrap; no transition makes nearly as many ids.
 */
export function idAt(stamp: Stamp, n: number): string {
  const time = Math.trunc(stamp.at).toString(16).padStart(12, "0");
  const counter = (n % COUNTER_LIMIT).toString(16).padStart(3, "0");
  const random = stamp.seed.replaceAll("-", "");
  const variant = (8 + (Number.parseInt(random.charAt(31), 16) % 4)).toString(16);
  return `${time.slice(0, 8)}-${time.slice(8)}-7${counter}-${variant}${random.slice(17, 20)}-${random.slice(0, 12)}`;
}

/** A number in [0, 1) from a stamp's seed: the jitter of a retry. */
export function jitterOf(stamp: Stamp): number {
  return Number.parseInt(stamp.seed.slice(0, 8), 16) / 0x1_0000_0000;
}

/** RFC 3339 UTC with milliseconds, as on the wire. */
export function timestamp(at: number): string {
  return new Date(at).toISOString();
}
