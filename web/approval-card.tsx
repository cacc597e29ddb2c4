/**
 * Owns: the person's decision on Restricted mode (REQ-BED-015). Nothing that is typed can approve: the card never takes
 * the focus, a press counts only when the card has been there for a moment, and Deny comes first.
 */
import { useEffect, useRef, useState } from "react";
import { Refused, type Calls, type State } from "../client/index.ts";
import { callsWith, useSession } from "./session.tsx";
import { sentenceOf, tellError } from "./toasts.tsx";
import { ApprovalToken } from "./token-prompt.tsx";

/** Milliseconds in which a press was meant for something else that stood there before. */
const ARMED_AFTER = 700;

type Decision = "approve" | "deny";

/** The person is asked for a token that may decide. */
type Asking = { readonly wanted: Decision; readonly problem: string };

const needsToken = (error: unknown): boolean =>
  error instanceof Refused && ["forbidden_role", "unauthorized"].includes(error.problem.code);

type Pending = Extract<State, { readonly kind: "awaiting_mode_approval" }>;

export function ApprovalCard({
  conversationId,
  state,
}: {
  readonly conversationId: string;
  readonly state: Pending;
}) {
  const { call, keepToken } = useSession();
  const [decision, setDecision] = useState<Decision | null>(null);
  const [asking, setAsking] = useState<Asking | null>(null);
  const [isArmed, setArmed] = useState(false);
  const toolCallId = state.toolCall.id;

  const send = (wanted: Decision, by: Calls["call"]) => {
    setDecision(wanted);
    const json = { decision: wanted, toolCallId };
    return by((routes) =>
      routes.conversations[":id"].approval.$post({ param: { id: conversationId }, json }),
    );
  };
  const decide = (wanted: Decision) => {
    if (decision !== null || !isArmed || asking !== null) return;
    send(wanted, call).catch((error: unknown) => {
      setDecision(null);
      if (needsToken(error)) setAsking({ wanted, problem: "" });
      else tellError(error);
    });
  };
  const decideWith = ({ wanted }: Asking, token: string) => {
    send(wanted, callsWith(token).call).then(
      () => keepToken(token),
      (error: unknown) => {
        setDecision(null);
        if (needsToken(error)) setAsking({ wanted, problem: sentenceOf(error) });
        else tellError(error);
      },
    );
  };
  const latest = useRef(decide);
  useEffect(() => {
    latest.current = decide;
  });
  useEffect(() => {
    const timer = setTimeout(() => setArmed(true), ARMED_AFTER);
    const onKey = (event: KeyboardEvent) => {
      if (event.repeat || !event.ctrlKey || !event.shiftKey || event.altKey || event.metaKey) return;
      if (event.code !== "KeyA") return;
      event.preventDefault();
      latest.current("approve");
    };
    window.addEventListener("keydown", onKey);
    return () => {
      clearTimeout(timer);
      window.removeEventListener("keydown", onKey);
    };
  }, []);

  return (
    // After a decision of somebody else, the next key must not send a draft.
    <section
      className="approve"
      aria-labelledby="approval-title"
      data-focus-home={decision === null ? undefined : "composer"}
    >
      <h2 id="approval-title">The agent asks to leave Restricted mode</h2>
      <blockquote>{state.reason}</blockquote>
      <ul>
        <li>From then on its commands have your rights and the network, in this conversation.</li>
        <li>You can go back to Restricted at any time.</li>
      </ul>
      {asking !== null ? (
        <ApprovalToken
          problem={asking.problem}
          isSending={decision !== null}
          onToken={(token) => decideWith(asking, token)}
          onCancel={() => setAsking(null)}
        />
      ) : (
        <div className="row">
          <button disabled={decision !== null} aria-disabled={!isArmed} onClick={() => decide("deny")}>
            {decision === "deny" ? "Denying …" : "Deny"}
          </button>
          <button
            className="primary"
            disabled={decision !== null}
            aria-disabled={!isArmed}
            onClick={() => decide("approve")}
          >
            {decision === "approve" ? "Allowing …" : "Allow"}
          </button>
          <span className="space" />
          <span className="shortcut">
            Allow: <kbd>Ctrl</kbd> <kbd>Shift</kbd> <kbd>A</kbd>
          </span>
        </div>
      )}
    </section>
  );
}
