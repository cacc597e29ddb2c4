/**
 * REQ-BASH-008, REQ-BED-014: the same attacks where the worker is not root. Its commands run as its own user, beside
 * its own processes, and the limit on processes counts those too. For this the test process gives up being root.
 */
import { test } from "vitest";
import { attackSuite } from "./attack-suite.ts";
import { becomeNobody, canRead, LAUNCHER } from "./nobody.ts";

becomeNobody();
if (canRead(LAUNCHER)) await attackSuite();
else {
  console.warn(`SKIPPED, the attacks as another user than root: nobody may read ${LAUNCHER}.`);
  test.skip("as another user than root");
}
