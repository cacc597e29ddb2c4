/**
 * The page on every screen: a phone, a wide window, 200 % zoom, words without end, no motion, and colours that the system
 * chooses. Nothing is cut off, overlaps, or needs a scroll sideways.
 */
import type { Locator, Page } from "playwright-core";
import sharp from "sharp";
import { expect } from "vitest";
import { on } from "./conversations.ts";
import { layoutProblems } from "./layout.ts";
import { sceneOf, SCENES, SCRIPTED_SCENES, show, TOKEN_SCENES, type Scene } from "./scenes.ts";
import { testWithStack } from "./stack.ts";

const PHONE = { width: 380, height: 740 };
/** 1,280 by 720 at 200 %. */
const ZOOMED = { width: 640, height: 360 };
const WIDE = { width: 1600, height: 900 };
const SIZES = { phone: PHONE, zoomed: ZOOMED, wide: WIDE };

/** Pixels (WCAG 2.2, 2.5.8). */
const LEAST_TARGET = 24;

function fits(test: ReturnType<typeof testWithStack>, scenes: readonly Scene[]): void {
  for (const scene of scenes)
    test(`it fits on a phone, at 200 % and in a wide window: ${scene.name}`, async ({ visitor, stack }) => {
      const problems: string[] = [];
      const lookAt = async (page: Page) => {
        for (const [name, size] of Object.entries(SIZES)) {
          await page.setViewportSize(size);
          const rules = { leastTarget: size === PHONE ? LEAST_TARGET : 0 };
          // Some boxes get their size in the frames after.
          await expect
            .poll(() => layoutProblems(page, rules), { timeout: 3_000 })
            .toEqual([])
            .catch(async () => problems.push(name, ...(await layoutProblems(page, rules))));
        }
      };
      await show(scene, { visitor, stack }, lookAt, { viewport: PHONE, hasTouch: true });
      expect(problems).toEqual([]);
    });
}

const test = testWithStack();
fits(test, SCENES);
fits(testWithStack({ env: { SCRIPTED_MODEL: "true" } }), SCRIPTED_SCENES);
fits(testWithStack({ apiToken: "the-token-of-this-test" }), TOKEN_SCENES);

test("who wants no motion gets none", async ({ visitor, stack }) => {
  await show(sceneOf("text that streams"), { visitor, stack }, async (page) => {
    const running = () => page.evaluate(() => document.getAnimations().length);
    await page.emulateMedia({ reducedMotion: "no-preference" });
    await expect.poll(running).toBeGreaterThan(0);
    await page.emulateMedia({ reducedMotion: "reduce" });
    await expect.poll(running).toBe(0);
  });
});

/** How many colours an element and the few pixels around it have. */
async function coloursOf(page: Page, element: Locator): Promise<number> {
  const box = await element.boundingBox();
  if (box === null) throw new Error("It has no box.");
  const clip = { x: box.x - 3, y: box.y - 3, width: box.width + 6, height: box.height + 6 };
  const { data, info } = await sharp(await page.screenshot({ clip }))
    .raw()
    .toBuffer({ resolveWithObject: true });
  const colours = new Set<string>();
  for (let at = 0; at < data.length; at += info.channels)
    colours.add(data.subarray(at, at + 3).toString("hex"));
  return colours.size;
}

test.for([
  "text that streams",
  "an approval that waits, with a message for afterwards",
  "an error",
  "a conversation at rest",
])(
  "where the system chooses the colours, the state can still be seen: %s",
  async (name, { visitor, stack }) => {
    await show(
      sceneOf(name),
      { visitor, stack },
      async (page) => {
        const at = on(page);
        expect(await page.evaluate(() => matchMedia("(forced-colors: active)").matches)).toBe(true);
        // The dot of the state, and that of the connection.
        for (const dot of await at.state.locator("[aria-hidden=true]").all())
          expect(await coloursOf(page, dot)).toBeGreaterThan(1);
        const look = (element: Locator) =>
          element.evaluate((part) => {
            const { backgroundColor, outlineStyle } = getComputedStyle(part);
            return `${backgroundColor} ${outlineStyle}`;
          });
        const [selected, other] = [
          page.getByRole("link", { name: "Steps" }),
          page.getByRole("link", { name: "Requests" }),
        ];
        expect(await look(selected)).not.toBe(await look(other));
        const steer = page.getByRole("button", { name: "Steer" });
        if (await steer.isVisible())
          expect(await look(steer)).not.toBe(await look(page.getByRole("button", { name: "Afterwards" })));
      },
      { forcedColors: "active" },
    );
  },
);
