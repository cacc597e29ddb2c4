/**
 * Owns: what a client has of the live text of an answer, by the rule of docs/http.md: an offset says where a piece
 * belongs. It complains of gaps, and of text that is not a beginning of the message that is stored in the end.
 */
import type { Received } from "../api/sse.ts";

type Block = { readonly text?: string; readonly thinking?: string };

export class LiveWatch {
  readonly complaints: string[] = [];
  /** How often a client that came back got text from its beginning. */
  rejoined = 0;
  readonly #texts = new Map<string, string>();
  #isBack = false;

  /** The stream was cut off, and begins anew. */
  comeBack(): void {
    this.#isBack = true;
  }

  take({ name, data }: Received): void {
    if (name === "text.delta" || name === "thinking.delta") this.#add(data);
    if (name === "message.added" && data["type"] === "agent") this.#compare(data);
  }

  #add(data: Received["data"]): void {
    const { requestId, index, offset, text } = data as {
      requestId: string;
      index: number;
      offset: number;
      text: string;
    };
    const key = `${requestId} ${index}`;
    const has = this.#texts.get(key) ?? "";
    if (this.#isBack && offset === 0) this.rejoined++;
    this.#isBack = false;
    if (offset > has.length)
      this.complaints.push(`live text of ${key} has a gap from ${has.length} to ${offset}`);
    this.#texts.set(key, has + text.slice(Math.max(0, has.length - offset)));
  }

  #compare(data: Received["data"]): void {
    const { requestId } = data["display"] as { requestId: string };
    for (const [index, block] of (data["content"] as readonly Block[]).entries()) {
      const live = this.#texts.get(`${requestId} ${index}`) ?? "";
      const stored = block.text ?? block.thinking ?? "";
      if (!stored.startsWith(live))
        this.complaints.push(`live text of ${requestId} ${index} is not a beginning of what is stored`);
    }
    this.#texts.clear();
  }
}
