/** REQ-BED-005: the deaths (death-suite.ts) on a host without control groups. */
import { deathSuite } from "./death-suite.ts";

await deathSuite("without control groups", "each kind by itself");
