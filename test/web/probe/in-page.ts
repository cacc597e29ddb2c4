/** Owns: the probe (probe.ts). It runs in the page, from before the page's own scripts. */
import type { Place, Probe, Sample, Seen } from "./probe.ts";

declare global {
  /** Set by whoever opens the page: what `seen` is asked for first. */
  var expectedAtOpening: string | undefined;
  /** Takes samples of the conversation, where somebody wants them. */
  var takeSample: ((sample: Sample) => void) | undefined;
}

const now = (): number => performance.timeOrigin + performance.now();

const conversation = (): HTMLElement | null =>
  document.querySelector("[role=region][aria-label=Conversation]");

function textAt(place: Place): string {
  switch (place) {
    case "conversation":
      return conversation()?.textContent ?? "";
    case "state":
      return document.querySelector("[role=group][aria-label=State]")?.textContent ?? "";
    case "list":
      return document.querySelector("nav")?.textContent ?? "";
    case "title":
      return document.title;
    case "icon":
      return document.querySelector("link[rel=icon]")?.getAttribute("href") ?? "";
  }
}

/** Calls this when the next frame is painted. */
function afterPaint(then: () => void): void {
  requestAnimationFrame(() => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => {
      port1.close();
      then();
    };
    port2.postMessage(null);
  });
}

const longTasks: number[] = [];
const observer = new PerformanceObserver((list) =>
  longTasks.push(...list.getEntries().map(({ duration }) => duration)),
);
observer.observe({ type: "longtask", buffered: true });

const keydowns: number[] = [];
let inputAt: number | null = null;
for (const type of ["keydown", "click"])
  addEventListener(
    type,
    ({ timeStamp }) => {
      inputAt = performance.timeOrigin + timeStamp;
      if (type === "keydown") afterPaint(() => keydowns.push(performance.now() - timeStamp));
    },
    true,
  );

/** What is expected at the opening may be set after this script has run. */
let isSeen = new Promise<Seen>((found) =>
  requestAnimationFrame(() => {
    if (globalThis.expectedAtOpening !== undefined) look("conversation", globalThis.expectedAtOpening, found);
  }),
);

function look(place: Place, text: string, found: (seen: Seen) => void): void {
  afterPaint(() => {
    if (textAt(place).includes(text)) found({ inputAt, paintedAt: now() });
    else look(place, text, found);
  });
}

function expect(place: Place, text: string): void {
  inputAt = null;
  isSeen = new Promise((found) => look(place, text, found));
}

let watched: Element | null = null;
let tops: (number | null)[] = [];

function follow(element: Element): void {
  afterPaint(() => {
    if (watched !== element) return;
    tops.push(element.isConnected ? element.getBoundingClientRect().top : null);
    follow(element);
  });
}

function watch(text: string): void {
  const all = conversation()?.querySelectorAll("*") ?? [];
  const element = [...all].findLast(({ textContent }) => textContent.includes(text));
  if (element === undefined) throw new Error(`There is no "${text}" in view.`);
  watched = element;
  tops = [];
  follow(element);
}

if (globalThis.takeSample !== undefined) {
  let last = "";
  new MutationObserver(() => {
    const text = conversation()?.innerText ?? "";
    if (text === last) return;
    last = text;
    globalThis.takeSample?.({ page: performance.timeOrigin, text });
  }).observe(document, { subtree: true, childList: true, characterData: true });
}

const probe: Probe = {
  longTasks: () => {
    longTasks.push(...observer.takeRecords().map(({ duration }) => duration));
    return longTasks.splice(0);
  },
  keydowns: () => keydowns.splice(0),
  expect,
  seen: () => isSeen,
  watch,
  tops: () => tops,
};
Object.assign(globalThis, { probe });
