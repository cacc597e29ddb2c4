/**
 * Owns: the next release of the product in a run. Its conversation workflow takes another course; conversations that
 * began before keep the old one (`patched`).
 */
import type { Edit } from "./sources.ts";

export const NEXT_RELEASE: readonly Edit[] = [
  {
    file: "workflows/operations.ts",
    from: "(input) => tools.execute({ ...input, config, operationId, call, mode }, committer),",
    to: `async (input) => {
          if (patched("a moment before each tool")) await sleep(1);
          return tools.execute({ ...input, config, operationId, call, mode }, committer);
        },`,
  },
  {
    file: "workflows/operations.ts",
    from: '  sleep,\n} from "@temporalio/workflow";',
    to: '  patched,\n  sleep,\n} from "@temporalio/workflow";',
  },
];
