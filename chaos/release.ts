/**
 * Owns: the next release of a run's product: its conversations' workflow takes another course from here on, and
 * conversations that were begun before go on with theirs (`patched`).
 */
import type { Edit } from "./sources.ts";

export const NEXT_RELEASE: readonly Edit[] = [
  {
    file: "workflows/operations.ts",
    from: "(input) => tools.execute({ ...input, config, operationId, call, mode }, commits),",
    to: `async (input) => {
          if (patched("a moment before each tool")) await sleep(1);
          return tools.execute({ ...input, config, operationId, call, mode }, commits);
        },`,
  },
  {
    file: "workflows/operations.ts",
    from: '  sleep,\n} from "@temporalio/workflow";',
    to: '  patched,\n  sleep,\n} from "@temporalio/workflow";',
  },
];
