/** Reading what was said before, while the conversation goes on: what a person reads stays where it is. */
import type { Page } from "playwright-core";
import { expect } from "vitest";
import { hold, pause } from "../../local/scripted/cues.ts";
import { say, text, type Piece } from "../../local/scripted/script.ts";
import { deferred } from "../support/waiting.ts";
import { storeLong } from "../support/long-conversation.ts";
import { Conversations, on, untilState } from "./conversations.ts";
import { installProbe } from "./probe/install.ts";
import type { Probe } from "./probe/probe.ts";
import { testWithStack, type Stack } from "./stack.ts";

declare const probe: Probe;

const test = testWithStack();

/** Three times what the page gets of a conversation at first. */
const TURNS = 30;
/** Pixels of one turn of the wheel. */
const WHEEL = 100;
/** Frames after which everything that was to move has moved. */
const FRAMES = 30;

const store = ({ system }: Stack, title: string) =>
  storeLong(system.db, { title, host: system.config.toolHost, cwd: system.cwd, turns: TURNS });

/** What is wholly in view and begins like this. */
async function inView(page: Page, words: RegExp): Promise<string | null> {
  const { transcript } = on(page);
  const region = await transcript.boundingBox();
  for (const one of await transcript.getByText(words).all()) {
    const box = await one.boundingBox();
    if (box !== null && region !== null && box.y > region.y && box.y + box.height < region.y + region.height)
      return one.innerText();
  }
  return null;
}

/** A part of an answer that takes a while. */
const lines = (part: number): readonly Piece[] =>
  Array.from({ length: 30 }, (_, at) => [`Line ${part}${at} of the answer.\n\n`, pause(10)]).flat();

const places = (page: Page): Promise<readonly (number | null)[]> => page.evaluate(() => probe.tops());

const untilFrames = (page: Page, count: number) =>
  expect.poll(async () => (await places(page)).length).toBeGreaterThan(count);

/** The heights of rows have fractions of a pixel, the browser scrolls by whole ones. */
const ROUNDING = 1;

/** How far it moved, frame by frame, from now on until this is over, and some frames more. Infinity: it was gone. */
async function movedWhile(page: Page, what: string, happens: () => Promise<void>): Promise<number> {
  await page.evaluate((words) => probe.watch(words), what);
  await untilFrames(page, 1);
  await happens();
  await untilFrames(page, (await places(page)).length + FRAMES);
  const all = await places(page);
  const moved = Math.max(...all.map((place) => Math.abs((place ?? Infinity) - (all[0] ?? 0))));
  return moved < ROUNDING ? 0 : moved;
}

/** Turns the wheel until this is in view. */
async function scrollUpTo(page: Page, words: RegExp): Promise<string> {
  for (;;) {
    const found = await inView(page, words);
    if (found !== null) return found;
    await scrollUp(page, 200);
  }
}

async function scrollUp(page: Page, pixels: number): Promise<void> {
  await on(page).transcript.hover();
  await page.mouse.wheel(0, -pixels);
  await untilStill(page);
}

/** Scrolling is an animation. */
async function untilStill(page: Page): Promise<void> {
  await page.evaluate(
    () =>
      new Promise<void>((resolve) => {
        let [last, still] = [Number.NaN, 0];
        const look = (): void => {
          const { scrollTop } = document.querySelector("[aria-label=Conversation]") ?? { scrollTop: 0 };
          still = scrollTop === last ? still + 1 : 0;
          last = scrollTop;
          if (still > 10) resolve();
          else requestAnimationFrame(look);
        };
        look();
      }),
  );
}

test("text that streams at the end, and earlier messages that come, do not move what one reads", async ({
  visitor,
  stack,
}) => {
  const conversations = new Conversations(stack);
  const { id, last } = await store(stack, "a talk");
  await installProbe(visitor.context);
  const page = await visitor.open(`${stack.url}/c/${id}`);
  await on(page).transcript.getByText(last).waitFor();

  const holds = [hold(), hold(), hold(), hold(), hold()];
  const pieces = holds.flatMap((held, part) => [...lines(part), held]);
  const tag = conversations.script(say(text("It goes on.\n\n", ...pieces, "Done.")));
  await on(page).message.fill(`And now? ${tag}`);
  await on(page).send.click();
  await on(page).transcript.getByText("Line 029 of").waitFor();

  // In the answer itself.
  await scrollUp(page, 100);
  const own = await scrollUpTo(page, /^Line/);
  const whileOwn = await movedWhile(page, own, async () => {
    holds[0]?.release();
    await holds[1]?.reached;
  });
  expect(whileOwn).toBe(0);

  // Near the end, where the answer is mounted.
  const near = await scrollUpTo(page, /^Question/);
  const whileNear = await movedWhile(page, near, async () => {
    holds[1]?.release();
    await holds[2]?.reached;
  });
  expect(whileNear).toBe(0);

  // Where earlier messages are asked for, which come while the answer goes on; the last time, there are no more.
  for (const held of [2, 3]) {
    const gate = deferred<undefined>();
    let asked = 0;
    await page.route(/\/messages\?/, async (route) => {
      asked += 1;
      await gate.promise;
      await route.continue();
    });
    while (asked === 0) await scrollUp(page, 700);
    const far = await scrollUpTo(page, /^Question/);
    const whileFar = await movedWhile(page, far, async () => {
      holds[held]?.release();
      const came = page.waitForResponse(/\/messages\?/);
      gate.resolve(undefined);
      await (await came).finished();
      await holds[held + 1]?.reached;
    });
    expect(whileFar).toBe(0);
    await page.unroute(/\/messages\?/);
  }
  await on(page).transcript.getByText("Earlier messages come").waitFor({ state: "detached" });
  holds[4]?.release();
  await untilState(page, "ready");
});

test("rows above that change their height do not move what one reads, nor do those that become known", async ({
  visitor,
  stack,
}) => {
  const { id, last } = await store(stack, "another talk");
  await installProbe(visitor.context);
  const page = await visitor.open(`${stack.url}/c/${id}`);
  await on(page).transcript.getByText(last).waitFor();
  // Rows that come into view for the first time are measured, and their texts are formatted.
  for (let turn = 0; turn < 4; turn++) {
    await scrollUp(page, 500);
    const question = await scrollUpTo(page, /^Question/);
    await page.evaluate((words) => probe.watch(words), question);
    await untilFrames(page, 1);
    const [before] = await places(page);
    for (let turns = 0; turns < 2; turns++) await scrollUp(page, WHEEL);
    await untilFrames(page, (await places(page)).length + FRAMES);
    const after = (await places(page)).at(-1) ?? Infinity;
    // By what the wheel has turned, and nothing else: rounded some times.
    const off = (after - (before ?? 0)) % WHEEL;
    expect(Math.min(off, WHEEL - off)).toBeLessThan(4 * ROUNDING);
  }
  const question = await scrollUpTo(page, /^Question/);
  for (const pixels of [37, 310, 0])
    expect(await movedWhile(page, question, () => page.evaluate(padRowAbove, pixels))).toBe(0);
});

/** In the browser: gives the row that ends above the view another height. */
function padRowAbove(pixels: number): void {
  const view = document.querySelector("[aria-label=Conversation]");
  const top = view?.getBoundingClientRect().top ?? 0;
  const row = [...document.querySelectorAll<HTMLElement>(".row")].findLast(
    (one) => one.style.paddingTop !== "" || one.getBoundingClientRect().bottom < top,
  );
  if (row === undefined) throw new Error("There is no row above.");
  row.style.paddingTop = `${pixels}px`;
}

test("who goes up by the keyboard while text streams is not taken back", async ({ visitor, stack }) => {
  const conversations = new Conversations(stack);
  const holds = [hold(), hold()];
  const pieces = holds.flatMap((held, part) => [...lines(part), held]);
  const { url } = await conversations.start("Write.", say(text("Well.\n\n", ...pieces, "Done.")));
  await installProbe(visitor.context);
  const page = await visitor.open(url);
  const { transcript } = on(page);
  await transcript.getByText("Line 029 of").waitFor();
  await transcript.focus();
  // One step is a small one.
  await page.keyboard.press("ArrowUp");
  await untilStill(page);
  const line = await scrollUpTo(page, /^Line/);
  const moved = await movedWhile(page, line, async () => {
    holds[0]?.release();
    await holds[1]?.reached;
  });
  expect(moved).toBe(0);
  // The end is followed again when the person has come there.
  await page.getByRole("button", { name: "To the end" }).click();
  holds[1]?.release();
  await transcript.getByText("Done.").waitFor();
  await untilState(page, "ready");
  await expect.poll(() => inView(page, /^Done\.$/)).toBe("Done.");
});
