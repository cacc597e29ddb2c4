/** Colours of texts can be read in both themes: WCAG 2.2 AA, a contrast of 4.5. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";

const WEB = join(import.meta.dirname, "..", "..", "..", "web");
const css = ["style.css", "text/text.css"].map((file) => readFileSync(join(WEB, file), "utf8")).join("\n");

/** Names without "--", and the colours in the light and the dark theme. */
const tokens = new Map(
  [...css.matchAll(/--([\w-]+):\s*light-dark\((#\w+),\s*(#\w+)\)/g)].map(
    ([, name = "", light = "", dark = ""]) => [name, { light, dark }],
  ),
);

const luminance = (color: string): number => {
  const hex = color.length === 4 ? color.replace(/\w/g, "$&$&") : color;
  const [red = 0, green = 0, blue = 0] = [1, 3, 5]
    .map((at) => Number.parseInt(hex.slice(at, at + 2), 16) / 255)
    .map((value) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4));
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
};

function contrast(text: string, back: string, theme: "light" | "dark"): number {
  const [a, b] = [text, back].map((name) => luminance(tokens.get(name)?.[theme] ?? "")).sort((x, y) => y - x);
  return ((a ?? 0) + 0.05) / ((b ?? 0) + 0.05);
}

const backs = ["bg", "panel", "raised"];
const pairs: [string, string][] = [
  ...["keyword", "string", "comment", "constant", "function", "punctuation"].map((name): [string, string] => [
    `tx-${name}`,
    "panel",
  ]),
  ...["red", "green", "yellow", "blue", "magenta", "cyan", "gray"].flatMap((name) =>
    backs.map((back): [string, string] => [`tx-${name}`, back]),
  ),
  ...["red", "green", "yellow", "blue", "magenta", "cyan", "gray"].map((name): [string, string] => [
    "text",
    `tx-on-${name}`,
  ]),
  ...["text", "quiet", "danger"].flatMap((text) =>
    [...backs, "add", "del"].map((back): [string, string] => [text, back]),
  ),
  ...([
    ["safe", "add"],
    ["safe", "raised"],
    ["danger", "del"],
    ["accent", "bg"],
    ["accent", "panel"],
    ["accent", "raised"],
  ] as [string, string][]),
];

describe.each(["light", "dark"] as const)("in the %s theme", (theme) => {
  test.each(pairs)("%s on %s", (text, back) => {
    expect(tokens.has(text) && tokens.has(back)).toBe(true);
    expect(contrast(text, back, theme)).toBeGreaterThanOrEqual(4.5);
  });
});
