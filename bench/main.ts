/**
 * `npm run bench`: how long one thing takes. It takes some minutes and needs an otherwise idle machine.
 * `-- --only rounds,turns` measures parts. Not here: many things at once (load.ts).
 */
import { PARTS } from "./parts.ts";
import { run } from "./run.ts";

await run("bench", PARTS);
