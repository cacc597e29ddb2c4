/** Owns: the sub-agents of one call, as cards with what each does now. A card opens the sub-agent's conversation. */
import { useState } from "react";
import type { Conversation } from "../client/index.ts";
import { describeState, phaseOf } from "../client/phase.ts";
import type { Call } from "../client/transcript.ts";
import { conversationRoute, linkTo } from "./route.ts";
import { counted } from "./text/format.ts";
import { Output } from "./text/output.tsx";
import { useConversation } from "./use-models.ts";

type Props = { readonly call: Call; readonly conversation: Conversation };

/** Cards that follow their sub-agents at once; a call has 16 at most. */
export function SubAgents({ call, conversation }: Props) {
  const tasks = tasksIn(call);
  const ids = call.outcome === null ? idsIn(conversation, call.id) : call.subAgents;
  const [showsResult, setShowsResult] = useState(false);
  const text =
    call.outcome?.output.flatMap((block) => (block.type === "text" ? [block.text] : [])).join("\n") ?? "";
  return (
    <section className="sub-agents" aria-label="Sub-agents">
      <h2>
        {counted(tasks.length, "sub-agent")}
        {call.outcome !== null && call.outcome.status !== "completed" && (
          <span className="bad"> · {call.outcome.status}</span>
        )}
      </h2>
      <div className="agents">
        {tasks.map((task, index) => {
          const id = ids[index];
          return id === undefined ? (
            <div key={index} className="agent">
              <b>{task}</b>
              <small>{call.outcome === null ? "waits" : "did not start"}</small>
            </div>
          ) : (
            <AgentCard key={id} id={id} task={task} />
          );
        })}
      </div>
      {text !== "" && (
        <>
          <button
            className="summary"
            aria-expanded={showsResult}
            onClick={() => setShowsResult(!showsResult)}
          >
            <span aria-hidden="true">{showsResult ? "▾" : "▸"}</span> What the agent was told
          </button>
          {showsResult && <Output text={text} />}
        </>
      )}
    </section>
  );
}

function tasksIn({ input }: Call): readonly string[] {
  const { tasks } = (typeof input === "object" && input !== null ? input : {}) as {
    readonly tasks?: unknown;
  };
  if (!Array.isArray(tasks)) return [];
  return tasks.map((given: unknown) => {
    const { task } = (typeof given === "object" && given !== null ? given : {}) as {
      readonly task?: unknown;
    };
    return typeof task === "string" ? task : "";
  });
}

/** The sub-agents of a call that has no result yet; those that have not started are not there yet. */
function idsIn({ state }: Conversation, callId: string): readonly string[] {
  if (!("all" in state) || state.toolCall.id !== callId) return [];
  return state.all.map(({ id }) => id);
}

function AgentCard({ id, task }: { readonly id: string; readonly task: string }) {
  const model = useConversation(id);
  const state = model.kind === "loaded" ? model.conversation.state : null;
  const phase = state === null ? "rests" : phaseOf(state);
  return (
    <a className="agent" {...linkTo(conversationRoute(id))}>
      <b>{task}</b>
      <small>
        <span
          className={`dot ${state?.kind === "completed" && state.success ? "ok" : phase}`}
          aria-hidden="true"
        />
        {state === null
          ? model.kind === "gone"
            ? "waits for its turn, or was not started"
            : "…"
          : describeState(state)}
        {state?.kind === "completed" && ` · ${state.result.slice(0, 200)}`}
        {state?.kind === "failed" && ` · ${state.error}`}
      </small>
    </a>
  );
}
