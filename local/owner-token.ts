/**
 * Owns: the owner's token of one start, with which a person approves (docs/security.md). It is shown on a terminal and
 * kept nowhere else: no environment, file or command line has it, and it is never a string, which could not be wiped
 * from memory. The API gets its digest.
 */
import { randomFillSync } from "node:crypto";
import { closeSync, openSync, writeSync } from "node:fs";
import { isatty } from "node:tty";
import { digestOfToken } from "../protocol/access.ts";

const TOKEN_BYTES = 32;
const HEX = Buffer.from("0123456789abcdef");
const STANDARD_OUTPUT = 1;

export type OwnerToken = {
  /** Lower-case hex. */
  readonly digest: string;
  /**
   * Shows the link that opens the page with the token, and forgets the token.
   *
   * @param url of the page
   * @returns false: there is no terminal. Where standard output is a file, tools could read it there.
   */
  readonly show: (url: string) => boolean;
};

export function makeOwnerToken(): OwnerToken {
  const bytes = fixed(TOKEN_BYTES);
  randomFillSync(bytes);
  const text = fixed(2 * TOKEN_BYTES);
  for (const [place, byte] of bytes.entries()) {
    HEX.copy(text, 2 * place, byte >> 4, (byte >> 4) + 1);
    HEX.copy(text, 2 * place + 1, byte & 0xf, (byte & 0xf) + 1);
  }
  bytes.fill(0);
  return {
    digest: digestOfToken(text),
    show: (url) => {
      const line = Buffer.concat([Buffer.from(`approve  ${url}/#token=`), text, Buffer.from("\n")]);
      text.fill(0);
      try {
        return writeToTerminal(line);
      } finally {
        line.fill(0);
      }
    },
  };
}

/** Bytes that stay in their place: the collector of garbage would leave copies of a small array. */
const fixed = (size: number): Buffer => Buffer.from(new ArrayBuffer(size));

/** False: neither standard output nor this session has a terminal. */
function writeToTerminal(line: Uint8Array): boolean {
  if (isatty(STANDARD_OUTPUT)) {
    writeSync(STANDARD_OUTPUT, line);
    return true;
  }
  try {
    const terminal = openSync("/dev/tty", "w");
    writeSync(terminal, line);
    closeSync(terminal);
    return true;
  } catch {
    return false;
  }
}
