/**
 * What axe finds on every view and in every state of the page, in both themes: nothing. Not here: the reference at
 * `/docs`, which Swagger UI draws (docs.test.ts).
 */
import { expect } from "vitest";
import { axeFindings } from "./axe.ts";
import { SCENES, SCRIPTED_SCENES, show, TOKEN_SCENES, type Scene } from "./scenes.ts";
import { testWithStack } from "./stack.ts";

const THEMES = ["light", "dark"] as const;

function axeFindsNothing(test: ReturnType<typeof testWithStack>, scenes: readonly Scene[]): void {
  for (const scene of scenes)
    test(`axe finds nothing in either theme: ${scene.name}`, async ({ visitor, stack }) => {
      await show(scene, { visitor, stack }, async (page) => {
        for (const colorScheme of THEMES) {
          await page.emulateMedia({ colorScheme });
          expect(await axeFindings(page), colorScheme).toEqual([]);
        }
      });
    });
}

axeFindsNothing(testWithStack(), SCENES);
axeFindsNothing(testWithStack({ env: { SCRIPTED_MODEL: "true" } }), SCRIPTED_SCENES);
axeFindsNothing(testWithStack({ apiToken: "the-token-of-this-test" }), TOKEN_SCENES);
