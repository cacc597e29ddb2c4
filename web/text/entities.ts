/**
 * Owns: HTML's character references in Markdown. The names that people and models write are known; any other stays as
 * it is written, which is readable. Pure.
 */

const NAMED: { readonly [name: string]: string } = {
  ...{ amp: "&", lt: "<", gt: ">", quot: '"', apos: "'", nbsp: "\u00a0", ensp: "\u2002", emsp: "\u2003" },
  ...{
    colon: ":",
    Tab: "\t",
    NewLine: "\n",
    sol: "/",
    lpar: "(",
    rpar: ")",
    num: "#",
    ast: "*",
    lowbar: "_",
  },
  ...{ grave: "`", lsqb: "[", rsqb: "]", lbrack: "[", rbrack: "]", vert: "|", bsol: "\\", commat: "@" },
  ...{ copy: "©", reg: "®", trade: "™", hellip: "…", mdash: "—", ndash: "–", bull: "•", middot: "·" },
  ...{
    lsquo: "‘",
    rsquo: "’",
    ldquo: "“",
    rdquo: "”",
    laquo: "«",
    raquo: "»",
    deg: "°",
    para: "¶",
    sect: "§",
  },
  ...{ times: "×", divide: "÷", plusmn: "±", minus: "−", ne: "≠", le: "≤", ge: "≥", asymp: "≈", infin: "∞" },
  ...{ larr: "←", rarr: "→", uarr: "↑", darr: "↓", harr: "↔", rArr: "⇒", lArr: "⇐", hArr: "⇔", check: "✓" },
  ...{ cross: "✗", euro: "€", pound: "£", yen: "¥", cent: "¢", micro: "µ", sum: "∑", prod: "∏", radic: "√" },
  ...{
    alpha: "α",
    beta: "β",
    gamma: "γ",
    delta: "δ",
    epsilon: "ε",
    lambda: "λ",
    mu: "μ",
    pi: "π",
    sigma: "σ",
  },
  ...{ Delta: "Δ", Sigma: "Σ", Omega: "Ω", omega: "ω", half: "½", frac12: "½", frac14: "¼", frac34: "¾" },
  ...{ eacute: "é", egrave: "è", agrave: "à", ccedil: "ç", ntilde: "ñ", szlig: "ß" },
  ...{ auml: "ä", ouml: "ö", uuml: "ü", Auml: "Ä", Ouml: "Ö", Uuml: "Ü" },
};

const REFERENCE = /&(?:#(\d{1,7})|#[xX]([\da-fA-F]{1,6})|([a-zA-Z][a-zA-Z0-9]{1,31}));/g;

/** The text with the characters that its references stand for. */
export const decodeReferences = (text: string): string =>
  text.includes("&")
    ? text.replace(REFERENCE, (whole, decimal?: string, hex?: string, name?: string) => {
        if (decimal !== undefined) return characterOf(Number.parseInt(decimal, 10));
        if (hex !== undefined) return characterOf(Number.parseInt(hex, 16));
        return name !== undefined && Object.hasOwn(NAMED, name) ? (NAMED[name] ?? whole) : whole;
      })
    : text;

const characterOf = (code: number): string =>
  code === 0 || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff) ? "\ufffd" : String.fromCodePoint(code);
