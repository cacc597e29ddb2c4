/**
 * Owns: what a caller of the API may do, as levels, and the form in which a token is kept. Settings, the API and the
 * command line agree on them.
 * Not here: who calls (api/access/), which role a route needs (beside the route).
 */
import { createHash } from "node:crypto";

/** From the least to the most; each may do what those before it may. */
export const ROLES = ["read", "talk", "approve", "admin"] as const;
export type Role = (typeof ROLES)[number];

export const isAtLeast = (role: Role, needed: Role): boolean => ROLES.indexOf(role) >= ROLES.indexOf(needed);

/** An entry of the file of tokens (API_TOKENS_FILE). */
export type TokenEntry = {
  readonly name: string;
  readonly role: Role;
  /** Lower-case hex. Who reads it gets no right: a token has 256 random bits. */
  readonly sha256: string;
  readonly requestsPerMinute?: number | undefined;
  /** RFC 3339; from then on the token is worth nothing. */
  readonly expires?: string | undefined;
};

/** Lower-case hex. */
export const digestOfToken = (token: string | Uint8Array): string =>
  createHash("sha256").update(token).digest("hex");
