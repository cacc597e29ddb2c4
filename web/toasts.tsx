/** Owns: short messages that come and go: what was done, how to undo it, what failed. */
import { useEffect, useRef, useSyncExternalStore } from "react";
import { Refused } from "../client/index.ts";

type Toast = {
  readonly id: number;
  readonly text: string;
  readonly tone: "plain" | "bad";
  readonly undo: (() => void) | null;
  /** Runs when the message goes and nothing was undone. */
  readonly done: (() => void) | null;
  readonly takesFocus: boolean;
};

type Options = {
  /** The way back gets the focus: who has done it with the keyboard could not reach it in time. */
  readonly takesFocus: boolean;
};

/** Milliseconds. */
const SHOWN_MS = 8_000;

let toasts: readonly Toast[] = [];
let lastId = 0;
const listeners = new Set<() => void>();
const timers = new Map<number, ReturnType<typeof setTimeout>>();

function set(next: readonly Toast[]): void {
  toasts = next;
  for (const listener of listeners) listener();
}

function drop(id: number): Toast | undefined {
  hold(id);
  const dropped = toasts.find((toast) => toast.id === id);
  set(toasts.filter((toast) => toast.id !== id));
  return dropped;
}

const dismiss = (id: number): void => drop(id)?.done?.();
const undo = (id: number): void => drop(id)?.undo?.();

/** It does not go while the person points at it, or has the focus in it. */
function hold(id: number): void {
  clearTimeout(timers.get(id));
  timers.delete(id);
}

function letGo(id: number): void {
  hold(id);
  timers.set(
    id,
    setTimeout(() => dismiss(id), SHOWN_MS),
  );
}

function show(toast: Omit<Toast, "id">): void {
  lastId += 1;
  letGo(lastId);
  set([...toasts, { id: lastId, ...toast }]);
}

/** Says what was done, with a way back. */
export const tellDone = (text: string, undo: () => void, { takesFocus }: Options): void =>
  show({ text, tone: "plain", undo, done: null, takesFocus });

/** Says why something was not done. */
export const tellError = (error: unknown): void =>
  show({ text: sentenceOf(error), tone: "bad", undo: null, done: null, takesFocus: false });

/**
 * Does something that cannot be undone, but only when its message has gone: until then nothing has happened. A page
 * that is closed before does not do it.
 *
 * @param undo called if the person changes their mind
 */
export const doLater = (text: string, action: () => void, undo: () => void, { takesFocus }: Options): void =>
  show({ text, tone: "plain", undo, done: action, takesFocus });

export function sentenceOf(error: unknown): string {
  if (error instanceof Refused) return error.problem.detail;
  return error instanceof Error ? error.message : "Something went wrong in the page. Reload it.";
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => void listeners.delete(listener);
}

/** @param props.focusHome the id of the element that gets the focus when a message with the focus goes */
export function Toasts({ focusHome }: { readonly focusHome: string }) {
  const shown = useSyncExternalStore(subscribe, () => toasts);
  return (
    <div className="toasts" role="status" data-focus-home={focusHome}>
      {shown.map((toast) => (
        <ToastCard key={toast.id} toast={toast} />
      ))}
    </div>
  );
}

function ToastCard({ toast }: { readonly toast: Toast }) {
  const { id, text, tone, takesFocus } = toast;
  const wayBack = useRef<HTMLButtonElement>(null);
  useEffect(() => {
    if (takesFocus) wayBack.current?.focus();
  }, [takesFocus]);
  return (
    <div
      className={`toast ${tone}`}
      onPointerEnter={() => hold(id)}
      onPointerLeave={() => letGo(id)}
      onFocus={() => hold(id)}
      onBlur={() => letGo(id)}
    >
      <span>{text}</span>
      {toast.undo !== null && (
        <button ref={wayBack} onClick={() => undo(id)}>
          Undo
        </button>
      )}
      <button aria-label="Dismiss" onClick={() => dismiss(id)}>
        ×
      </button>
    </div>
  );
}
