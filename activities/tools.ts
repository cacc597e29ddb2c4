/**
 * Owns: the activity that runs a tool, at most once, on the host of the conversation's directory. A tool that was
 * stopped has the outcome `interrupted`, for whatever reason. The machine decides whether that was the person's Stop.
 */
import type { Database } from "../db/connect.ts";
import { isUnavailable } from "../db/errors.ts";
import { putImage } from "../db/images.ts";
import { publishLive } from "../db/notifications.ts";
import type { OutputStream } from "../sandbox/command.ts";
import { runTool } from "../tools/registry.ts";
import { ToolError, type ToolContext } from "../tools/tool.ts";
import type { ConversationActivities, ToolActivities, ToolEvent, ToolInput } from "../protocol/activities.ts";
import { commitThen } from "./effect.ts";
import { createLiveText } from "./live-text.ts";
import type { RunningTools } from "./running-tools.ts";

/** @param hidden the server's own folders, which no reading tool shows (tools/tool.ts) */
export function toolActivities(
  db: Database,
  hidden: readonly string[],
  running: RunningTools,
): ToolActivities {
  return {
    executeTool: (input) =>
      commitThen(db, input, {
        operationId: input.operationId,
        lastRead: null,
        perform: (lease) =>
          running.run(input.conversationId, lease.signal, (signal) =>
            execute(db, hidden, input, { signal, lease }),
          ),
      }),
  };
}

/** The same activity on the queue that workers of all hosts poll, and the short way to stop tools of this process. */
export function toolActivitiesOf(
  host: string,
  tools: ToolActivities,
  running: RunningTools,
): Pick<ConversationActivities, "executeTool" | "stopTools"> {
  return {
    executeTool: (input) =>
      input.config.host === host ? tools.executeTool(input) : Promise.resolve({ kind: "other_host" }),
    stopTools: ({ conversationIds }) => {
      running.stop(conversationIds);
      return Promise.resolve();
    },
  };
}

/** Runs the tool, bounded. An abort of its signal stops it; its outcome is then `interrupted`. */
async function execute(
  db: Database,
  hidden: readonly string[],
  input: ToolInput,
  ends: Pick<ToolContext, "signal" | "lease">,
): Promise<ToolEvent> {
  const { conversationId, operationId, call, mode, config } = input;
  const started = performance.now();
  const live = createLiveText<OutputStream>({
    isSame: (a, b) => a === b,
    publish: (stream, text) =>
      publishLive(db, conversationId, { name: "tool.output", data: { toolCallId: call.id, stream, text } }),
  });
  const result = await runTool(call.name, call.input, {
    cwd: config.cwd,
    mode,
    isSubAgent: !config.userInitiated,
    hidden,
    ...ends,
    onOutput: live.push,
    keepImage: async ({ block, bytes }) => {
      await putImage(db, block, bytes).catch((error: unknown) => {
        if (!isUnavailable(error)) throw error;
        throw new ToolError("The image could not be kept: the database cannot be reached. Try again.");
      });
      return block;
    },
  });
  // Live text that is still on its way must not hold up what is durable.
  void live.close();
  const durationMs = Math.round(performance.now() - started);
  return { kind: "tool_completed", operationId, ...result, durationMs };
}
