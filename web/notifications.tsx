/** Owns: notifications of the browser: whether the person wants them, and showing one. */
import { useSyncExternalStore } from "react";
import { tellError } from "./toasts.tsx";

/** In the browser's storage: the person wants them. The browser's permission cannot be given back by a page. */
const WANTED = "bedrock.notifications";

const BLOCKED =
  "The browser blocks notifications of this page. Allow them in the browser's settings for this site.";

/** A page that came over an insecure connection has none. */
const exist = (): boolean => "Notification" in window;

const isOn = (): boolean =>
  exist() && Notification.permission === "granted" && localStorage.getItem(WANTED) === "yes";

const listeners = new Set<() => void>();

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  window.addEventListener("storage", listener);
  return () => {
    listeners.delete(listener);
    window.removeEventListener("storage", listener);
  };
}

async function turn(on: boolean): Promise<void> {
  const isAllowed = !on || (await Notification.requestPermission()) === "granted";
  if (isAllowed) localStorage.setItem(WANTED, on ? "yes" : "no");
  else tellError(new Error(BLOCKED));
  for (const listener of listeners) listener();
}

/** Shows one to a person who looks elsewhere and wants them. Tabs show one of a tag together. */
export function notify(title: string, options: { body: string; tag: string }, open: () => void): void {
  if (!document.hidden || !isOn()) return;
  const notification = new Notification(title, options);
  notification.onclick = () => {
    window.focus();
    open();
  };
}

export function NotificationSwitch() {
  const isChecked = useSyncExternalStore(subscribe, isOn);
  if (!exist()) return null;
  return (
    <label title="When the agent waits for you, and this page is not in sight">
      <input type="checkbox" checked={isChecked} onChange={(event) => void turn(event.target.checked)} />{" "}
      Notify me
    </label>
  );
}
