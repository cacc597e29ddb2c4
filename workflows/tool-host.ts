/**
 * Owns: on which task queue a conversation's tools are called. A tool runs on the host of its conversation's directory.
 * If it is called on the conversation's own queue, the worker that orders it gets it at once, without a detour over the
 * server's queues. A worker on another host answers `other_host`. From then on the tools are called on their host's own
 * queue. If no worker is there, the call waits, and people are told.
 */
import { CancellationScope, isCancellation, patched, sleep } from "@temporalio/workflow";
import type { Performed, ToolEvent, ToolInput } from "../protocol/activities.ts";
import { HOST_PATIENCE_MS } from "../protocol/timing.ts";
import { askHost, executeTool, noWorkerOf, toolsOn } from "./activities.ts";
import type { Committer } from "./committer.ts";

export class ToolHost {
  readonly #tell: (text: string) => void;
  #isElsewhere = false;

  /** @param tell leaves a note in the conversation */
  constructor(tell: (text: string) => void) {
    this.#tell = tell;
  }

  async execute(input: ToolInput, commits: Committer): Promise<Performed<ToolEvent>> {
    const options = { summary: `${input.call.name} (${input.mode})` };
    if (!this.#isElsewhere) {
      const performed = await executeTool.executeWithOptions(options, [input]);
      if (performed.kind !== "other_host") return performed;
      this.#isElsewhere = true;
    }
    const { host } = input.config;
    // The host may have no worker for long. After this commit, people see what the conversation waits for.
    await commits.flush();
    const rest = { ...input, ...commits.pending() };
    const execute = (): Promise<Performed<ToolEvent>> =>
      toolsOn(host).executeTool.executeWithOptions(options, [rest]);
    // Histories of before this was told have no such timer.
    if (!patched("tool host away")) return execute();
    const watch = new CancellationScope({ cancellable: true });
    void watch.run(() => this.#watch(host));
    return execute().finally(() => watch.cancel());
  }

  /** Tells it once if the host does not answer. A call that takes long on a host that answers is none of its business. */
  async #watch(host: string): Promise<void> {
    try {
      await sleep(HOST_PATIENCE_MS, { summary: "is the tool host there?" });
      if ((await askHost(host, null)) === null)
        this.#tell(`${noWorkerOf(host)} The call waits until one does. A Stop ends the wait.`);
    } catch (error) {
      if (!isCancellation(error)) throw error;
    }
  }
}
