/** Measures: text that comes while a person types, on a slow processor; and texts that are one long line. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Browser } from "playwright-core";
import type { Cue } from "../local/scripted/cues.ts";
import { say, text, toolCall } from "../local/scripted/script.ts";
import { MAX_MESSAGE_JSON_BYTES, MAX_TEXT_BYTES } from "../protocol/formats.ts";
import type { Product } from "../test/support/product.ts";
import { Talk } from "../test/support/talk.ts";
import { newProfile, Tab } from "./browser.ts";
import { ms } from "./stats.ts";

const DELTAS_PER_SECOND = 50;
/** Characters of a delta. */
const DELTA = 20;
/** How many times slower than this machine the page's processor is. */
const SLOWER = 4;
/** A quick typist. */
const KEY_EVERY_MS = 100;
const SAMPLES = 10;
/** Keys while nothing streams. */
const CALM_KEYS = 50;
/** Milliseconds in which a page becomes quiet: what it does for a text that has come, it has done by then. */
const SETTLED_MS = 2_500;

const sentence = (at: number): string => `Some *prose* with \`code\`, number ${at}, and **more** words. `;

/** Kinds of answers, by their parts. */
export const ANSWERS = {
  mixed: (at) =>
    [
      `\n\n## Part ${at}\n\n${sentence(at)}${sentence(at)}\n\n- ${sentence(at)}\n- ${sentence(at)}\n\n`,
      `\`\`\`ts\n${`const a${at} = f(\`x\`, 1); // c\n`.repeat(12)}\`\`\`\n\n| a | b |\n|-|-|\n| 1 | ${at} |\n\n`,
    ].join(""),
  "one fence": (at) => `${at === 0 ? "```ts\n" : ""}const a${at} = f("x", ${at}); // comment\n`,
  "one list": (at) => `- ${sentence(at)}\n`,
  paragraphs: (at) => `${sentence(at)}${sentence(at)}\n\n`,
} as const satisfies { readonly [what: string]: (at: number) => string };

export type StreamFigures = {
  /** Milliseconds, each from a key to its frame, before the answer comes. */
  readonly calm: readonly number[];
  /** The same while it comes. */
  readonly keydowns: readonly number[];
  /** Milliseconds of each task above 50 ms. */
  readonly longTasks: readonly number[];
  /** Milliseconds that the page was busy for a delta, in each tenth of the time. */
  readonly costs: readonly number[];
  readonly deltasPerSecond: number;
};

/** Milliseconds from each key to its frame in a text field on an empty page, with a processor that is slowed down. */
export async function bareKeydowns(browser: Browser): Promise<readonly number[]> {
  const context = await newProfile(browser);
  const tab = await Tab.open(context);
  await tab.page.goto("data:text/html,<textarea rows=2></textarea>");
  await tab.page.getByRole("textbox").click();
  await tab.slowDown(SLOWER);
  const found = await typedCalmly(tab);
  await context.close();
  return found;
}

async function typedCalmly(tab: Tab): Promise<readonly number[]> {
  for (let n = 0; n < CALM_KEYS; n++) {
    await tab.page.keyboard.press("a");
    await sleep(KEY_EVERY_MS);
  }
  return tab.keydowns();
}

/** An answer comes for so long, while somebody types, with a processor that is slowed down. */
export async function typedStream(
  browser: Browser,
  product: Product,
  cwd: string,
  kind: keyof typeof ANSWERS,
  seconds: number,
): Promise<StreamFigures> {
  const deltas = seconds * DELTAS_PER_SECOND;
  let whole = "";
  for (let at = 0; whole.length < deltas * DELTA; at++) whole += ANSWERS[kind](at);
  whole = whole.slice(0, deltas * DELTA);
  const pieces = Array.from({ length: deltas }, (_, at) => whole.slice(at * DELTA, (at + 1) * DELTA));
  const talk = await Talk.open(product, cwd);
  const due = dueTimes();
  const answer = say(text(...pieces.flatMap((piece, at) => [due(at), piece])));
  const tag = product.model.script(`typed-${talk.id}`, [answer]);
  const context = await newProfile(browser);
  const tab = await Tab.open(context);
  await tab.page.goto(`${product.url}/c/${talk.id}`);
  const message = tab.page.getByRole("textbox", { name: "Message" });
  await message.click();
  await tab.slowDown(SLOWER);
  // What the machine itself takes, so slowed down.
  const calm = await typedCalmly(tab);
  await message.fill("");
  const idle = talk.nextState("idle");
  await tab.expect("conversation", "a");
  await talk.send(`Begin. ${tag}`);
  await tab.seen();
  await tab.longTasks();
  await tab.keydowns();
  const busy = [await tab.busyMs()];
  let arrived = 0;
  void talk.next(({ name }) => {
    arrived += Number(name === "text.delta");
    return false;
  });
  const told = [0];
  const began = performance.now();
  const typing = (async () => {
    for (let n = 0; performance.now() - began < seconds * 1_000 - 500; n++) {
      // Now and then a line is emptied: a text of thousands of letters is another measurement.
      if (n % 60 === 59) await message.fill("");
      else await tab.page.keyboard.press("a");
      await sleep(KEY_EVERY_MS);
    }
  })();
  for (let n = 1; n <= SAMPLES; n++) {
    await sleep(began + (n * seconds * 1_000) / SAMPLES - performance.now());
    busy.push(await tab.busyMs());
    told.push(arrived);
  }
  await typing;
  await idle;
  const keydowns = await tab.keydowns();
  const longTasks = await tab.longTasks();
  await context.close();
  talk.close();
  const costs = busy
    .slice(1)
    .map((value, at) => (value - (busy[at] ?? 0)) / Math.max(1, (told[at + 1] ?? 0) - (told[at] ?? 0)));
  return { calm, keydowns, longTasks, costs, deltasPerSecond: arrived / seconds };
}

/** Pauses until a delta's time: so the provider keeps the rate, however late its timers are. */
function dueTimes(): (delta: number) => Cue {
  let began: number | null = null;
  return (delta) => ({
    kind: "pause",
    get ms() {
      began ??= performance.now();
      return Math.max(0, began + (delta * 1_000) / DELTAS_PER_SECOND - performance.now());
    },
  });
}

const LINE = 200_000;
const filled = (part: string): string => part.repeat(Math.ceil(LINE / part.length)).slice(0, LINE);

/** Texts of 200 kB in one line. */
export const LINES: { readonly [what: string]: string } = {
  backslashes: filled("\\"),
  JSON: filled('{"a":[{"b":1}]},'),
  base64: filled(Buffer.from(Array.from({ length: 300 }, (_, at) => at)).toString("base64")),
  brackets: filled("["),
  links: filled("[a](http://a.bb) "),
  asterisks: filled("*"),
  "words with asterisks": filled("*a "),
  "emphasis that takes the lexer minutes": filled("_a_"),
  backticks: filled("`a`"),
  tags: filled("<a "),
  "letters of three bytes": filled("日本語"),
};

/** Characters of the tag that chooses the answer, at most. */
const TAG = 200;

/** As much of a line as one message may have. */
function sendable(line: string): string {
  const ofText = (MAX_TEXT_BYTES - TAG) / Buffer.byteLength(line);
  const ofJson = (MAX_MESSAGE_JSON_BYTES - TAG) / Buffer.byteLength(JSON.stringify(line));
  return line.slice(0, Math.floor(line.length * Math.min(1, ofText, ofJson)));
}

export type LineFigures = {
  /** Milliseconds of the longest task while each came; 0: none above 50 ms. */
  readonly ofModel: readonly number[];
  readonly ofTool: readonly number[];
  readonly ofPerson: readonly number[];
};

/** Each line as the model says it, as a command prints it, and as the person sends it. */
export async function longLines(browser: Browser, product: Product, cwd: string): Promise<LineFigures> {
  const context = await newProfile(browser);
  const figures = { ofModel: [] as number[], ofTool: [] as number[], ofPerson: [] as number[] };
  for (const [what, line] of Object.entries(LINES)) {
    const file = join(cwd, "line.txt");
    writeFileSync(file, line);
    const ways = {
      ofModel: { answers: [say(text(line)), say("Said.")], more: "" },
      ofTool: {
        answers: [say(toolCall("bash", { command: `cat ${file}; exit 1` })), say("Printed.")],
        more: "",
      },
      ofPerson: { answers: [say("Heard.")], more: sendable(line) },
    };
    for (const way of ["ofModel", "ofTool", "ofPerson"] as const) {
      const talk = await Talk.open(product, cwd);
      const tab = await Tab.open(context);
      await tab.page.goto(`${product.url}/c/${talk.id}`);
      await tab.page.getByRole("textbox", { name: "Message" }).waitFor();
      await tab.page.waitForTimeout(SETTLED_MS);
      await tab.longTasks();
      const idle = talk.nextState("idle");
      const { answers, more } = ways[way];
      const { status } = await talk.send(`${product.model.script(`${way}-${talk.id}`, answers)} ${more}`);
      if (status !== 202) throw new Error(`A message of ${way}, ${what}, was answered ${status}.`);
      await idle;
      await tab.page.waitForTimeout(SETTLED_MS);
      const longest = Math.max(0, ...(await tab.longTasks()));
      console.log(`    ${way}, ${what}: ${ms(longest)}`);
      figures[way].push(longest);
      await tab.page.close();
      talk.close();
    }
  }
  await context.close();
  return figures;
}
