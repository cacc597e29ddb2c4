/**
 * Owns: stopping the agent. A Stop that got no answer is sent again until the server has it: that the person cannot see
 * what happens is no reason to let it go on.
 */
import { useMemo, useState } from "react";
import { phaseOf } from "../client/phase.ts";
import type { LoadedConversation } from "../client/index.ts";
import { arrived } from "./outbox.ts";
import { useSession } from "./session.tsx";
import { tellError } from "./toasts.tsx";

/** Milliseconds that a Stop gives to a message that was sent before it: if it overtook it, that would begin a run. */
const OVERTAKEN_MS = 250;

export type Stopping = {
  /** The person has pressed Stop, and the work goes on for now. */
  readonly isStopping: boolean;
  readonly canStop: boolean;
  readonly stop: () => void;
};

export function useStop(model: LoadedConversation | null): Stopping {
  const { persist } = useSession();
  const [pressed, setPressed] = useState(false);
  const state = model?.conversation.state ?? null;
  const isBusy = state !== null && ["works", "waits"].includes(phaseOf(state));
  const isStopping = isBusy && (pressed || state.kind === "cancelling");
  // The next run is another one.
  if (pressed && !isBusy) setPressed(false);
  const id = model?.conversation.id ?? "";
  // The same object as long as nothing changes: text that streams draws this often.
  return useMemo(
    () => ({
      isStopping,
      canStop: isBusy && !isStopping,
      stop: () => {
        if (!isBusy || isStopping) return;
        setPressed(true);
        // A person who presses Stop means it: nothing that waits starts by itself, nor what is on its way.
        arrived(id, OVERTAKEN_MS)
          .then(() =>
            persist((routes) =>
              routes.conversations[":id"].cancel.$post({ param: { id }, json: { queue: "hold" } }),
            ),
          )
          .catch((error: unknown) => {
            setPressed(false);
            tellError(error);
          });
      },
    }),
    [persist, id, isBusy, isStopping],
  );
}
