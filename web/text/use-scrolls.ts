/** Owns: whether an element's content is wider or higher than it, so that the keyboard must be able to reach it. */
import { useEffect, useState, type RefObject } from "react";

export function useScrolls(element: RefObject<HTMLElement | null>): boolean {
  const [scrolls, setScrolls] = useState(false);
  useEffect(() => {
    const { current } = element;
    if (current === null) return;
    const observer = new ResizeObserver(() =>
      setScrolls(current.scrollWidth > current.clientWidth || current.scrollHeight > current.clientHeight),
    );
    observer.observe(current);
    // Its own size stays when its content grows.
    for (const child of current.children) observer.observe(child);
    return () => observer.disconnect();
  }, [element]);
  return scrolls;
}
