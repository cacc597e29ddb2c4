/**
 * Owns: which addresses become links, and what a person is shown of them. Every address that a model wrote passes here,
 * and no other code of this folder makes a link.
 */

const PROTOCOLS: readonly string[] = ["http:", "https:", "mailto:"];
/** UTF-16 code units of an address that are shown. */
const SHOWN_LENGTH = 300;

export type Target = {
  /** As the browser will use it: absolute, with the host in ASCII. */
  readonly href: string;
  /** What decides where it leads: the host, or the address of a mail. */
  readonly place: string;
};

/**
 * Where an address leads; null: it does not become a link, because it is relative or of another kind than http, https
 * and mailto.
 */
export function targetOf(address: string): Target | null {
  if (!URL.canParse(address)) return null;
  const { protocol, href, host, pathname } = new URL(address);
  if (!PROTOCOLS.includes(protocol)) return null;
  return { href, place: protocol === "mailto:" ? pathname : host };
}

/** Whether a link's text is its address, so that the address need not be shown beside it. */
export function isAddress(text: string, { href }: Target): boolean {
  // Letters of other alphabets look like ASCII ones, and some characters are invisible.
  if (!/^[\x21-\x7e]+$/.test(text)) return false;
  return [text, `http://${text}`, `mailto:${text}`].some((address) => targetOf(address)?.href === href);
}

/** An address that does not become a link, as it is shown. */
export const shownAddress = (address: string): string =>
  address.length <= SHOWN_LENGTH ? address : `${address.slice(0, SHOWN_LENGTH)}…`;
