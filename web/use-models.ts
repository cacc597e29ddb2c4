/**
 * Owns: how components see the models. They are told of changes once a frame at most, however many events come; of text
 * that streams, as often as the machine bears it; a page in the background less often.
 */
import { useEffect, useState, useSyncExternalStore } from "react";
import type { Change, ConversationModel, Link, ListModel, Models } from "../client/index.ts";
import { isTyping, whenCalm } from "./calm.ts";
import { useSession } from "./session.tsx";
import { duration } from "./text/format.ts";

/** Milliseconds between two looks of a page that is not seen: its title and icon still have to follow. */
const HIDDEN_MS = 100;
/** Milliseconds between two looks at text that streams: on a machine that draws fast, and at most. */
const STREAM_MS = 50;
const BUSY_MS = 200;
/** The same while somebody types. */
const TYPED_MS = 300;
/** How many times longer the pause after a look is than its drawing, which is a part of what it brings about. */
const PAUSE = 30;

/** When components look: at once with the next frame, or when text has streamed for a while. */
type Planned = "nothing" | "stream" | "frame";

class Ticker {
  readonly #listeners = new Set<() => void>();
  #planned: Planned = "nothing";
  /** When the next look at text that streams may be. */
  #pausesUntil = 0;

  constructor(models: Models) {
    models.subscribe((change) => (isStream(change) ? this.#planStream() : this.#planFrame()));
    // A page that goes out of sight gets no frame any more, not even one that it has asked for.
    document.addEventListener("visibilitychange", () => {
      if (document.hidden) setTimeout(() => this.#look("frame"), HIDDEN_MS);
    });
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  };

  #planFrame(): void {
    if (this.#planned === "frame") return;
    this.#planned = "frame";
    const look = () => this.#look("frame");
    if (document.hidden) setTimeout(look, HIDDEN_MS);
    else requestAnimationFrame(look);
  }

  /** What the person does comes first: text waits for a moment in which the page has nothing else to do. */
  #planStream(): void {
    if (this.#planned !== "nothing") return;
    this.#planned = "stream";
    const look = () => this.#look("stream");
    const pause = Math.max(0, this.#pausesUntil - performance.now());
    setTimeout(() => whenCalm(look, STREAM_MS), document.hidden ? HIDDEN_MS : pause);
  }

  #look(planned: Planned): void {
    // Else a frame has come before, and has seen all.
    if (this.#planned !== planned) return;
    this.#planned = "nothing";
    const began = performance.now();
    for (const listener of this.#listeners) listener();
    // What the listeners have changed is drawn in microtasks before this one.
    queueMicrotask(() => {
      const now = performance.now();
      this.#pausesUntil =
        now + Math.min(isTyping() ? TYPED_MS : BUSY_MS, Math.max(STREAM_MS, PAUSE * (now - began)));
    });
  }
}

/** Text of a model or a tool that comes piece by piece. */
function isStream(change: Change): boolean {
  if (change.kind !== "conversation_input") return false;
  const { name } = change.input;
  return name === "text.delta" || name === "thinking.delta" || name === "tool.output";
}

const tickers = new WeakMap<Models, Ticker>();

function tickerOf(models: Models): Ticker {
  const ticker = tickers.get(models) ?? new Ticker(models);
  tickers.set(models, ticker);
  return ticker;
}

function useModels<T>(select: (models: Models) => T): T {
  const { models } = useSession().view;
  return useSyncExternalStore(tickerOf(models).subscribe, () => select(models));
}

export const useList = (): ListModel => useModels((models) => models.list);
export const useLink = (): Link => useModels((models) => models.link);

/** Milliseconds that a conversation is still followed after it was left, so that the way back takes no time. */
const KEPT_MS = 120_000;

/** Follows the conversation as long as the component is there. */
export function useConversation(id: string): ConversationModel {
  const { view } = useSession();
  useEffect(() => {
    const release = view.open(id);
    return () => void setTimeout(release, KEPT_MS);
  }, [view, id]);
  return useModels((models) => models.conversation(id));
}

/** The time in milliseconds since the epoch, anew each second as long as `isOn`. */
export function useNow(isOn: boolean): number {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    if (!isOn) return;
    const look = () => setNow(Date.now());
    look();
    const timer = setInterval(look, 1_000);
    return () => clearInterval(timer);
  }, [isOn]);
  return now;
}

/** How long something has gone on, as a clock that ticks shows it: "7 s", "2 m 14 s". @param ms milliseconds */
export function elapsed(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1_000));
  return seconds < 60 ? `${seconds} s` : duration(seconds * 1_000);
}
