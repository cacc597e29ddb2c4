/** Owns: what is wrong with the layout of a page as it is now, computed from the boxes of what can be used on it. */
import type { Page } from "playwright-core";

export type LayoutRules = {
  /** Pixels; the least width and height of what a finger has to hit. */
  readonly leastTarget: number;
};

/** One line for each control that is cut off, out of view, too small, or below another one. */
export const layoutProblems = (page: Page, rules: LayoutRules): Promise<readonly string[]> =>
  page.evaluate(problemsIn, rules);

/** Runs in the browser, so everything that it needs is in it. */
function problemsIn({ leastTarget }: LayoutRules): readonly string[] {
  type Box = { left: number; top: number; right: number; bottom: number };
  /** Pixels. Boxes have fractions. */
  const SLACK = 1;
  /** What may scroll sideways: lines of code, tables, and thumbnails. */
  const SIDEWAYS =
    "pre, table, [role=region]:has(> table), :has(> table), [aria-label='Images of this message']";
  const CONTROLS = "a[href], button, input, select, textarea, summary, [role=menuitem]";
  /** What lies above the rest for a moment, by intention. */
  const FLOATING = "[role=menu], [role=status], .to-end";

  const problems: string[] = [];
  const view: Box = { left: 0, top: 0, right: innerWidth, bottom: innerHeight };
  const meet = (a: Box, b: Box): Box => ({
    left: Math.max(a.left, b.left),
    top: Math.max(a.top, b.top),
    right: Math.min(a.right, b.right),
    bottom: Math.min(a.bottom, b.bottom),
  });
  const isEmpty = ({ left, top, right, bottom }: Box): boolean =>
    right - left <= SLACK || bottom - top <= SLACK;
  const isInside = (inner: Box, outer: Box): boolean =>
    inner.left >= outer.left - SLACK &&
    inner.right <= outer.right + SLACK &&
    inner.top >= outer.top - SLACK &&
    inner.bottom <= outer.bottom + SLACK;
  const nameOf = (element: Element): string =>
    `${element.tagName.toLowerCase()} “${(element.ariaLabel ?? element.textContent).trim().slice(0, 40)}”`;
  const around = (element: Element): Element[] => {
    const parents: Element[] = [];
    // The top layer is cut off by nothing but the view.
    for (let at = element; !at.matches(":popover-open") && at.parentElement !== null; at = at.parentElement)
      parents.push(at.parentElement);
    return parents;
  };
  /** Only screen readers get it, or it is seen when it is pointed at. */
  const isUnseen = (element: Element): boolean => {
    const { clipPath, opacity } = getComputedStyle(element);
    return clipPath !== "none" || opacity === "0";
  };

  if (document.documentElement.scrollWidth > innerWidth) problems.push("the page scrolls sideways");
  for (const element of document.querySelectorAll("body *")) {
    const { overflowX } = getComputedStyle(element);
    const scrolls = overflowX === "auto" || overflowX === "scroll";
    if (scrolls && element.scrollWidth > element.clientWidth + SLACK && !element.matches(SIDEWAYS))
      problems.push(`${nameOf(element)} scrolls sideways`);
  }

  const seen: { element: Element; box: Box }[] = [];
  for (const element of document.querySelectorAll(CONTROLS)) {
    if (!element.checkVisibility({ visibilityProperty: true }) || isUnseen(element)) continue;
    let shown: Box = element.getBoundingClientRect();
    let isScrolledAway = false;
    for (const parent of around(element)) {
      const { overflowX, overflowY } = getComputedStyle(parent);
      if (overflowX === "visible" && overflowY === "visible") continue;
      const frame: Box = parent.getBoundingClientRect();
      const scrolls = [overflowX, overflowY].some((overflow) => overflow === "auto" || overflow === "scroll");
      // What scrolls can be brought into view.
      if (!scrolls && !isScrolledAway && !isInside(shown, frame))
        problems.push(`${nameOf(element)} is cut off by ${nameOf(parent)}`);
      if (scrolls && !isInside(shown, frame)) isScrolledAway = true;
      shown = meet(shown, frame);
    }
    if (isEmpty(shown)) continue;
    if (!isInside(shown, view)) problems.push(`${nameOf(element)} is out of view`);
    if (element.matches("button") && element.scrollWidth > element.clientWidth + SLACK)
      problems.push(`the words of ${nameOf(element)} do not fit`);
    // A finger may also hit the label. A link within text has the height of its line.
    const target = element.closest("label")?.getBoundingClientRect() ?? element.getBoundingClientRect();
    const isInText = getComputedStyle(element).display === "inline";
    if (!isInText && (target.width < leastTarget || target.height < leastTarget))
      problems.push(`${nameOf(element)} is ${Math.round(target.width)} by ${Math.round(target.height)}`);
    seen.push({ element, box: shown });
  }

  for (const [at, a] of seen.entries())
    for (const b of seen.slice(at + 1)) {
      if (a.element.contains(b.element) || b.element.contains(a.element)) continue;
      if (a.element.closest(FLOATING) !== b.element.closest(FLOATING)) continue;
      if (!isEmpty(meet(a.box, b.box))) problems.push(`${nameOf(a.element)} overlaps ${nameOf(b.element)}`);
    }
  for (const floating of document.querySelectorAll(FLOATING))
    if (floating.checkVisibility() && !isInside(floating.getBoundingClientRect(), view))
      problems.push(`${nameOf(floating)} is not in view`);
  return problems;
}
