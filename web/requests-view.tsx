/** Owns: a conversation as requests to the model (request-cycle model, section 6.1, InferenceRound): for debugging. */
import { useMemo, useState } from "react";
import { foldCycles, viewOf } from "../machine/cycles.ts";
import type { LoadedConversation, Message } from "../client/index.ts";
import { TurnTrace } from "./turn-trace.tsx";
import { JsonView } from "./text/json-view.tsx";
import { counted, duration, localMoment } from "./text/format.ts";

type Props = { readonly model: LoadedConversation; readonly loadEarlier: () => Promise<void> };

export function RequestsView({ model, loadEarlier }: Props) {
  const { messages, hasEarlier, conversation } = model;
  const byId = useMemo(() => new Map(messages.map((message) => [message.id, message])), [messages]);
  const cycles = useMemo(
    () => foldCycles(messages).cycles.map((cycle) => viewOf(cycle, "rounds")),
    [messages],
  );
  return (
    <div className="scroll requests" tabIndex={0} role="region" aria-label="Requests">
      {hasEarlier && <button onClick={() => void loadEarlier()}>Earlier requests</button>}
      {cycles.map((cycle) => {
        const rounds = "rounds" in cycle ? cycle.rounds : [];
        return (
          <section key={cycle.id}>
            <h2>{titleOf(byId.get(cycle.root))}</h2>
            <p className="quiet">
              {counted(rounds.length, "request")} · {cycle.reason ?? "at work"} ·{" "}
              {localMoment(new Date(cycle.startedAt))}
            </p>
            <TurnTrace conversationId={conversation.id} cycleId={cycle.id} />
            <div className="wide" tabIndex={0} role="region" aria-label="Table of requests">
              <table>
                <thead>
                  <tr>
                    {["", "Input", "From cache", "To cache", "Output", "Time", "Tools"].map((name) => (
                      <th key={name} scope="col">
                        {name === "" ? <span className="unseen">Request</span> : name}
                      </th>
                    ))}
                  </tr>
                </thead>
                <tbody>
                  {rounds.map((round, index) => (
                    <RoundRow key={round.requestId} round={round} number={index + 1} byId={byId} />
                  ))}
                </tbody>
              </table>
            </div>
          </section>
        );
      })}
    </div>
  );
}

type Round = Extract<ReturnType<typeof viewOf>, { readonly rounds: unknown }>["rounds"][number];

function RoundRow({
  round,
  number,
  byId,
}: {
  readonly round: Round;
  readonly number: number;
  readonly byId: ReadonlyMap<string, Message>;
}) {
  const [isOpen, setOpen] = useState(false);
  const { usage, durationMs, input, output, results } = round;
  const messages = (ids: readonly string[]) => ids.flatMap((id) => byId.get(id) ?? []);
  return (
    <>
      <tr>
        <th scope="row">
          <button aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
            {number}
          </button>
        </th>
        <td>{usage.inputTokens.toLocaleString("en-US")}</td>
        <td>{usage.cacheReadTokens.toLocaleString("en-US")}</td>
        <td>{usage.cacheCreationTokens.toLocaleString("en-US")}</td>
        <td>{usage.outputTokens.toLocaleString("en-US")}</td>
        <td>{duration(durationMs)}</td>
        <td>
          {messages(results)
            .flatMap((message) => (message.type === "tool" ? [message.content[0].name] : []))
            .join(", ")}
        </td>
      </tr>
      {isOpen && (
        <tr>
          <td colSpan={7}>
            <h3>What the model had not read before</h3>
            <JsonView value={messages(input).map(shownOf)} />
            <h3>What it answered</h3>
            <JsonView value={messages([output]).map(shownOf)} />
          </td>
        </tr>
      )}
    </>
  );
}

const shownOf = ({ type, sequence, content }: Message) => ({ sequence, type, content });

function titleOf(root: Message | undefined): string {
  if (root?.type !== "user") return "Run";
  const [first] = root.content;
  return first?.type === "text" ? (first.text.split("\n")[0]?.slice(0, 120) ?? "") : "Images";
}
