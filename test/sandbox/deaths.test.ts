/** REQ-BED-005: the deaths (death-suite.ts), as this host ends commands. */
import { deathSuite } from "./death-suite.ts";

await deathSuite("with control groups", "all kinds together");
