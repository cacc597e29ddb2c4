/**
 * Owns: how components see the models. They are told of changes once a frame at most, however many events come; a page
 * in the background less often.
 */
import { useEffect, useState, useSyncExternalStore } from "react";
import type { ConversationModel, Link, ListModel, Models } from "../client/index.ts";
import { useSession } from "./session.tsx";
import { duration } from "./text/format.ts";

/** Milliseconds between two looks of a page that is not seen: its title and icon still have to follow. */
const HIDDEN_MS = 100;

class Ticker {
  readonly #listeners = new Set<() => void>();
  #isScheduled = false;

  constructor(models: Models) {
    models.subscribe(() => this.#schedule());
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  };

  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    const tick = () => {
      this.#isScheduled = false;
      for (const listener of this.#listeners) listener();
    };
    if (document.hidden) setTimeout(tick, HIDDEN_MS);
    else requestAnimationFrame(tick);
  }
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
