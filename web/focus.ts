/**
 * Owns: the keyboard's focus when the element that has it goes: an answered approval, a message that was taken back, a
 * view that was left. Browsers would drop it, and the person would have to begin at the top of the page.
 *
 * A part of the page names by `data-focus-home` the element that gets the focus then. Otherwise it is the closest thing
 * around that can have it.
 */
import { useEffect } from "react";

/** The view beside the list; the skip link leads here. */
export const MAIN = "main";

/** A keyboard on the screen covers half of it, so no text box gets the focus unasked there. */
export const isTouch = (): boolean => window.matchMedia("(pointer: coarse)").matches;

/** The box for a message, or the view where nothing can be written. */
export function focusMessage(): void {
  const box = document.querySelector<HTMLElement>("#composer, #message, #token");
  (box ?? document.getElementById(MAIN))?.focus();
}

export function useKeptFocus(): void {
  useEffect(() => {
    /** What has the focus, and all around it, from the inside. */
    let path: readonly HTMLElement[] = [];
    const note = ({ target }: FocusEvent) => {
      path = target instanceof HTMLElement ? pathOf(target) : [];
    };
    const keep = () => {
      const [element] = path;
      if (element === undefined || !isDropped(element)) return;
      const to = homeOf(path);
      path = [];
      if (to === null) focusMessage();
      else to.focus({ preventScroll: true });
    };
    // The person has pressed beside everything, and nothing has gone.
    const forget = ({ relatedTarget }: FocusEvent) => {
      setTimeout(() => {
        const [element] = path;
        if (relatedTarget !== null || element === undefined || document.activeElement === element) return;
        if (isDropped(element)) keep();
        else if (document.activeElement === document.body) path = [];
      });
    };
    const observer = new MutationObserver(keep);
    observer.observe(document.body, { childList: true, subtree: true, attributeFilter: ["disabled"] });
    document.addEventListener("focusin", note);
    document.addEventListener("focusout", forget);
    return () => {
      observer.disconnect();
      document.removeEventListener("focusin", note);
      document.removeEventListener("focusout", forget);
    };
  }, []);
}

function pathOf(element: HTMLElement): readonly HTMLElement[] {
  const path: HTMLElement[] = [];
  for (let at: HTMLElement | null = element; at !== null && at !== document.body; at = at.parentElement)
    path.push(at);
  return path;
}

const isDropped = (element: HTMLElement): boolean => !element.isConnected || element.matches(":disabled");

/** null: nothing of what was around is left. */
function homeOf([element, ...around]: readonly HTMLElement[]): HTMLElement | null {
  for (const part of [element, ...around]) {
    const named = document.getElementById(part?.dataset["focusHome"] ?? "");
    if (named !== null && named.checkVisibility() && !(isTouch() && isTextBox(named))) return named;
    if (part !== element && part?.isConnected === true && part.hasAttribute("tabindex")) return part;
  }
  return null;
}

const isTextBox = (element: HTMLElement): boolean => element.matches("textarea, input");
