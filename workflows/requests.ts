/**
 * Owns: the requests of people that the workflow has accepted. The workflow remembers a request until it is in
 * Postgres. If the row turns out to have another history, the next session gets it again (architecture, rule 2).
 */
import type { ConversationEvent } from "../machine/event.ts";

/** An event that a person requests. The workflow accepts it before it is in Postgres. */
export type PersonEvent = Extract<
  ConversationEvent,
  {
    readonly kind:
      | "user_message"
      | "withdraw_message"
      | "user_cancel"
      | "user_release_queue"
      | "user_decide_upgrade"
      | "user_request_downgrade"
      | "user_trigger_continuation";
  }
>;

/** An accepted request of a person. */
export type Request = PersonEvent | { readonly kind: "archive"; readonly archived: boolean };

/**
 * The requests without messages that the row knows, and without messages that were withdrawn before the row knew them.
 */
export function withoutWithdrawn(
  requests: readonly Request[],
  known: ReadonlySet<string>,
): readonly Request[] {
  const idsOf = (kind: "user_message" | "withdraw_message"): Set<string> =>
    new Set(requests.flatMap((each) => (each.kind === kind ? [each.messageId] : [])));
  const [sent, withdrawn] = [idsOf("user_message"), idsOf("withdraw_message")];
  return requests.filter((request) => {
    if (request.kind === "user_message")
      return !known.has(request.messageId) && !withdrawn.has(request.messageId);
    return (
      request.kind !== "withdraw_message" || known.has(request.messageId) || !sent.has(request.messageId)
    );
  });
}

const PERSON_EVENTS: Readonly<Record<PersonEvent["kind"], true>> = {
  user_message: true,
  withdraw_message: true,
  user_cancel: true,
  user_release_queue: true,
  user_decide_upgrade: true,
  user_request_downgrade: true,
  user_trigger_continuation: true,
};

export const isPersonEvent = (event: ConversationEvent): event is PersonEvent => event.kind in PERSON_EVENTS;

/** The note on an accepted request that is lost. */
export function lostNote(request: Request): string {
  switch (request.kind) {
    case "user_message":
      return `A message could not be delivered: ${request.text}`;
    case "withdraw_message":
      return "A message that was withdrawn had been delivered already.";
    case "user_decide_upgrade":
      return "A decision on the mode came too late and was not taken.";
    case "user_cancel":
      return "A cancel was not taken.";
    case "user_release_queue":
      return "A release of the queue was not taken.";
    case "user_request_downgrade":
      return "A switch to Restricted mode was not taken.";
    case "user_trigger_continuation":
      return "A request for a summary was not taken.";
    case "archive":
      return `This conversation was not ${request.archived ? "archived" : "taken out of the archive"}.`;
  }
}
