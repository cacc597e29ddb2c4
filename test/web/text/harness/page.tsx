/** Owns: the test page: it shows what a test wants, and looks at what became of it. */
import { StrictMode, type ReactElement } from "react";
import { flushSync } from "react-dom";
import { createRoot } from "react-dom/client";
import type { Json } from "../../../../machine/message.ts";
import { Diff } from "../../../../web/text/diff.tsx";
import { JsonView } from "../../../../web/text/json-view.tsx";
import { Markdown } from "../../../../web/text/markdown.tsx";
import { Output } from "../../../../web/text/output.tsx";
import type { Findings, Harness, Shown, Streamed } from "./harness.ts";

const main = document.createElement("main");
const title = document.createElement("h1");
title.textContent = "Texts";
const place = document.createElement("div");
const field = document.createElement("textarea");
field.setAttribute("aria-label", "Message");
main.append(title, field, place);
document.body.append(main);
const root = createRoot(place);

/** Until the frame after the key is painted. */
const keydowns: number[] = [];
field.addEventListener("keydown", ({ timeStamp }) => {
  void afterPaint().then(() => keydowns.push(performance.now() - timeStamp));
});

const longTasks: number[] = [];
new PerformanceObserver((list) =>
  longTasks.push(...list.getEntries().map(({ duration }) => duration)),
).observe({
  type: "longtask",
});

const violations: string[] = [];
document.addEventListener("securitypolicyviolation", ({ violatedDirective, blockedURI }) => {
  violations.push(`the policy stopped ${violatedDirective} ${blockedURI}`);
});
for (const name of ["alert", "confirm", "prompt", "pwned", "print", "open"])
  Object.assign(globalThis, { [name]: () => void violations.push(`a script called ${name}`) });

function view(shown: Shown, at: number): ReactElement {
  switch (shown.kind) {
    case "markdown":
      return <Markdown key={at} text={shown.text} streaming={shown.streaming} headingLevel={2} />;
    case "output":
      return <Output key={at} {...shown} />;
    case "diff":
      return <Diff key={at} {...shown} />;
    case "json":
      return <JsonView key={at} value={shown.value as Json} />;
  }
}

const show = (items: readonly Shown[]): void =>
  flushSync(() => root.render(<StrictMode>{items.map(view)}</StrictMode>));

const isFormatted = (): boolean => place.querySelector(".md-unformatted") === null;

const FORBIDDEN = [
  "script,iframe,frame,frameset,object,embed,applet,portal,img,image,picture,svg,math,style,link,meta,base,form",
  "input,select,textarea,video,audio,source,track,template,slot,dialog,marquee,details,canvas,map,area,noscript",
  "[src],[srcset],[srcdoc],[style]:not(.tx-one-of-many),[action],[formaction],[background],[poster],[ping],[data],[is],[autofocus]",
  "[contenteditable],[id],[name]",
].join(",");
const PROTOCOLS = ["http:", "https:", "mailto:"];

function findings(): Findings {
  const found = [...violations];
  for (const element of place.querySelectorAll(FORBIDDEN))
    found.push(`element ${element.outerHTML.slice(0, 120)}`);
  for (const element of place.querySelectorAll("*")) {
    if (!(element instanceof HTMLElement)) found.push(`foreign element ${element.outerHTML.slice(0, 120)}`);
    for (const { name } of element.attributes) if (name.startsWith("on")) found.push(`attribute ${name}`);
  }
  for (const link of place.querySelectorAll("a")) {
    if (!PROTOCOLS.includes(link.protocol)) found.push(`link to ${link.href}`);
    if (link.target !== "_blank" || link.rel !== "noopener noreferrer")
      found.push(`link without rel: ${link.href}`);
    const around = `${link.textContent} ${link.nextElementSibling?.textContent ?? ""}`;
    const to = link.protocol === "mailto:" ? link.pathname : link.host;
    if (!around.includes(to)) found.push(`link that does not show where it leads: ${link.outerHTML}`);
  }
  if (document.title !== "Texts") found.push(`title ${document.title}`);
  return found;
}

const afterPaint = (): Promise<void> =>
  new Promise((resolve) =>
    requestAnimationFrame(() => {
      const { port1, port2 } = new MessageChannel();
      port1.onmessage = () => resolve();
      port2.postMessage(null);
    }),
  );

async function stream(pieces: readonly string[], everyMs?: number): Promise<Streamed> {
  let changes = 0;
  const observer = new MutationObserver((records) => {
    for (const { type, addedNodes, removedNodes } of records)
      changes += type === "childList" ? addedNodes.length + removedNodes.length : 1;
  });
  observer.observe(place, { childList: true, subtree: true, characterData: true });
  const mutations: number[] = [];
  const letters: number[] = [];
  const show = (text: string, streaming: boolean): void =>
    root.render(view({ kind: "markdown", text, streaming }, 0));
  let text = "";
  for (const piece of pieces) {
    text += piece;
    show(text, true);
    await (everyMs === undefined ? afterPaint() : new Promise((resolve) => setTimeout(resolve, everyMs)));
    mutations.push(changes);
    changes = 0;
    if (everyMs === undefined) letters.push(place.textContent.replace(/\P{L}/gu, "").length);
  }
  observer.disconnect();
  show(text, false);
  return { mutations, letters };
}

/** A colour is an element around text. */
function html(): string {
  const copy = place.cloneNode(true) as HTMLElement;
  for (const color of copy.querySelectorAll("code [class^=tx-]:not(.tx-piece)"))
    color.replaceWith(...color.childNodes);
  copy.normalize();
  return copy.innerHTML;
}

/** Long tasks are reported from 50 ms on; a chain of messages sees shorter ones. */
async function timeOf(items: readonly Shown[]): Promise<{ longestTask: number; total: number }> {
  root.render(null);
  await afterPaint();
  let longestTask = 0;
  let last = performance.now();
  let isOn = true;
  const { port1, port2 } = new MessageChannel();
  port1.onmessage = () => {
    const now = performance.now();
    longestTask = Math.max(longestTask, now - last);
    last = now;
    if (isOn) port2.postMessage(null);
  };
  port2.postMessage(null);
  const start = performance.now();
  root.render(items.map(view));
  await afterPaint();
  // The worker has a second; what it has not done by then stays plain.
  while (!isFormatted() && performance.now() - start < 3000) await afterPaint();
  const total = performance.now() - start;
  for (let frame = 0; frame < 10; frame++) await afterPaint();
  isOn = false;
  return { longestTask, total };
}

const harness: Harness = {
  show,
  isFormatted,
  findings,
  html,
  stream,
  timeOf,
  longTasks: () => longTasks.splice(0),
  keydowns: () => keydowns.splice(0),
};
Object.assign(globalThis, { harness });
