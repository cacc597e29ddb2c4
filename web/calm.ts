/**
 * Owns: moments in which the page may do what can wait. A person who types feels each task that is under way when a key
 * comes. So such work begins when the page is idle, and while somebody types right after a key was shown: then the time
 * until the next one is longest.
 */

/** Milliseconds since the last key for which somebody counts as typing. */
const TYPING_MS = 400;
/** Milliseconds to wait for the next key. */
const NEXT_KEY_MS = 150;

let lastKeyAt = -Infinity;
/** What waits for the next key. */
const waiting = new Set<() => void>();

addEventListener(
  "keydown",
  () => {
    lastKeyAt = performance.now();
    if (waiting.size === 0) return;
    // A frame's callbacks come before it is drawn.
    requestAnimationFrame(() => setTimeout(() => waiting.forEach((once) => once())));
  },
  { capture: true, passive: true },
);

export const isTyping = (): boolean => performance.now() - lastKeyAt < TYPING_MS;

/** @param limitMs milliseconds after which a page that is never idle does it anyway */
export function whenCalm(then: () => void, limitMs: number): void {
  if (isTyping() && !document.hidden) afterNextKey(then);
  else if ("requestIdleCallback" in window) requestIdleCallback(then, { timeout: limitMs });
  // Safari has no idle callbacks.
  else requestAnimationFrame(then);
}

function afterNextKey(then: () => void): void {
  const once = () => {
    clearTimeout(timer);
    if (waiting.delete(once)) then();
  };
  const timer = setTimeout(once, NEXT_KEY_MS);
  waiting.add(once);
}
