/** Owns: an editor in a test: the protocol's own client side, with `bedrock acp` as a process behind it. */
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
import { onTestFinished, vi } from "vitest";

const PROGRAM = join(import.meta.dirname, "..", "..", "cli", "bedrock.mjs");

/** A question that the editor shows, until it is answered or taken back. */
type Question = RequestPermissionRequest & {
  readonly answer: (optionId: string) => void;
  readonly isTakenBack: () => boolean;
};

export type Editor = {
  readonly agent: ClientContext;
  readonly notices: SessionNotification[];
  readonly questions: Question[];
  /** The text that the agent has said, in all. */
  readonly said: () => string;
  readonly updates: <Kind extends SessionUpdate["sessionUpdate"]>(
    kind: Kind,
  ) => Extract<SessionUpdate, { sessionUpdate: Kind }>[];
  readonly kill: () => Promise<void>;
};

export async function openEditor(env: Readonly<Record<string, string>>): Promise<Editor> {
  const bridge = spawn(process.execPath, [PROGRAM, "acp"], {
    env: { ...process.env, ...env },
    stdio: ["pipe", "pipe", "inherit"],
  });
  const ended = new Promise<void>((resolve) => bridge.once("close", () => resolve()));
  bridge.stdin.on("error", () => undefined);
  const kill = async (): Promise<void> => {
    bridge.kill("SIGKILL");
    await ended;
  };
  onTestFinished(kill);
  const notices: SessionNotification[] = [];
  const questions: Question[] = [];
  const connection = client({ name: "test" })
    .onNotification("session/update", ({ params }) => void notices.push(params))
    .onRequest("session/request_permission", async ({ params, signal }) => {
      const optionId = await new Promise<string | null>((answer) => {
        questions.push({ ...params, answer, isTakenBack: () => signal.aborted });
        signal.addEventListener("abort", () => answer(null));
      });
      return {
        outcome: optionId === null ? { outcome: "cancelled" } : { outcome: "selected", optionId },
      };
    })
    .connect(
      ndJsonStream(
        Writable.toWeb(bridge.stdin) as WritableStream<Uint8Array>,
        Readable.toWeb(bridge.stdout) as ReadableStream<Uint8Array>,
      ),
    );
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

export const eventually = <T>(look: () => T): Promise<T> => vi.waitFor(look, 20_000);
