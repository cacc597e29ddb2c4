/** REQ-BASH-008, REQ-BED-014: the attacks (attack-suite.ts), as the user that runs the tests. */
import { attackSuite } from "./attack-suite.ts";

await attackSuite();
