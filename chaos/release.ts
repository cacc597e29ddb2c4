/**
 * Owns: the next release of the product in a run. Its conversation workflow takes another course; conversations that
 * began before keep the old one (`patched`).
 */
import type { Edit } from "./sources.ts";

export const NEXT_RELEASE: readonly Edit[] = [
  {
    file: "workflows/operations.ts",
    from: "(input) => tools.execute({ ...input, config, operationId, call, mode }, committer),",
    // The old course must not take one microtask more than before: commands of one task would change places.
    to: `(input) => {
          const execute = () => tools.execute({ ...input, config, operationId, call, mode }, committer);
          return patched("a moment before each tool") ? sleep(1).then(execute) : execute();
        },`,
  },
];
