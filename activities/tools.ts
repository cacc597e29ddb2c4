/**
 * Owns: the activity that runs a tool, at most once, where the conversation's directory is. Being stopped, by
 * whomever, is an `interrupted` outcome; whether that was the person's Stop is the machine's business.
 */
import type { Database } from "../db/connect.ts";
import { publishLive } from "../db/notifications.ts";
import { runTool } from "../tools/registry.ts";
import type { ToolActivities } from "./contract.ts";
import { commitThen } from "./effect.ts";
import { createLiveOutput } from "./live-output.ts";

export function toolActivities(db: Database): ToolActivities {
  return {
    executeTool: (input) =>
      commitThen(db, input, input.operationId, async (signal) => {
        const { conversationId, operationId, call, mode, profile } = input;
        const started = performance.now();
        const live = createLiveOutput((stream, text) =>
          publishLive(db, conversationId, {
            name: "tool.output",
            data: { toolCallId: call.id, stream, text },
          }),
        );
        const { status, output } = await runTool(call.name, call.input, {
          cwd: profile.cwd,
          mode,
          signal,
          onOutput: live.push,
        });
        await live.close();
        const durationMs = Math.round(performance.now() - started);
        return { kind: "tool_completed", operationId, status, output, durationMs };
      }),
  };
}
