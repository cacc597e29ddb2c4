/**
 * Owns: how far one client has the live text of what runs now. It lets nothing through twice, and finds out that
 * something is missing.
 */
import { type LiveEvent, type LivePiece, withText } from "../../db/live.ts";
import { runningIn, type State } from "../../machine/conversation.ts";

export type Progress =
  /** The part that the client does not have. */
  | { readonly kind: "new"; readonly event: LiveEvent }
  /** The client has it, or what it belongs to has ended for the client. */
  | { readonly kind: "old" }
  /** Text before this piece was published and did not arrive here. */
  | { readonly kind: "missed" };

export class LiveProgress {
  /** Where the client's text of each block, or stream, ends. */
  readonly #ends = new Map<string, number>();
  #running: string | null = null;

  /** @param state as the client knows it */
  take(state: State, { event, after, again }: LivePiece): Progress {
    const running = runningIn(state);
    if (running !== this.#running) this.#ends.clear();
    this.#running = running;
    if (running !== idOf(event)) return { kind: "old" };
    const key = keyOf(event);
    const has = this.#ends.get(key) ?? 0;
    const { offset, text } = event.data;
    const end = offset + text.length;
    if (end <= has) return { kind: "old" };
    // Where nothing was published between two pieces, nothing can be told: that gap stays.
    if (after > has && !again) return { kind: "missed" };
    this.#ends.set(key, end);
    const known = Math.max(0, has - offset);
    return { kind: "new", event: withText(event, offset + known, text.slice(known)) };
  }
}

const idOf = (event: LiveEvent): string =>
  event.name === "tool.output" ? event.data.toolCallId : event.data.requestId;

const keyOf = (event: LiveEvent): string =>
  event.name === "tool.output" ? event.data.stream : String(event.data.index);
