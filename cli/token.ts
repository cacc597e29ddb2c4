/** Owns: `bedrock token`: a new token, and the entry for the file of tokens (API_TOKENS_FILE). */
import { randomBytes } from "node:crypto";
import { digestOfToken, type Role, type TokenEntry } from "../protocol/access.ts";
import { PERSON_NAME } from "../protocol/formats.ts";
import { UsageError } from "./exit-codes.ts";
import type { Terminal } from "./terminal.ts";

export type TokenFlags = {
  readonly role: Role;
  readonly expires?: string;
  readonly requestsPerMinute?: number;
  readonly json?: true;
};

/** @throws UsageError */
export function makeToken(terminal: Terminal, name: string, flags: TokenFlags): void {
  if (!PERSON_NAME.test(name))
    throw new UsageError("A name has 1 to 64 letters, digits and ._@-, the first a letter or a digit.");
  const token = randomBytes(32).toString("base64url");
  const { role, expires, requestsPerMinute } = flags;
  const entry: TokenEntry = {
    ...{ name, role, sha256: digestOfToken(token) },
    ...(expires === undefined ? {} : { expires: timeOf(expires) }),
    ...(requestsPerMinute === undefined ? {} : { requestsPerMinute }),
  };
  if (flags.json === true) {
    terminal.data(JSON.stringify({ token, entry }));
    return;
  }
  terminal.tell(`The token of ${name}. It is shown this once:`);
  terminal.data(token);
  terminal.tell('Its entry, for the list "tokens" in the file of API_TOKENS_FILE:');
  terminal.tell(JSON.stringify(entry));
}

/** A date or a time as the file has it. @throws UsageError */
function timeOf(text: string): string {
  const at = new Date(text);
  if (Number.isNaN(at.getTime()) || !/^\d{4}-\d{2}-\d{2}/.test(text))
    throw new UsageError("--expires is a date or a time, such as 2027-01-31 or 2027-01-31T18:00:00Z.");
  return at.toISOString();
}
