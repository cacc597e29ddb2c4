/**
 * Owns: how a person who looks elsewhere learns that the agent waits for them: the page's title, its icon, and a
 * notification where they have allowed it.
 */
import { useEffect, useRef } from "react";
import { phaseOf } from "../client/phase.ts";
import { notify } from "./notifications.tsx";
import { conversationRoute, navigate, useRoute } from "./route.ts";
import { useList } from "./use-models.ts";

export function Attention() {
  const list = useList();
  const route = useRoute();
  const waiting = [...list.conversations.values()].filter(
    ({ state, archived }) => phaseOf(state) === "waits" && !archived,
  );
  const current = route.kind === "conversation" ? list.conversations.get(route.id) : undefined;
  const [first] = waiting;
  const name = current?.title ?? "Bedrock";
  const title =
    first === undefined
      ? name
      : waiting.length === 1
        ? `● Approval needed — ${first.title}`
        : `● ${waiting.length} approvals needed`;

  useEffect(() => {
    document.title = title;
  }, [title]);

  const isWaiting = first !== undefined;
  useEffect(() => {
    const icon = document.querySelector<HTMLLinkElement>("link[rel=icon]");
    icon?.setAttribute("href", isWaiting ? "/icon-waiting.svg" : "/icon.svg");
  }, [isWaiting]);

  // Each approval once: its call names it.
  const told = useRef(new Set<string>());
  useEffect(() => {
    for (const { id, title, state } of waiting) {
      if (state.kind !== "awaiting_mode_approval" || told.current.has(state.toolCall.id)) continue;
      told.current.add(state.toolCall.id);
      const options = { body: state.reason, tag: state.toolCall.id };
      notify(`Approval needed: ${title}`, options, () => navigate(conversationRoute(id)));
    }
  });
  return null;
}
