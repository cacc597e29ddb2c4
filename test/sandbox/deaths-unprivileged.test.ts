/** REQ-BED-005: the deaths (death-suite.ts) where the worker is not root. This process gives up being root. */
import { test } from "vitest";
import { LAUNCHER, becomeNobody, canRead } from "./nobody.ts";
import { deathSuite } from "./death-suite.ts";

becomeNobody();
if (canRead(LAUNCHER)) await deathSuite("with control groups", "all kinds together");
else {
  console.warn(`SKIPPED, the deaths as another user than root: nobody may read ${LAUNCHER}.`);
  test.skip("as another user than root");
}
