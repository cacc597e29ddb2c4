/** Owns: short messages that come and go: what was done, how to undo it, what failed. */
import { useEffect, useSyncExternalStore } from "react";
import { Refused } from "../client/index.ts";

type Toast = {
  readonly id: number;
  readonly text: string;
  readonly tone: "plain" | "bad";
  readonly undo: (() => void) | null;
};

/** Milliseconds. */
const SHOWN_MS = 8_000;

let toasts: readonly Toast[] = [];
let lastId = 0;
const listeners = new Set<() => void>();

function set(next: readonly Toast[]): void {
  toasts = next;
  for (const listener of listeners) listener();
}

const drop = (id: number): void => set(toasts.filter((toast) => toast.id !== id));

function show(text: string, tone: Toast["tone"], undo: Toast["undo"]): number {
  lastId += 1;
  set([...toasts, { id: lastId, text, tone, undo }]);
  return lastId;
}

/** Says what was done, with a way back. */
export const tellDone = (text: string, undo: () => void): void => void show(text, "plain", undo);

/** Says why something was not done. */
export const tellError = (error: unknown): void => void show(sentenceOf(error), "bad", null);

/**
 * Does something that cannot be undone, but only when its message has gone: until then nothing has happened. A page
 * that is closed before does not do it.
 *
 * @param onUndo called if the person changes their mind
 */
export function doLater(text: string, action: () => void, onUndo: () => void): void {
  const timer = setTimeout(action, SHOWN_MS);
  show(text, "plain", () => {
    clearTimeout(timer);
    onUndo();
  });
}

export function sentenceOf(error: unknown): string {
  if (error instanceof Refused) return error.problem.detail;
  return error instanceof Error ? error.message : "Something went wrong in the page. Reload it.";
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => void listeners.delete(listener);
}

export function Toasts() {
  const shown = useSyncExternalStore(subscribe, () => toasts);
  return (
    <div className="toasts" role="status">
      {shown.map((toast) => (
        <ToastCard key={toast.id} toast={toast} />
      ))}
    </div>
  );
}

function ToastCard({ toast: { id, text, tone, undo } }: { readonly toast: Toast }) {
  useEffect(() => {
    const timer = setTimeout(() => drop(id), SHOWN_MS);
    return () => clearTimeout(timer);
  }, [id]);
  return (
    <div className={`toast ${tone}`}>
      <span>{text}</span>
      {undo !== null && (
        <button
          onClick={() => {
            undo();
            drop(id);
          }}
        >
          Undo
        </button>
      )}
      <button aria-label="Dismiss" onClick={() => drop(id)}>
        ×
      </button>
    </div>
  );
}
