/**
 * Owns: an editor in a test: the protocol's own client side, of version 1 or of the draft of version 2, with
 * `bedrock acp` as a process behind it.
 */
import { spawn } from "node:child_process";
import { join } from "node:path";
import { Readable, Writable } from "node:stream";
import {
  client,
  ndJsonStream,
  type ClientContext,
  type RequestPermissionRequest,
  type SessionNotification,
  type SessionUpdate,
} from "@agentclientprotocol/sdk";
import * as v2 from "@agentclientprotocol/sdk/experimental/v2";
import { onTestFinished, vi } from "vitest";

const PROGRAM = join(import.meta.dirname, "..", "..", "cli", "bedrock.mjs");

/** A question that the editor shows, until it is answered or taken back. */
type Question<Params> = Params & {
  readonly answer: (optionId: string) => void;
  readonly isTakenBack: () => boolean;
};

/** Shows each question, and answers it as the test does. */
const askIn =
  <Params extends object>(questions: Question<Params>[]) =>
  async ({ params, signal }: { readonly params: Params; readonly signal: AbortSignal }) => {
    const optionId = await new Promise<string | null>((answer) => {
      questions.push({ ...params, answer, isTakenBack: () => signal.aborted });
      signal.addEventListener("abort", () => answer(null));
    });
    return {
      outcome:
        optionId === null ? { outcome: "cancelled" as const } : { outcome: "selected" as const, optionId },
    };
  };

export type Editor = {
  readonly agent: ClientContext;
  readonly notices: SessionNotification[];
  readonly questions: Question<RequestPermissionRequest>[];
  /** The text that the agent has said, in all. */
  readonly said: () => string;
  readonly updates: <Kind extends SessionUpdate["sessionUpdate"]>(
    kind: Kind,
  ) => Extract<SessionUpdate, { sessionUpdate: Kind }>[];
  readonly kill: () => Promise<void>;
};

/** The program, and its standard input and output. */
function startBridge(env: Readonly<Record<string, string>>) {
  const bridge = spawn(process.execPath, [PROGRAM, "acp"], {
    env: { ...process.env, ...env },
    stdio: ["pipe", "pipe", "inherit"],
    detached: true,
  });
  const ended = new Promise<void>((resolve) => bridge.once("close", () => resolve()));
  bridge.stdin.on("error", () => undefined);
  const kill = async (): Promise<void> => {
    // With all of its process group, as an editor may end with its terminal.
    if (bridge.pid !== undefined && bridge.exitCode === null && bridge.signalCode === null)
      process.kill(-bridge.pid, "SIGKILL");
    await ended;
  };
  onTestFinished(kill);
  return {
    input: Writable.toWeb(bridge.stdin) as WritableStream<Uint8Array>,
    output: Readable.toWeb(bridge.stdout) as ReadableStream<Uint8Array>,
    kill,
  };
}

export async function openEditor(env: Readonly<Record<string, string>>): Promise<Editor> {
  const { input, output, kill } = startBridge(env);
  const notices: SessionNotification[] = [];
  const questions: Question<RequestPermissionRequest>[] = [];
  const connection = client({ name: "test" })
    .onNotification("session/update", ({ params }) => void notices.push(params))
    .onRequest("session/request_permission", askIn(questions))
    .connect(ndJsonStream(input, output));
  const { agent } = connection;
  const started = await agent.request("initialize", { protocolVersion: 1, clientCapabilities: {} });
  if (started.agentCapabilities?.loadSession !== true) throw new Error("It loads no sessions.");
  const updates: Editor["updates"] = (kind) =>
    notices
      .map(({ update }) => update)
      .filter(
        (update): update is Extract<SessionUpdate, { sessionUpdate: typeof kind }> =>
          update.sessionUpdate === kind,
      );
  return {
    agent,
    notices,
    questions,
    updates,
    said: () =>
      updates("agent_message_chunk")
        .map(({ content }) => (content.type === "text" ? content.text : ""))
        .join(""),
    kill,
  };
}

type V2Update = v2.SessionUpdate;
type V2Kind =
  "agent_message_chunk" | "user_message" | "tool_call_update" | "config_option_update" | "plan_update";

export type V2Editor = {
  readonly agent: v2.ClientContext;
  readonly protocolVersion: number;
  readonly questions: Question<v2.RequestPermissionRequest>[];
  readonly said: () => string;
  readonly updates: <Kind extends V2Kind>(kind: Kind) => Extract<V2Update, { sessionUpdate: Kind }>[];
  /** What the agent did, one after the other: running, requires_action, or idle with the reason. */
  readonly states: () => string[];
  readonly kill: () => Promise<void>;
};

/** @param protocolVersion that the editor asks for */
export async function openV2Editor(
  env: Readonly<Record<string, string>>,
  protocolVersion = 2,
): Promise<V2Editor> {
  const { input, output, kill } = startBridge(env);
  const notices: V2Update[] = [];
  const stream = v2.ndJsonStream(input, output);
  // In the order of the wire: the library calls a handler later than the answer that came after its notice.
  const observed = new TransformStream<v2.AnyMessage, v2.AnyMessage>({
    transform(message, controller) {
      if ("method" in message && message.method === "session/update")
        notices.push((message.params as v2.UpdateSessionNotification).update);
      controller.enqueue(message);
    },
  });
  const questions: Question<v2.RequestPermissionRequest>[] = [];
  const { agent } = v2
    .client({ name: "test" })
    .onNotification("session/update", () => undefined)
    .onRequest("session/request_permission", askIn(questions))
    .connect({ writable: stream.writable, readable: stream.readable.pipeThrough(observed) });
  const info = { name: "test", version: "1" };
  const started = await agent.request("initialize", { protocolVersion, info });
  const updates: V2Editor["updates"] = (kind) =>
    notices.filter(
      (update): update is Extract<V2Update, { sessionUpdate: typeof kind }> => update.sessionUpdate === kind,
    );
  return {
    agent,
    protocolVersion: started.protocolVersion,
    questions,
    updates,
    said: () =>
      updates("agent_message_chunk")
        .map(({ content }) => (v2.ContentBlock.isText(content) ? content.text : ""))
        .join(""),
    states: () =>
      notices.flatMap((update) => {
        if (!v2.SessionUpdate.isStateUpdate(update)) return [];
        return [v2.StateUpdate.isIdle(update) ? `idle: ${update.stopReason ?? ""}` : update.state];
      }),
    kill,
  };
}

export const eventually = <T>(look: () => T): Promise<T> => vi.waitFor(look, 20_000);
