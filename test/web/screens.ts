/**
 * Owns: the pictures of the page in docs/screens/, taken by `npm run screens` after a deliberate change of its looks.
 * With `ALL_SCREENS=<folder>` it takes one of each scene in each look instead, to be looked through.
 */
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import type { BrowserContextOptions, Page } from "playwright-core";
import sharp from "sharp";
import type { Visitor } from "./browser.ts";
import { SCENES, sceneOf, SCRIPTED_SCENES, show, TOKEN_SCENES, type Scene } from "./scenes.ts";
import { testWithStack, type Stack } from "./stack.ts";

const DOCS = join(import.meta.dirname, "..", "..", "docs", "screens");
const ALL = process.env["ALL_SCREENS"];

const LOCAL = { locale: "en-GB", timezoneId: "UTC" } as const;
const WIDE = { ...LOCAL, viewport: { width: 1360, height: 900 } } as const;
const PHONE = { ...LOCAL, viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true } as const;

type Look = { readonly suffix: string; readonly options: BrowserContextOptions };
const LIGHT: Look = { suffix: "", options: { ...WIDE, colorScheme: "light" } };
const DARK: Look = { suffix: "-dark", options: { ...WIDE, colorScheme: "dark" } };
const DARK_PHONE: Look = { suffix: "-phone", options: { ...PHONE, colorScheme: "dark" } };
const LOOKS = [LIGHT, DARK, DARK_PHONE];

type Given = { readonly visitor: Visitor; readonly stack: Stack };

/** In the browser: replaces what differs from run to run, or is of this machine. */
function makeNeutral({ cwd, home }: { readonly cwd: string; readonly home: string }): void {
  const neutral = (text: string): string =>
    text
      .replaceAll(/ ?\[\[script:[^\]]*\]\]/g, "")
      .replaceAll(cwd, "/home/me/shop")
      .replaceAll(home, "/home/me")
      .replaceAll(/^\d\d:\d\d$/g, "10:24");
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode() !== null) {
    const { currentNode } = texts;
    const text = currentNode.nodeValue ?? "";
    if (neutral(text) !== text) currentNode.nodeValue = neutral(text);
  }
  for (const input of document.querySelectorAll("input"))
    if (input.type === "text") input.value = neutral(input.value);
}

/** In the browser: code is coloured, and images come, a moment after their text. */
function untilStill(): Promise<void> {
  /** Milliseconds. Clocks tick each second. */
  const STILL_MS = 400;
  return new Promise((resolve) => {
    const end = () => {
      observer.disconnect();
      resolve();
    };
    let timer = setTimeout(end, STILL_MS);
    const observer = new MutationObserver(() => {
      clearTimeout(timer);
      timer = setTimeout(end, STILL_MS);
    });
    observer.observe(document.body, { childList: true, subtree: true, characterData: true });
  });
}

async function take(page: Page, { system: { cwd } }: Stack, folder: string, name: string): Promise<void> {
  await page.evaluate(untilStill);
  await page.evaluate(makeNeutral, { cwd, home: process.env["HOME"] ?? "/root" });
  const picture = await page.screenshot({ animations: "disabled", caret: "hide" });
  await mkdir(folder, { recursive: true });
  await sharp(picture)
    .png({ palette: true, compressionLevel: 9 })
    .toFile(join(folder, `${name}.png`));
}

/** Shows the scenes one within the other, so that the last one has the others in its list. */
async function showAll(
  [first, ...others]: readonly Scene[],
  given: Given,
  options: BrowserContextOptions,
  lookAt: (page: Page) => Promise<void>,
): Promise<void> {
  if (first === undefined) return;
  await show(
    first,
    given,
    (page) => (others.length === 0 ? lookAt(page) : showAll(others, given, options, lookAt)),
    options,
  );
}

/** The pictures of docs/screens/, and what is in the list of each. */
const PICTURES: readonly {
  readonly name: string;
  readonly scenes: readonly string[];
  readonly looks: readonly Look[];
}[] = [
  {
    name: "2-approval",
    scenes: [
      "a context that is used up, with its summary",
      "an error",
      "a conversation at rest",
      "a command that runs, with what it has printed",
      "sub-agents at work",
      "an approval that waits, with a message for afterwards",
    ],
    looks: LOOKS,
  },
  { name: "3-change", scenes: ["a group of calls opened, a change of a file below it"], looks: [LIGHT] },
  { name: "4-running", scenes: ["a command that runs, with what it has printed"], looks: [LIGHT] },
  { name: "5-stopped", scenes: ["messages that a Stop holds"], looks: [LIGHT] },
  { name: "6-requests", scenes: ["the requests of a conversation, one opened"], looks: [LIGHT] },
];

const KINDS = [
  { options: {}, scenes: SCENES },
  { options: { env: { SCRIPTED_MODEL: "true" } }, scenes: SCRIPTED_SCENES },
  { options: { apiToken: "the-token-of-this-picture" }, scenes: TOKEN_SCENES },
] as const;

if (ALL === undefined) {
  testWithStack({ env: { SCRIPTED_MODEL: "true" } })("1-start", async ({ visitor, stack }) => {
    const [start] = SCRIPTED_SCENES;
    await showAll(start === undefined ? [] : [start], { visitor, stack }, LIGHT.options, (page) =>
      take(page, stack, DOCS, "1-start"),
    );
  });
  for (const { name, scenes, looks } of PICTURES)
    for (const { suffix, options } of looks)
      testWithStack()(`${name}${suffix}`, ({ visitor, stack }) =>
        showAll(scenes.map(sceneOf), { visitor, stack }, options, (page) =>
          take(page, stack, DOCS, `${name}${suffix}`),
        ),
      );
} else
  for (const { suffix, options } of LOOKS)
    for (const kind of KINDS) {
      const test = testWithStack(kind.options);
      for (const scene of kind.scenes)
        test(`${scene.name}${suffix}`, ({ visitor, stack }) =>
          show(
            scene,
            { visitor, stack },
            (page) => take(page, stack, ALL, `${scene.name}${suffix}`),
            options,
          ));
    }
