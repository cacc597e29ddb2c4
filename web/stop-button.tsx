/** Owns: the button that stops the agent. Not here: what Stop does (run-control.ts), its key (conversation-page.tsx). */
import type { Stopping } from "./run-control.ts";

export function StopButton({ stopping: { canStop, isStopping, stop } }: { readonly stopping: Stopping }) {
  if (!canStop && !isStopping) return null;
  return (
    <button disabled={isStopping} onClick={stop}>
      {isStopping ? "Stopping …" : "Stop"} <kbd>Esc</kbd>
    </button>
  );
}
