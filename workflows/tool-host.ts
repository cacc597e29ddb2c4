/**
 * Owns: on which task queue a conversation's tools are called. A tool runs on the host of its conversation's directory.
 * If it is called on the conversation's own queue, the worker that orders it gets it at once, without a detour over the
 * server's queues. A worker on another host answers `other_host`. From then on the tools are called on their host's own
 * queue.
 */
import type { Performed, ToolEvent, ToolInput } from "../protocol/activities.ts";
import { executeTool, toolsOn } from "./activities.ts";
import type { Committer } from "./committer.ts";

export class ToolHost {
  #isElsewhere = false;

  async execute(input: ToolInput, commits: Committer): Promise<Performed<ToolEvent>> {
    const options = { summary: `${input.call.name} (${input.mode})` };
    if (!this.#isElsewhere) {
      const performed = await executeTool.executeWithOptions(options, [input]);
      if (performed.kind !== "other_host") return performed;
      this.#isElsewhere = true;
    }
    // The host may have no worker for long. After this commit, people see what the conversation waits for.
    await commits.flush();
    const rest = { ...input, ...commits.pending() };
    return toolsOn(input.config.host).executeTool.executeWithOptions(options, [rest]);
  }
}
