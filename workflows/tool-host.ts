/**
 * Owns: where a conversation's tools are called. A tool runs on the host of its conversation's directory. Asked on the
 * conversation's own queue, the worker that orders it gets it at once, without a detour over the server's queues; one
 * on another host answers `elsewhere`, and from then on the tools are called on their host's own queue.
 */
import type { Performed, ToolEvent, ToolInput } from "../protocol/activities.ts";
import { executeTool, toolsOn } from "./activities.ts";
import type { Commits } from "./commits.ts";

export class ToolHost {
  #isElsewhere = false;

  async execute(input: ToolInput, commits: Commits): Promise<Performed<ToolEvent>> {
    const options = { summary: `${input.call.name} (${input.mode})` };
    if (!this.#isElsewhere) {
      const performed = await executeTool.executeWithOptions(options, [input]);
      if (performed.kind !== "elsewhere") return performed;
      this.#isElsewhere = true;
    }
    // Nobody may be there for long, and people see what is waited for.
    await commits.flush();
    const rest = { ...input, ...commits.pending() };
    return toolsOn(input.config.host).executeTool.executeWithOptions(options, [rest]);
  }
}
