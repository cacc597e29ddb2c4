/** Owns: which view an address shows, and how the page goes to another one. */
import { useSyncExternalStore, type MouseEvent } from "react";

export type Route =
  | { readonly kind: "new" }
  | { readonly kind: "conversation"; readonly id: string; readonly view: "steps" | "requests" };

const changed = new Set<() => void>();

function routeOf(path: string): Route {
  const [, id, view] = /^\/c\/([\w-]{1,64})(\/requests)?$/.exec(path) ?? [];
  if (id === undefined) return { kind: "new" };
  return { kind: "conversation", id, view: view === undefined ? "steps" : "requests" };
}

function pathOf(route: Route): string {
  switch (route.kind) {
    case "new":
      return "/";
    case "conversation":
      return `/c/${route.id}${route.view === "requests" ? "/requests" : ""}`;
  }
}

export function navigate(route: Route, how: "push" | "replace" = "push"): void {
  history[how === "push" ? "pushState" : "replaceState"](null, "", pathOf(route));
  for (const listener of changed) listener();
}

function subscribe(listener: () => void): () => void {
  changed.add(listener);
  window.addEventListener("popstate", listener);
  return () => {
    changed.delete(listener);
    window.removeEventListener("popstate", listener);
  };
}

export function useRoute(): Route {
  return routeOf(useSyncExternalStore(subscribe, () => window.location.pathname));
}

/** The properties of a link within the page. With a modifier key the browser opens it as it does elsewhere. */
export function linkTo(route: Route) {
  return {
    href: pathOf(route),
    onClick: (event: MouseEvent) => {
      if (event.metaKey || event.ctrlKey || event.shiftKey || event.button !== 0) return;
      event.preventDefault();
      navigate(route);
    },
  };
}

export const conversationRoute = (id: string): Route => ({ kind: "conversation", id, view: "steps" });
