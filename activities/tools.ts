/**
 * Owns: the activity that runs a tool, at most once, on the host of the conversation's directory. A tool that was
 * stopped has the outcome `interrupted`, for whatever reason. The machine decides whether that was the person's Stop.
 */
import type { Database } from "../db/connect.ts";
import { isUnavailable } from "../db/errors.ts";
import { putImage } from "../db/images.ts";
import { publishLive } from "../db/live.ts";
import { sendOrder } from "../db/orders.ts";
import type { OutputStream } from "../sandbox/command.ts";
import { isRunnable, runTool } from "../tools/registry.ts";
import { ToolError, type ToolContext } from "../tools/tool.ts";
import type { Telemetry } from "../observability/telemetry.ts";
import type { ConversationActivities, ToolActivities, ToolEvent, ToolInput } from "../protocol/activities.ts";
import { commitThen } from "./effect.ts";
import type { LiveTexts } from "./live-texts.ts";
import type { LiveTextOptions } from "./live-text.ts";
import type { RunningTools } from "./running-tools.ts";

export type ToolDependencies = {
  readonly db: Database;
  readonly telemetry: Telemetry;
  /** The server's own folders, which no reading tool shows (tools/tool.ts). */
  readonly hidden: readonly string[];
  readonly running: RunningTools;
  readonly liveTexts: LiveTexts;
};

export function toolActivities(deps: ToolDependencies): ToolActivities {
  const { running, telemetry } = deps;
  return {
    executeTool: (input) =>
      commitThen(deps, input, {
        kind: "tool",
        operationId: input.operationId,
        lastRead: null,
        perform: async (lease, _, span) => {
          span.set({ "gen_ai.tool.name": input.call.name });
          const tool = running.run(input, lease.signal, (signal) => execute(deps, input, { signal, lease }));
          telemetry.metrics.countRunning(tool);
          const event = await tool;
          const name = isRunnable(input.call.name) ? input.call.name : "unknown";
          telemetry.metrics.countTool(name, event.status, event.durationMs / 1_000);
          return { event, outcome: event.status };
        },
      }),
  };
}

/**
 * The same activity on the queue that workers of all hosts poll.
 *
 * @param host null: this worker runs no tools
 */
export const ownTools = (
  host: string | null,
  tools: ToolActivities,
): Pick<ConversationActivities, "executeTool"> => ({
  executeTool: (input) =>
    input.config.host === host ? tools.executeTool(input) : Promise.resolve({ kind: "other_host" }),
});

/** The short way to stop tools: at once in this process, by an order in the others. */
export const toolStops = ({
  db,
  running,
}: Pick<ToolDependencies, "db" | "running">): Pick<ConversationActivities, "stopTools"> => ({
  stopTools: ({ tools }) => {
    running.stop(tools);
    // Tools may run in other workers. Where this does not reach them, the server's cancel does, a little later.
    void sendOrder(db, { kind: "stop_tools", tools }).catch(() => undefined);
    return Promise.resolve();
  },
});

/** Runs the tool, bounded. An abort of its signal stops it; its outcome is then `interrupted`. */
async function execute(
  { db, hidden, liveTexts }: ToolDependencies,
  input: ToolInput,
  ends: Pick<ToolContext, "signal" | "lease">,
): Promise<ToolEvent> {
  const { conversationId, operationId, call, mode, config } = input;
  const started = performance.now();
  const shown: LiveTextOptions<OutputStream> = {
    keyOf: (stream) => stream,
    publish: ({ source, offset, text }, after, again) => {
      const data = { toolCallId: call.id, stream: source, offset, text };
      return publishLive(db, conversationId, { event: { name: "tool.output", data }, after, again });
    },
  };
  const result = await liveTexts.during(conversationId, shown, (live) =>
    runTool(call.name, call.input, {
      cwd: config.cwd,
      mode,
      isSubAgent: !config.userInitiated,
      hidden,
      ...ends,
      onOutput: (stream, text) => live.push(stream, text),
      keepImage: async ({ block, bytes }) => {
        await putImage(db, block, bytes).catch((error: unknown) => {
          if (!isUnavailable(error)) throw error;
          throw new ToolError("The image could not be kept: the database cannot be reached. Try again.");
        });
        return block;
      },
    }),
  );
  const durationMs = Math.round(performance.now() - started);
  return { kind: "tool_completed", operationId, ...result, durationMs };
}
