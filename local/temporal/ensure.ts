/** Owns: getting the Temporal server ahead of the tests, with its progress on the terminal. */
import { withProgress } from "../progress.ts";
import { ensureTemporalBinary } from "./find.ts";

const binary = await withProgress("Temporal server", { write: (line) => console.log(line) }, (onProgress) =>
  ensureTemporalBinary({ onProgress }),
);
if (binary.warning !== null) console.log(`Warning: ${binary.warning}`);
