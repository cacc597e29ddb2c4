/**
 * Owns: whether an element's content is wider or higher than it, so that the keyboard must be able to reach it.
 * A browser asks each observed element for its size in each frame. A long text has hundreds of such elements, so each is
 * observed only until it was looked at: after its content has changed, and after its text has another width.
 */
import { useEffect, useState, type RefObject } from "react";

type Look = (scrolls: boolean) => void;

class Watcher {
  readonly #looks = new Map<Element, Look>();
  /** The elements of each text. */
  readonly #texts = new Map<Element, { width: number; readonly elements: Set<Element> }>();
  /** Tells of an element when it is laid out, which one that is out of view may never be. */
  readonly #once = new ResizeObserver((entries) => {
    for (const { target } of entries) {
      this.#once.unobserve(target);
      this.#looks.get(target)?.(
        target.scrollWidth > target.clientWidth || target.scrollHeight > target.clientHeight,
      );
    }
  });
  readonly #widths = new ResizeObserver((entries) => {
    for (const { target, contentRect } of entries) {
      const text = this.#texts.get(target);
      if (text === undefined || text.width === contentRect.width) continue;
      text.width = contentRect.width;
      for (const element of text.elements) this.lookAt(element);
    }
  });

  /** Until the function that it returns is called. */
  watch(element: Element, look: Look): () => void {
    const root = element.closest(".md") ?? element;
    const text = this.#texts.get(root) ?? { width: Number.NaN, elements: new Set() };
    this.#texts.set(root, text);
    this.#widths.observe(root);
    text.elements.add(element);
    this.#looks.set(element, look);
    return () => {
      this.#once.unobserve(element);
      this.#looks.delete(element);
      text.elements.delete(element);
      if (text.elements.size > 0) return;
      this.#widths.unobserve(root);
      this.#texts.delete(root);
    };
  }

  lookAt(element: Element): void {
    this.#once.observe(element);
  }
}

// Made when it is needed: there is no such observer where pages are rendered without a browser.
let watcher: Watcher | null = null;
const theWatcher = (): Watcher => (watcher ??= new Watcher());

/** @param content of the element: another value may have another size */
export function useScrolls(element: RefObject<HTMLElement | null>, content: unknown): boolean {
  const [scrolls, setScrolls] = useState(false);
  useEffect(() => {
    const { current } = element;
    return current === null ? undefined : theWatcher().watch(current, setScrolls);
  }, [element]);
  useEffect(() => {
    const { current } = element;
    if (current !== null) theWatcher().lookAt(current);
  }, [element, content]);
  return scrolls;
}
