/**
 * Owns: the keyboard's focus when the element that has it goes: an answered approval, a message that was taken back, a
 * view that was left. Browsers would drop it, and the person would have to begin at the top of the page.
 *
 * A part of the page names by `data-focus-home` the element that gets the focus then. Otherwise it is the closest thing
 * around that can have it.
 */
import { useEffect } from "react";

/** Id of the view beside the list; the skip link leads there. */
export const MAIN = "main";
/** Id of the list of conversations. */
export const LIST = "conversations";

/** A keyboard on the screen covers half of it, so no text box gets the focus unasked there. */
export const isTouch = (): boolean => window.matchMedia("(pointer: coarse)").matches;

/** Focuses the box for a message; where there is none, the view; where the list covers it, the list. */
export function focusMessage(): void {
  const places = document.querySelectorAll<HTMLElement>(`#composer, #message, #token`);
  const around = [document.getElementById(MAIN), document.getElementById(LIST)];
  [...places, ...around].find((place) => place?.checkVisibility())?.focus();
}

export function useKeptFocus(): void {
  useEffect(keepFocus, []);
}

/** @returns ends it */
function keepFocus(): () => void {
  /** What has the focus, and all around it, from the inside. */
  let path: readonly HTMLElement[] = [];
  let isPressing = false;
  const ended = new AbortController();
  const { signal } = ended;

  const moveOn = () => {
    const to = homeOf(path);
    path = [];
    if (to === null) focusMessage();
    else to.focus({ preventScroll: true });
  };
  const observer = new MutationObserver(() => {
    const [element] = path;
    // Cheap, because text that streams changes the page all the time.
    if (element !== undefined && (!element.isConnected || element.matches(":disabled"))) moveOn();
  });
  observer.observe(document.body, { childList: true, subtree: true, attributeFilter: ["disabled"] });
  const on = <Name extends "focusin" | "focusout" | "pointerdown">(
    name: Name,
    act: (event: DocumentEventMap[Name]) => void,
  ) => document.addEventListener(name, act, { signal, capture: true });

  on("focusin", ({ target }) => {
    path = target instanceof HTMLElement ? pathOf(target) : [];
  });
  on("pointerdown", () => {
    isPressing = true;
    setTimeout(() => (isPressing = false));
  });
  on("focusout", ({ relatedTarget }) => {
    // Pressing beside everything takes the focus away, and is meant to.
    const isMeant = isPressing || relatedTarget !== null;
    setTimeout(() => {
      const [element] = path;
      if (element === undefined || document.activeElement !== document.body) return;
      if (isMeant) path = [];
      else if (element.checkVisibility()) element.focus({ preventScroll: true });
      else moveOn();
    });
  });
  return () => {
    observer.disconnect();
    ended.abort();
  };
}

function pathOf(element: HTMLElement): readonly HTMLElement[] {
  const path: HTMLElement[] = [];
  for (let at: HTMLElement | null = element; at !== null && at !== document.body; at = at.parentElement)
    path.push(at);
  return path;
}

/** null: nothing of what was around is left. */
function homeOf([element, ...around]: readonly HTMLElement[]): HTMLElement | null {
  for (const part of around) {
    const home = document.getElementById(part.dataset["focusHome"] ?? "");
    if (home?.checkVisibility() === true && home !== element && !(isTouch() && isTextBox(home))) return home;
    if (part.hasAttribute("tabindex") && part.checkVisibility()) return part;
  }
  return null;
}

const isTextBox = (element: HTMLElement): boolean => element.matches("textarea, input");
